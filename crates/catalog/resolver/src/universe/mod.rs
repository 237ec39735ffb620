//! Universes and outcomes as JSON: a world in plain data, and what it resolves to.

use crate::{
    Api, BundleFacts, CatalogKey, CatalogView, Content, CrdReference, Csv, EntryFacts, FailureKind,
    LegacyDependency, OperatorGroup, Outcome, Property, Snapshot, SnapshotBuilder, Subscription,
    World,
};
use mainstay_version::parse_tolerant;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;

/// A namespace and everything that its resolution depends on, in plain data.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Universe {
    namespace: String,
    global_namespace: String,
    #[serde(default)]
    operator_groups: Vec<GroupData>,
    #[serde(default)]
    catalogs: Vec<CatalogData>,
    #[serde(default)]
    subscriptions: Vec<SubscriptionData>,
    #[serde(default)]
    csvs: Vec<CsvData>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GroupData {
    name: String,
    #[serde(default)]
    fail_forward: bool,
    #[serde(default)]
    exclude_global: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CatalogData {
    name: String,
    namespace: String,
    #[serde(default)]
    priority: i64,
    #[serde(default)]
    state: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    packages: Vec<PackageData>,
    #[serde(default)]
    bundles: Vec<BundleData>,
    #[serde(default)]
    real_data: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PackageData {
    name: String,
    #[serde(default)]
    default_channel: String,
    #[serde(default, rename = "deprecated")]
    _deprecated: Value,
    #[serde(default)]
    get_package_fails: bool,
    #[serde(default)]
    channels: Vec<ChannelData>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChannelData {
    name: String,
    #[serde(default, rename = "deprecated")]
    _deprecated: Value,
    #[serde(default)]
    entries: Vec<EntryData>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EntryData {
    name: String,
    replaces: Option<String>,
    #[serde(default)]
    skips: Vec<String>,
    skip_range: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BundleData {
    name: String,
    package: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    properties: Vec<PropertyData>,
    #[serde(default)]
    dependencies: Vec<PropertyData>,
    #[serde(default)]
    provided_apis: Vec<ApiData>,
    #[serde(default)]
    required_apis: Vec<ApiData>,
    #[serde(default, rename = "deprecated")]
    _deprecated: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PropertyData {
    #[serde(rename = "type")]
    kind: String,
    value: Option<Box<RawValue>>,
    raw: Option<String>,
}

impl PropertyData {
    fn json(&self) -> &str {
        self.raw.as_deref().or_else(|| Some(self.value.as_ref()?.get())).unwrap_or("null")
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApiData {
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    plural: Option<String>,
}

impl ApiData {
    fn api(&self) -> Api {
        Api::new(&*self.group, &*self.version, &*self.kind)
    }

    fn crd(&self) -> CrdReference {
        let plural =
            self.plural.clone().unwrap_or_else(|| format!("{}s", self.kind.to_lowercase()));
        let name = if self.group.is_empty() { plural } else { format!("{plural}.{}", self.group) };
        CrdReference { name, version: self.version.clone(), kind: self.kind.clone() }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SubscriptionData {
    name: String,
    package: String,
    #[serde(default)]
    channel: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    source_namespace: String,
    #[serde(default, rename = "startingCSV")]
    starting_csv: String,
    #[serde(default, rename = "installedCSV")]
    installed_csv: String,
    #[serde(default, rename = "currentCSV")]
    current_csv: String,
    /// Makes the two caches of the original disagree.
    #[serde(default, rename = "onlyLive")]
    _only_live: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CsvData {
    name: String,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    version: String,
    #[serde(default)]
    replaces: String,
    #[serde(default)]
    phase: String,
    #[serde(default)]
    copied: bool,
    properties: Option<Vec<PropertyData>>,
    properties_annotation: Option<String>,
    #[serde(default)]
    owned_crds: Vec<ApiData>,
    #[serde(default)]
    required_crds: Vec<ApiData>,
    #[serde(default)]
    owned_api_services: Vec<ApiData>,
    #[serde(default)]
    required_api_services: Vec<ApiData>,
    #[serde(default)]
    real_data: String,
}

impl Universe {
    /// The content of each catalog that is given in plain data.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.catalogs.iter().map(snapshot).collect()
    }

    /// The world, with the content of its catalogs.
    pub fn world<'a>(
        &'a self,
        snapshots: &'a [Snapshot],
        real: &'a HashMap<String, RealCatalog>,
    ) -> World<'a> {
        World {
            namespace: self.namespace.clone(),
            global_namespace: self.global_namespace.clone(),
            operator_groups: self
                .operator_groups
                .iter()
                .map(|group| OperatorGroup {
                    name: group.name.clone(),
                    fail_forward: group.fail_forward,
                    exclude_global: group.exclude_global == "true",
                })
                .collect(),
            catalogs: self
                .catalogs
                .iter()
                .zip(snapshots)
                .filter(|(catalog, _)| catalog.state != "noCatalogSource")
                .map(|(catalog, snapshot)| CatalogView {
                    key: CatalogKey::new(&*catalog.name, &*catalog.namespace),
                    priority: catalog.priority,
                    content: match &*catalog.state {
                        "noClient" => Content::NotConnected,
                        "listFails" => Content::Failed(catalog.message.clone()),
                        _ => Content::Ready(
                            real.get(&catalog.real_data).map_or(snapshot, |real| &real.snapshot),
                        ),
                    },
                })
                .collect(),
            subscriptions: self.subscriptions.iter().map(subscription).collect(),
            demands: Vec::new(),
            prohibitions: Vec::new(),
            kube_version: None,
            csvs: self
                .csvs
                .iter()
                .filter(|csv| csv.namespace.as_ref().is_none_or(|it| *it == self.namespace))
                .map(|csv| csv_facts(csv, real))
                .collect(),
        }
    }
}

/// A published catalog.
#[derive(Debug)]
pub struct RealCatalog {
    /// Its content.
    pub catalog: std::sync::Arc<mainstay_catalog::Catalog>,
    /// The same, ready for resolution.
    pub snapshot: Snapshot,
}

fn snapshot(catalog: &CatalogData) -> Snapshot {
    let mut builder = SnapshotBuilder::default();
    let mut known = HashMap::new();
    for bundle in &catalog.bundles {
        let properties: Vec<_> = bundle
            .properties
            .iter()
            .map(|property| Property { kind: &property.kind, json: property.json() })
            .collect();
        let dependencies: Vec<_> = bundle
            .dependencies
            .iter()
            .map(|dependency| LegacyDependency { kind: &dependency.kind, json: dependency.json() })
            .collect();
        let provided: Vec<_> = bundle.provided_apis.iter().map(ApiData::api).collect();
        let required: Vec<_> = bundle.required_apis.iter().map(ApiData::api).collect();
        let facts = BundleFacts {
            version: &bundle.version,
            properties: &properties,
            dependencies: &dependencies,
            provided_apis: &provided,
            required_apis: &required,
        };
        known.insert((&bundle.package, &bundle.name), builder.bundle(&bundle.package, &facts));
    }
    for package in catalog.packages.iter().filter(|package| !package.get_package_fails) {
        for channel in &package.channels {
            for entry in &channel.entries {
                let Some(Some(bundle)) = known.get(&(&package.name, &entry.name)) else { continue };
                let skips: Vec<&str> = entry.skips.iter().map(String::as_str).collect();
                builder.entry(
                    bundle,
                    &EntryFacts {
                        name: &entry.name,
                        channel: &channel.name,
                        default_channel: channel.name == package.default_channel,
                        replaces: entry.replaces.as_deref(),
                        skips: &skips,
                        skip_range: entry.skip_range.as_deref(),
                    },
                );
            }
        }
    }
    builder.finish()
}

fn subscription(data: &SubscriptionData) -> Subscription {
    Subscription {
        name: data.name.clone(),
        package: data.package.clone(),
        channel: data.channel.clone(),
        catalog: CatalogKey::new(&*data.source, &*data.source_namespace),
        starting_csv: data.starting_csv.clone(),
        installed_csv: data.installed_csv.clone(),
        current_csv: data.current_csv.clone(),
    }
}

fn csv_facts(data: &CsvData, real: &HashMap<String, RealCatalog>) -> Csv {
    let list = data.properties.as_ref().map(|properties| {
        let items: Vec<String> = properties
            .iter()
            .map(|it| format!("{{\"type\":{},\"value\":{}}}", json!(it.kind), it.json()))
            .collect();
        format!("{{\"properties\":[{}]}}", items.join(","))
    });
    let mut csv = Csv {
        name: data.name.clone(),
        version: parse_tolerant(&data.version).ok(),
        replaces: data.replaces.clone(),
        phase: data.phase.clone(),
        copied: data.copied,
        properties: data.properties_annotation.clone().or(list),
        owned_crds: data.owned_crds.iter().map(ApiData::crd).collect(),
        required_crds: data.required_crds.iter().map(ApiData::crd).collect(),
        owned_apis: data.owned_api_services.iter().map(ApiData::api).collect(),
        required_apis: data.required_api_services.iter().map(ApiData::api).collect(),
    };
    if let Some(real) = real.get(&data.real_data) {
        let bundle = real
            .catalog
            .packages()
            .find_map(|package| package.bundle(&data.name))
            .unwrap_or_else(|| panic!("no bundle {}", data.name));
        csv.version = Some(bundle.version.clone());
        let items: Vec<String> = bundle
            .properties
            .iter()
            .map(|it| format!("{{\"type\":{},\"value\":{}}}", json!(it.kind), it.json))
            .collect();
        csv.properties = Some(format!("{{\"properties\":[{}]}}", items.join(",")));
    }
    csv
}

/// An outcome in the shape of the recorded ones, without `runs`.
pub fn to_json(outcome: &Outcome) -> Value {
    if let Some(failure) = outcome.failures.first() {
        let kind = match failure.kind {
            FailureKind::NotSatisfiable => "NotSatisfiable",
            FailureKind::Error => "Other",
        };
        return json!({"error": failure.message, "errorKind": kind});
    }
    let mut all = serde_json::Map::new();
    let mut put = |name: &str, list: Vec<Value>| {
        if !list.is_empty() {
            all.insert(name.to_owned(), Value::Array(list));
        }
    };
    put("resolved", outcome.resolved.iter().map(chosen).collect());
    put(
        "install",
        outcome.installs.iter().map(|it| json!(outcome.resolved[it.chosen].name)).collect(),
    );
    put(
        "newSubscriptions",
        outcome
            .new_subscriptions
            .iter()
            .map(|it| {
                json!({
                    "name": it.name, "package": it.package, "channel": it.channel,
                    "source": it.catalog.name, "sourceNamespace": it.catalog.namespace,
                    "startingCSV": it.starting_csv,
                })
            })
            .collect(),
    );
    put(
        "updatedSubscriptions",
        outcome
            .updated_subscriptions
            .iter()
            .map(|it| json!({"name": it.name, "currentCSV": it.current_csv}))
            .collect(),
    );
    Value::Object(all)
}

fn chosen(it: &crate::Chosen) -> Value {
    let mut value = json!({
        "name": it.name, "package": it.package, "channel": it.channel,
        "catalog": it.catalog.name, "catalogNamespace": it.catalog.namespace,
    });
    if let Some(version) = &it.version {
        value["version"] = json!(version);
    }
    if let Some(replaces) = &it.replaces {
        value["replaces"] = json!(replaces);
    }
    value
}
