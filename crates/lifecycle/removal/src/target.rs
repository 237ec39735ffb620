//! Targets: the operator that has a name.

use crate::{InstalledOperator, OperatorObjects, UninstallRequest};
use mainstay_api::names;
use mainstay_cause::Cause;
use mainstay_object::Object;
use serde_json::Value;
use std::collections::BTreeSet;

fn package(subscription: &Object) -> &str {
    subscription.str(&["spec", "name"]).unwrap_or_default()
}

/// The installed and the current ClusterServiceVersion of a Subscription.
fn csv_names(subscription: &Object) -> impl Iterator<Item = &str> {
    let status = |field: &'static str| subscription.str(&["status", field]);
    [status("installedCSV"), status("currentCSV")].into_iter().flatten()
}

/// The package in the `olm.package` property of a ClusterServiceVersion.
fn package_property(csv: &Object) -> Option<String> {
    let text = csv.annotation(names::PROPERTIES)?;
    let value: Value = serde_json::from_str(text).ok()?;
    let properties = value.get("properties")?.as_array()?;
    let package = properties.iter().find(|property| property["type"] == "olm.package")?;
    Some(package["value"]["packageName"].as_str()?.to_owned())
}

impl InstalledOperator {
    /// Whether the operator watches the namespace of an operand.
    pub(crate) fn watches(&self, object: &Object) -> bool {
        let namespace = object.namespace();
        namespace.is_empty()
            || self.watched.as_ref().is_none_or(|namespaces| namespaces.contains(namespace))
    }
}

pub(crate) fn find_target(
    objects: &OperatorObjects,
    request: &UninstallRequest,
) -> Result<InstalledOperator, Cause> {
    let UninstallRequest { namespace, name, .. } = request;
    let matching: Vec<&Object> =
        match objects.subscriptions.iter().find(|subscription| subscription.name() == name) {
            Some(one) => vec![one],
            None => objects
                .subscriptions
                .iter()
                .filter(|subscription| {
                    package(subscription) == name
                        || csv_names(subscription).any(|version| version == name)
                })
                .collect(),
        };
    let packages: BTreeSet<&str> =
        matching.iter().map(|subscription| package(subscription)).collect();
    if packages.len() > 1 {
        let causes = matching.iter().map(|subscription| {
            Cause::new(format!(
                "Subscription {namespace}/{} is for package {}",
                subscription.name(),
                package(subscription)
            ))
        });
        return Err(Cause::new(format!(
            "`{name}` names several operators in namespace {namespace}"
        ))
        .because_all(causes)
        .remedy("name one of these Subscriptions"));
    }
    let mut found_csvs: BTreeSet<&str> =
        matching.iter().flat_map(|subscription| csv_names(subscription)).collect();
    found_csvs
        .extend(objects.versions.iter().map(Object::name).filter(|csv_name| csv_name == name));
    if matching.is_empty() {
        // An interrupted uninstallation has deleted the Subscription.
        let of_package =
            |csv: &&Object| package_property(csv).is_some_and(|package| package == *name);
        found_csvs.extend(objects.versions.iter().filter(of_package).map(Object::name));
    }
    // During an upgrade, the replaced ClusterServiceVersion belongs to the operator as well.
    loop {
        let count = found_csvs.len();
        let replaced: Vec<&str> = objects
            .versions
            .iter()
            .filter(|csv| found_csvs.contains(csv.name()))
            .filter_map(|csv| csv.str(&["spec", "replaces"]))
            .filter(|old| objects.versions.iter().any(|csv| csv.name() == *old))
            .collect();
        found_csvs.extend(replaced);
        if found_csvs.len() == count {
            break;
        }
    }
    let csvs: Vec<&Object> =
        objects.versions.iter().filter(|csv| found_csvs.contains(csv.name())).collect();
    if matching.is_empty() && csvs.is_empty() {
        return find_leftover_crds(objects, request).ok_or_else(|| not_found(objects, request));
    }
    let stated_package = csvs.iter().find_map(|csv| package_property(csv));
    let package = packages.first().map(|package| (*package).to_owned()).or(stated_package);
    let mut definitions: BTreeSet<String> = BTreeSet::new();
    for version in &csvs {
        let owned = version.array(&["spec", "customresourcedefinitions", "owned"]);
        definitions.extend(owned.iter().filter_map(|crd| Some(crd["name"].as_str()?.to_owned())));
    }
    Ok(InstalledOperator {
        namespace: namespace.clone(),
        watched: watched_namespaces(&csvs),
        package,
        subscriptions: matching.iter().map(|subscription| subscription.name().to_owned()).collect(),
        versions: csvs.iter().map(|csv| csv.name().to_owned()).collect(),
        definitions: definitions.into_iter().collect(),
    })
}

