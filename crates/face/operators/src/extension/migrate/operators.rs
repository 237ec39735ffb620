//! What the commands read: Subscriptions with their ClusterServiceVersions, and the offers of catalogs.

use crate::extension::settings::ExtensionCertificates;
use mainstay_api::names::olm_v1::OWNER_NAME_LABEL;
use mainstay_api::resources::{
    CLUSTER_EXTENSION, CLUSTER_OBJECT_SET, CLUSTER_SERVICE_VERSION, INSTALL_PLAN,
    OPERATOR_CONDITION, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterHandle, ClusterReadError};
use mainstay_command::exit::CommandFailure;
use mainstay_content::catalog::cluster_catalog;
use mainstay_migration::{
    Acknowledgements, CLUSTER_KINDS, CatalogOffer, CheckInput, ClassicOperator, Handover,
    NAMESPACED_KINDS, OperatorReport, PackageOffer, check, migrated_from, migrated_report,
};
use mainstay_object::builtin::{CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, addons};
use mainstay_object::{Object, Resource};
use mainstay_removal::{deletable_config_maps, plans_owned_by};
use std::collections::{BTreeMap, BTreeSet};

/// The CustomResourceDefinition of ClusterExtensions.
const EXTENSION_CRD: &str = "clusterextensions.olm.operatorframework.io";

/// What all operators have in common.
pub(super) struct Operators {
    pub(super) subscriptions: Vec<Object>,
    csvs: Vec<Object>,
    extensions: Vec<Object>,
    extension_crd: Option<Object>,
    has_certificate_issuer: bool,
    catalogs: Vec<Object>,
    /// The offers of catalogs by package.
    offers: BTreeMap<String, Vec<CatalogOffer>>,
}

/// One operator, and the report about it.
pub(super) struct CheckedOperator {
    pub(super) report: OperatorReport,
    pub(super) csv: Option<Object>,
    pub(super) group: Option<Object>,
}

impl Operators {
    /// Reads what the cluster has.
    ///
    /// # Errors
    /// The account may not list it, or the cluster does not serve both systems.
    pub(super) async fn read(cluster: &impl ClusterHandle) -> Result<Self, CommandFailure> {
        Ok(Self {
            subscriptions: cluster.list(&SUBSCRIPTION, None, None).await?,
            csvs: cluster.list(&CLUSTER_SERVICE_VERSION, None, Some("!olm.copiedFrom")).await?,
            extensions: cluster.list(&CLUSTER_EXTENSION, None, None).await?,
            extension_crd: cluster.get(&CUSTOM_RESOURCE_DEFINITION, None, EXTENSION_CRD).await?,
            has_certificate_issuer: false,
            catalogs: cluster_catalog::list(cluster).await?,
            offers: BTreeMap::new(),
        })
    }

    /// Reads whether the issuer of the certificates of webhooks is there. Only cert-manager may be missing.
    ///
    /// # Errors
    /// The account may not read CustomResourceDefinitions, or the cluster does not respond.
    pub(super) async fn read_issuer(
        &mut self,
        cluster: &impl ClusterHandle,
        issuer: ExtensionCertificates,
    ) -> Result<(), CommandFailure> {
        self.has_certificate_issuer = true;
        if issuer == ExtensionCertificates::CertManager {
            for kind in [addons::ISSUER, addons::CERTIFICATE] {
                let (crd, name) = (&CUSTOM_RESOURCE_DEFINITION, kind.group_resource());
                self.has_certificate_issuer &= cluster.get(crd, None, &name).await?.is_some();
            }
        }
        Ok(())
    }

