//! Resolution input: the state of a namespace that a resolution depends on, and its translation
//! into the input of the resolver.

use crate::fields;
use crate::image::bundles::Key;
use mainstay_api::{OperatorGroup, Subscription, UpgradeStrategy, names};
use mainstay_catalogsources::{NoContent, SourceContent};
use mainstay_controller::hash;
use mainstay_object::{NamespacedName, Object};
use mainstay_resolver as resolver;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A catalog that the namespace may resolve from.
pub(crate) struct ResolvableCatalog {
    pub(crate) key: NamespacedName,
    pub(crate) priority: i64,
    /// Its content, or why it has none.
    pub(crate) content: Result<Arc<SourceContent>, NoContent>,
}

/// The state of a namespace that a resolution depends on.
pub(crate) struct ResolutionInput {
    pub(crate) namespace: String,
    pub(crate) global_namespace: String,
    pub(crate) group: Arc<OperatorGroup>,
    pub(crate) catalogs: Vec<ResolvableCatalog>,
    pub(crate) subscriptions: Vec<Subscription>,
    /// The CSVs that count as installed.
    pub(crate) csvs: BTreeMap<String, Arc<fields::Csv>>,
    /// The packages that keep their CSVs for now, with the reason.
    pub(crate) pinned: BTreeMap<String, String>,
    /// `gitVersion` of the API server; none if it is unknown, in which case no bundle is excluded.
    pub(crate) server_version: Option<String>,
    /// The Subscriptions whose InstallPlan has not created their CSV yet.
    pub(crate) in_flight: BTreeSet<String>,
    /// Those of them whose InstallPlan failed.
    pub(crate) failed: BTreeSet<String>,
    /// The CSVs that wait before another InstallPlan is created for them, because the last ones
    /// failed.
    pub(crate) backing_off: BTreeSet<String>,
    /// Subscriptions that existing InstallPlans will generate.
    pub(crate) planned: Vec<fields::GeneratedSubscription>,
    /// Such Subscriptions that an existing Subscription will replace, by the name of the existing
    /// one.
    pub(crate) inherited: BTreeMap<String, fields::GeneratedSubscription>,
    /// Subscriptions whose CSV exists, but whose InstallPlan was deleted before it created the
    /// rest.
    pub(crate) incomplete: BTreeSet<String>,
    /// The objects of unpacked bundles, by image.
    pub(crate) unpacked: BTreeMap<Key, Arc<Vec<Object>>>,
}

impl ResolutionInput {
    /// A hash of everything that the result of the resolution depends on.
    pub(crate) fn fingerprint(&self) -> String {
        let group = &self.group;
        let mut parts = vec![format!("{:?}{:?}", group.spec, group.metadata.annotations)];
        parts.extend(self.catalogs.iter().map(|catalog| {
            let content = catalog.content.as_ref().map_err(ToString::to_string);
            let content = content.map(|content| content.catalog().digest().to_owned());
            format!("{}{}{content:?}", catalog.key, catalog.priority)
        }));
        parts.extend(self.subscriptions.iter().map(|subscription| {
            let status = &subscription.status;
            format!(
                "{}{:?}{}{}{:?}",
                subscription.metadata.uid,
                subscription.spec,
                status.current_csv,
                status.installed_csv,
                status.state
            )
        }));
        parts.extend(self.csvs.iter().map(|(name, csv)| {
            format!("{name}{}{}{}{:?}", csv.uid, csv.replaces, csv.phase, csv.properties)
        }));
        parts.push(format!(
            "{:?}{:?}{:?}{:?}{:?}{:?}{:?}{:?}",
            self.pinned,
            self.in_flight,
            self.failed,
            self.backing_off,
            self.planned,
            self.inherited,
            self.incomplete,
            self.server_version
        ));
        parts.extend(self.unpacked.keys().map(|key| format!("{}{}", key.catalog, key.image)));
        hash::base62_sha224(parts.concat().as_bytes())
    }

    /// The content of a catalog, if it has any.
    pub(super) fn content(&self, key: &NamespacedName) -> Option<&Arc<SourceContent>> {
        self.catalogs.iter().find(|catalog| catalog.key == *key)?.content.as_ref().ok()
    }

    /// The Subscription of that name.
    pub(super) fn subscription(&self, name: &str) -> Option<&Subscription> {
        self.subscriptions.iter().find(|subscription| subscription.metadata.name == name)
    }