/// The target namespaces in the annotations of ClusterServiceVersions; none means all.
fn watched_namespaces(csvs: &[&Object]) -> Option<BTreeSet<String>> {
    let mut namespaces = BTreeSet::new();
    for csv in csvs {
        let text = csv.annotation(names::TARGET_NAMESPACES)?;
        namespaces.extend(text.split(',').map(str::to_owned));
    }
    (!namespaces.is_empty() && !namespaces.contains("")).then_some(namespaces)
}

/// The package of a namespace in the component label of a CustomResourceDefinition.
fn package_label<'a>(crd: &'a Object, namespace: &str) -> Option<&'a str> {
    let mut keys = crd.labels().map(|(key, _)| key);
    keys.find_map(|key| {
        let operator = key.strip_prefix(names::COMPONENT_LABEL_PREFIX)?;
        operator.strip_suffix(namespace)?.strip_suffix('.')
    })
}

/// An operator that has left only CustomResourceDefinitions.
fn find_leftover_crds(
    objects: &OperatorObjects,
    request: &UninstallRequest,
) -> Option<InstalledOperator> {
    let UninstallRequest { namespace, name, .. } = request;
    let label = names::component_label(name, namespace);
    let csv = format!("{namespace}/{name}");
    let is_left = |crd: &&Object| {
        let is_alongside = |(key, value): (&str, &str)| {
            key.starts_with(names::INSTALLED_ALONGSIDE_PREFIX) && value == csv
        };
        crd.label(&label).is_some() || crd.annotations().any(is_alongside)
    };
    let crds: Vec<&Object> = objects.definitions.iter().filter(is_left).collect();
    let package = crds.iter().find_map(|crd| package_label(crd, namespace)).map(str::to_owned);
    (!crds.is_empty()).then(|| InstalledOperator {
        namespace: namespace.clone(),
        watched: None,
        package,
        subscriptions: Vec::new(),
        versions: Vec::new(),
        definitions: crds.iter().map(|crd| crd.name().to_owned()).collect(),
    })
}

fn not_found(objects: &OperatorObjects, request: &UninstallRequest) -> Cause {
    let UninstallRequest { namespace, name, .. } = request;
    let cause = Cause::new(format!("namespace {namespace} has no operator `{name}`"));
    let of_v1 =
        format!("for a ClusterExtension of OLM v1: mainstay uninstall clusterextension/{name}");
    let mut operator_names: BTreeSet<&str> = objects.subscriptions.iter().map(package).collect();
    operator_names.extend(objects.versions.iter().map(Object::name));
    operator_names
        .extend(objects.definitions.iter().filter_map(|crd| package_label(crd, namespace)));
    let operator_names: Vec<&str> =
        operator_names.into_iter().filter(|name| !name.is_empty()).collect();
    if operator_names.is_empty() {
        let nothing = "it has neither Subscriptions nor ClusterServiceVersions";
        return cause
            .because(Cause::new(nothing))
            .remedy("name another namespace with --namespace NAME")
            .remedy(of_v1);
    }
    cause
        .because(Cause::new(format!("it has: {}", operator_names.join(", "))))
        .remedy("name one of these Subscriptions, packages or ClusterServiceVersions")
        .remedy(of_v1)
}