    /// The Subscription of a name.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn find(&self, namespace: &str, name: &str) -> Result<&Object, CommandFailure> {
        let is_it = |found: &&Object| found.namespace() == namespace && found.name() == name;
        if let Some(found) = self.subscriptions.iter().find(is_it) {
            return Ok(found);
        }
        let cause = Cause::new(format!("namespace {namespace} has no Subscription {name:?}"));
        let elsewhere = self.subscriptions.iter().filter(|found| found.name() == name);
        let elsewhere: Vec<&str> = elsewhere.map(Object::namespace).collect();
        let remedy = match elsewhere.as_slice() {
            [] => "list them with: kubectl get subscriptions.operators.coreos.com -A".to_owned(),
            found => format!("name its namespace: --namespace {}", found.join(" or ")),
        };
        Err(CommandFailure::usage(cause.remedy(remedy)))
    }

    /// The ClusterExtension that replaces a Subscription.
    pub(super) fn extension_of(&self, namespace: &str, name: &str) -> Option<&Object> {
        self.extensions.iter().find(|found| migrated_from(found) == Some((namespace, name)))
    }

    /// The ClusterExtensions that replaced a Subscription; only those of a namespace, if it is named.
    pub(super) fn migrated(&self, namespace: Option<&str>) -> impl Iterator<Item = &Object> {
        self.extensions.iter().filter(move |extension| {
            let from = migrated_from(extension);
            from.is_some_and(|(of, _)| namespace.is_none_or(|namespace| namespace == of))
        })
    }

    /// The reports about ClusterExtensions whose Subscription is gone.
    pub(super) fn migrated_reports(&self, namespace: Option<&str>) -> Vec<OperatorReport> {
        let is_gone = |report: &OperatorReport| {
            let OperatorReport { namespace, name, .. } = report;
            self.find(namespace, name).is_err()
        };
        self.migrated(namespace).filter_map(migrated_report).filter(is_gone).collect()
    }

    /// The ClusterServiceVersion of a namespace and name.
    pub(super) fn csv(&self, namespace: &str, name: &str) -> Option<&Object> {
        self.csvs.iter().find(|csv| csv.namespace() == namespace && csv.name() == name)
    }

    /// Checks an operator. `extension` is the name of its ClusterExtension.
    ///
    /// # Errors
    /// The cluster does not respond.
    pub(super) async fn check(
        &mut self,
        cluster: &impl ClusterHandle,
        subscription: &Object,
        extension: &str,
        acknowledged: &Acknowledgements,
    ) -> Result<CheckedOperator, CommandFailure> {
        let namespace = subscription.namespace();
        let package = subscription.str(&["spec", "name"]).unwrap_or_default().to_owned();
        let installed = subscription.str(&["status", "installedCSV"]).unwrap_or_default();
        let csv = self.csv(namespace, installed).cloned();
        let groups = cluster.list(&OPERATOR_GROUP, Some(namespace), None).await?;
        let condition = match installed {
            "" => None,
            name => cluster.get(&OPERATOR_CONDITION, Some(namespace), name).await?,
        };
        self.read_offers(cluster, &package).await;
        let report = check(&CheckInput {
            subscription,
            csv: csv.as_ref(),
            groups: &groups,
            condition: condition.as_ref(),
            subscriptions: &self.subscriptions,
            csvs: &self.csvs,
            extensions: &self.extensions,
            extension_crd: self.extension_crd.as_ref(),
            has_certificate_issuer: self.has_certificate_issuer,
            offers: self.offers(&package),
            extension,
            acknowledged,
        });
        Ok(CheckedOperator { report, csv, group: groups.into_iter().next() })
    }

    /// What the catalogs offer of a package, once it is read.
    pub(super) fn offers(&self, package: &str) -> &[CatalogOffer] {
        self.offers.get(package).map(Vec::as_slice).unwrap_or_default()
    }

    async fn read_offers(&mut self, cluster: &impl ClusterHandle, package: &str) {
        if self.offers.contains_key(package) {
            return;
        }
        let mut offers = Vec::new();
        for catalog in &self.catalogs {
            let documents = cluster_catalog::read_documents(cluster, catalog, package).await;
            let package = match documents {
                Ok(documents) => {
                    PackageOffer::parse(package, &documents).map_err(|error| error.to_string())
                }
                Err(failure) => Err(failure.cause.what().to_owned()),
            };
            offers.push(CatalogOffer {
                catalog: catalog.name().to_owned(),
                priority: catalog.i64(&["spec", "priority"]).unwrap_or_default(),
                package,
            });
        }
        self.offers.insert(package.to_owned(), offers);
    }
}

/// Whether a Subscription has installed a ClusterServiceVersion, or is doing so.
pub(super) fn has_installed(subscription: &Object, csv: &str) -> bool {
    let status = |field| subscription.str(&["status", field]) == Some(csv);
    status("installedCSV") || status("currentCSV")
}

/// The ClusterServiceVersion that a conversion has not deleted yet, of the Subscription that it replaces.
///
/// # Errors
/// Another Subscription of the namespace has installed it meanwhile.
pub(super) async fn left_csv(
    cluster: &impl ClusterHandle,
    (namespace, subscription): (&str, &str),
    name: &str,
) -> Result<Option<Object>, CommandFailure> {
    let Some(csv) = cluster.get(&CLUSTER_SERVICE_VERSION, Some(namespace), name).await? else {
        return Ok(None);
    };
    let subscriptions = cluster.list(&SUBSCRIPTION, Some(namespace), None).await?;
    let is_owner = |found: &&Object| found.name() != subscription && has_installed(found, name);
    let Some(owner) = subscriptions.iter().find(is_owner) else { return Ok(Some(csv)) };
    let owner = owner.name();
    let cause = Cause::new(format!(
        "Subscription {namespace}/{owner} has installed {name}, which a ClusterExtension replaced"
    ));
    Err(cause
        .remedy(format!(
            "remove it, and repeat the command: mainstay uninstall {owner} -n {namespace}"
        ))
        .remedy("or keep it, and delete the ClusterExtension")
        .into())
}