    /// The namespace as the input of the resolver.
    pub(super) fn resolution_input(&self) -> resolver::ResolutionInput<'_> {
        let group = &self.group;
        let annotations = &group.metadata.annotations;
        let excluded = annotations.get(names::EXCLUDE_GLOBAL_NAMESPACE_RESOLUTION);
        let planned = self.planned.iter().map(|generated| self.generated_subscription(generated));
        let mut world = resolver::ResolutionInput {
            namespace: self.namespace.clone(),
            global_namespace: self.global_namespace.clone(),
            operator_groups: vec![resolver::OperatorGroup {
                name: group.metadata.name.clone(),
                fail_forward: group.spec.upgrade_strategy == UpgradeStrategy::FailForward,
                exclude_global: excluded.map(String::as_str) == Some("true"),
            }],
            catalogs: self
                .catalogs
                .iter()
                .map(|catalog| resolver::CatalogView {
                    key: resolver::CatalogKey::new(&*catalog.key.name, &*catalog.key.namespace),
                    priority: catalog.priority,
                    content: match &catalog.content {
                        Ok(content) => resolver::CatalogContent::Ready(&content.snapshot),
                        Err(error) => resolver::CatalogContent::Failed(error.to_string()),
                    },
                })
                .collect(),
            subscriptions: self
                .subscriptions
                .iter()
                .map(|subscription| self.existing_subscription(subscription))
                .chain(planned)
                .collect(),
            csvs: self.csvs.iter().map(|(name, facts)| csv(name, facts)).collect(),
            prohibitions: self
                .pinned
                .iter()
                .map(|(package, why)| resolver::Prohibition {
                    what: resolver::Prohibited::Package(package.clone()),
                    message: why.clone(),
                })
                .collect(),
            kube_version: self
                .server_version
                .as_deref()
                .and_then(|text| mainstay_version::parse_tolerant(text).ok()),
            ..resolver::ResolutionInput::default()
        };
        world.restore_deleted();
        world
    }

    /// A Subscription for the resolver. It counts as having its current CSV once that exists,
    /// although the status says so only when the InstallPlan is complete.
    fn existing_subscription(&self, subscription: &Subscription) -> resolver::Subscription {
        if let Some(planned) = self.inherited.get(&subscription.metadata.name) {
            let name = subscription.metadata.name.clone();
            return resolver::Subscription { name, ..self.generated_subscription(planned) };
        }
        let status = &subscription.status;
        let arrived = self.csvs.contains_key(&status.current_csv);
        resolver::Subscription {
            name: subscription.metadata.name.clone(),
            package: subscription.spec.package.clone(),
            channel: subscription.spec.channel.clone(),
            catalog: resolver::CatalogKey::new(
                &*subscription.spec.source,
                &*subscription.spec.source_namespace,
            ),
            starting_csv: subscription.spec.starting_csv.clone(),
            restores: false,
            installed_csv: if arrived { &status.current_csv } else { &status.installed_csv }
                .clone(),
            current_csv: status.current_csv.clone(),
        }
    }

    /// A Subscription that an InstallPlan will generate, as if it existed.
    fn generated_subscription(
        &self,
        planned: &fields::GeneratedSubscription,
    ) -> resolver::Subscription {
        let is_there = self.csvs.contains_key(&planned.starting_csv);
        resolver::Subscription {
            name: planned.name.clone(),
            package: planned.package.clone(),
            channel: planned.channel.clone(),
            catalog: resolver::CatalogKey::new(&*planned.source.0, &*planned.source.1),
            starting_csv: planned.starting_csv.clone(),
            restores: false,
            installed_csv: if is_there { planned.starting_csv.clone() } else { String::new() },
            current_csv: planned.starting_csv.clone(),
        }
    }
}

fn csv(name: &str, csv: &fields::Csv) -> resolver::ExistingCsv {
    let apis = |list: &[fields::Api]| -> Vec<resolver::OperatorApi> {
        list.iter()
            .map(|api| resolver::OperatorApi {
                group: api.group.clone(),
                version: api.version.clone(),
                kind: api.kind.clone(),
            })
            .collect()
    };
    resolver::ExistingCsv {
        name: name.to_owned(),
        version: mainstay_version::parse_strict(&csv.version).ok(),
        replaces: csv.replaces.clone(),
        phase: csv.phase.to_string(),
        copied: csv.is_copy(),
        properties: csv.properties.clone(),
        // CustomResourceDefinitions and APIServices differ only where properties are inferred, and
        // there only their kinds count.
        owned_apis: apis(&csv.provides),
        required_apis: apis(&csv.requires),
        ..resolver::ExistingCsv::default()
    }
}