/// The InstallPlans of a namespace.
pub(super) async fn install_plans(
    cluster: &impl ClusterHandle,
    namespace: &str,
) -> Result<Vec<Object>, CommandFailure> {
    Ok(cluster.list(&INSTALL_PLAN, Some(namespace), None).await?)
}

/// The ConfigMaps that go with InstallPlans: manifests that are too large for a plan. They belong to the
/// CatalogSource, and nothing names them once the plans are gone. What an unfinished plan of any namespace still
/// needs is not among them.
pub(super) async fn bundle_config_maps(
    cluster: &impl ClusterHandle,
    deleted: &[&Object],
) -> Result<Vec<Object>, CommandFailure> {
    let mut found = Vec::new();
    if deletable_config_maps(deleted, &[]).is_empty() {
        return Ok(found);
    }
    let all_plans = cluster.list(&INSTALL_PLAN, None, None).await?;
    for key in deletable_config_maps(deleted, &all_plans) {
        found.extend(cluster.get(&CONFIG_MAP, Some(&key.namespace), &key.name).await?);
    }
    Ok(found)
}

/// The ConfigMaps that go when a Subscription goes, and its InstallPlans with it. `plans` are those of its
/// namespace.
pub(super) async fn config_maps_of(
    cluster: &impl ClusterHandle,
    subscription: &Object,
    plans: &[Object],
) -> Result<Vec<Object>, CommandFailure> {
    let uids = BTreeSet::from([subscription.uid()]);
    let deleted: Vec<&Object> = plans_owned_by(plans, &uids).collect();
    bundle_config_maps(cluster, &deleted).await
}

/// An object that is handed over, with its kind.
pub(super) type KindedObject = (Resource, Object);

/// Reads the objects that an operator hands over, in order of kind and name.
///
/// # Errors
/// The account may not list them, or the cluster does not respond.
pub(super) async fn handed_over(
    cluster: &impl ClusterHandle,
    operator: ClassicOperator<'_>,
    plans: &[Object],
) -> Result<(Handover, Vec<KindedObject>), CommandFailure> {
    let rules = Handover::of(operator, plans);
    let mut found: BTreeMap<(String, String, String), KindedObject> = BTreeMap::new();
    let mut add = |kind: &Resource, objects: Vec<Object>| {
        for object in objects.into_iter().filter(|object| rules.includes(object)) {
            let [kind_name, namespace, name] = [object.kind(), object.namespace(), object.name()];
            let key = (kind_name.to_owned(), namespace.to_owned(), name.to_owned());
            found.insert(key, (kind.clone(), object));
        }
    };
    for name in rules.crds() {
        let crd = cluster.get(&CUSTOM_RESOURCE_DEFINITION, None, name).await?;
        add(&CUSTOM_RESOURCE_DEFINITION, Vec::from_iter(crd));
    }
    for kind in &NAMESPACED_KINDS {
        let objects = list(cluster, kind, Some(operator.namespace()), None).await?;
        add(kind, objects);
    }
    for kind in &CLUSTER_KINDS {
        if let Some(selector) = rules.selector() {
            let objects = list(cluster, kind, None, Some(&selector)).await?;
            add(kind, objects);
        }
        for name in rules.steps_of(&kind.kind) {
            let object = cluster.get(kind, None, name).await?;
            add(kind, Vec::from_iter(object));
        }
    }
    Ok((rules, found.into_values().collect()))
}

/// Lists a kind that the cluster may not serve.
pub(super) async fn list(
    cluster: &impl ClusterHandle,
    kind: &Resource,
    namespace: Option<&str>,
    labels: Option<&str>,
) -> Result<Vec<Object>, ClusterReadError> {
    match cluster.list(kind, namespace, labels).await {
        Err(ClusterReadError::UnknownKind(_)) => Ok(Vec::new()),
        listed => listed,
    }
}

/// The ClusterObjectSets that an extension owns. The label alone may be on a set that somebody else wrote.
pub(super) async fn object_sets(
    cluster: &impl ClusterHandle,
    extension: &Object,
) -> Result<Vec<Object>, ClusterReadError> {
    let selector = format!("{OWNER_NAME_LABEL}={}", extension.name());
    let mut sets = list(cluster, &CLUSTER_OBJECT_SET, None, Some(&selector)).await?;
    sets.retain(|set| set.owner_references().iter().any(|owner| owner.uid == extension.uid()));
    Ok(sets)
}
