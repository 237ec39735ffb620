//! Conversions between the JSON format and the resolution input.

use super::data::{
    ApiData, BundleData, CatalogData, ChannelData, CsvData, DemandData, EntryData, GroupData,
    LIST_FAILS, NO_CATALOG_SOURCE, NO_CLIENT, PackageData, ProhibitionData, PropertyData,
    SubscriptionData, Universe,
};
use super::read::UniverseError;
use crate::{
    Api, BundleFacts, CatalogKey, CatalogView, Content, CrdReference, Csv, Demand, EntryFacts,
    LegacyDependency, OperatorGroup, Prohibited, Prohibition, Property, Snapshot, SnapshotBuilder,
    Subscription, World,
};
use mainstay_catalog::Catalog;
use mainstay_gocompat::quote;
use mainstay_version::{Range, parse_tolerant};
use serde_json::json;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A published catalog.
#[derive(Debug)]
pub struct RealCatalog {
    /// Its content.
    pub catalog: Arc<Catalog>,
    /// The same content, indexed for resolution.
    pub snapshot: Snapshot,
}

impl Universe {
    /// The snapshots of all catalogs in plain data, in their order.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.catalogs.iter().map(CatalogData::snapshot).collect()
    }

    /// The names of the published catalogs that it refers to.
    pub fn real_data(&self) -> BTreeSet<&str> {
        let catalogs = self.catalogs.iter().map(|catalog| &*catalog.real_data);
        let csvs = self.csvs.iter().map(|csv| &*csv.real_data);
        catalogs.chain(csvs).filter(|name| !name.is_empty()).collect()
    }

    /// The resolution input, with the content of its catalogs.
    ///
    /// # Errors
    /// If a published catalog is not in `real`, or does not have a named bundle; if a range or
    /// version cannot be read.
    pub fn world<'a>(
        &'a self,
        snapshots: &'a [Snapshot],
        real: &'a HashMap<String, RealCatalog>,
    ) -> Result<World<'a>, UniverseError> {
        let mut world = World {
            namespace: self.namespace.clone(),
            global_namespace: self.global_namespace.clone(),
            operator_groups: self.operator_groups.iter().map(GroupData::group).collect(),
            subscriptions: self.subscriptions.iter().map(SubscriptionData::subscription).collect(),
            ..World::default()
        };
        for (at, (catalog, snapshot)) in self.catalogs.iter().zip(snapshots).enumerate() {
            let content = match &*catalog.state {
                NO_CATALOG_SOURCE => continue,
                NO_CLIENT => Content::NotConnected,
                LIST_FAILS => Content::Failed(catalog.message.clone()),
                _ if catalog.real_data.is_empty() => Content::Ready(snapshot),
                _ => Content::Ready(
                    &published(real, &catalog.real_data, || format!("catalogs[{at}].realData"))?
                        .snapshot,
                ),
            };
            world.catalogs.push(CatalogView {
                key: CatalogKey::new(&*catalog.name, &*catalog.namespace),
                priority: catalog.priority,
                content,
            });
        }
        for (at, csv) in self.csvs.iter().enumerate() {
            if csv.namespace.as_ref().is_none_or(|namespace| *namespace == self.namespace) {
                world.csvs.push(csv.csv(at, real)?);
            }
        }
        for (at, demand) in self.demands.iter().enumerate() {
            let range = match &*demand.range {
                "" => None,
                text => Some(Range::parse(text).map_err(|error| {
                    field_error(
                        format!("demands[{at}].range"),
                        error.to_string(),
                        "correct the range",
                    )
                })?),
            };
            world.demands.push(Demand { package: demand.package.clone(), range });
        }
        for (at, prohibition) in self.prohibitions.iter().enumerate() {
            world.prohibitions.push(prohibition.prohibition(at)?);
        }
        if !self.kube_version.is_empty() {
            let version = parse_tolerant(&self.kube_version).map_err(|error| {
                field_error("kubeVersion".to_owned(), error.to_string(), "write it as 1.35.0")
            })?;
            world.kube_version = Some(version);
        }
        Ok(world)
    }

    /// The plain data of a world. `content` gives the content of a catalog. A readable catalog for
    /// which it gives none is written as one without connection.
    pub fn of(world: &World<'_>, content: impl Fn(&CatalogKey) -> Option<CatalogData>) -> Self {
        let catalog = |view: &CatalogView<'_>| {
            let content_data = match &view.content {
                Content::Ready(_) => content(&view.key),
                Content::NotConnected | Content::Failed(_) => None,
            };
            let (state, message) = match &view.content {
                Content::Ready(_) if content_data.is_some() => ("", String::new()),
                Content::Ready(_) | Content::NotConnected => (NO_CLIENT, String::new()),
                Content::Failed(message) => (LIST_FAILS, message.clone()),
            };
            CatalogData {
                name: view.key.name.clone(),
                namespace: view.key.namespace.clone(),
                priority: view.priority,
                state: state.to_owned(),
                message,
                ..content_data.unwrap_or_default()
            }
        };
        let mut universe = Self {
            namespace: world.namespace.clone(),
            global_namespace: world.global_namespace.clone(),
            kube_version: world.kube_version.as_ref().map(ToString::to_string).unwrap_or_default(),
            operator_groups: world.operator_groups.iter().map(GroupData::of).collect(),
            catalogs: world.catalogs.iter().map(catalog).collect(),
            subscriptions: world.subscriptions.iter().map(SubscriptionData::of).collect(),
            csvs: world.csvs.iter().map(CsvData::of).collect(),
            demands: world.demands.iter().map(DemandData::of).collect(),
            prohibitions: world.prohibitions.iter().map(ProhibitionData::of).collect(),
        };
        universe.catalogs.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        universe.subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
        universe.csvs.sort_by(|a, b| a.name.cmp(&b.name));
        universe
    }
}

impl Universe {
    /// The Subscriptions whose InstallPlans need manual approval.
    pub fn manual(&self) -> BTreeSet<String> {
        let manual = self
            .subscriptions
            .iter()
            .filter(|subscription| subscription.install_plan_approval == MANUAL);
        manual.map(|subscription| subscription.name.clone()).collect()
    }

    /// The universe with manual approval of the InstallPlans of these Subscriptions.
    #[must_use]
    pub fn with_manual(mut self, names: &BTreeSet<String>) -> Self {
        for subscription in
            self.subscriptions.iter_mut().filter(|subscription| names.contains(&subscription.name))
        {
            MANUAL.clone_into(&mut subscription.install_plan_approval);
        }
        self
    }
}

/// The `spec.installPlanApproval` of manual approval.
const MANUAL: &str = "Manual";

fn field_error(field: String, message: String, remedy: &str) -> UniverseError {
    UniverseError { line: 0, column: 0, field, message, remedy: remedy.to_owned() }
}

fn published<'a>(
    real: &'a HashMap<String, RealCatalog>,
    name: &str,
    field: impl Fn() -> String,
) -> Result<&'a RealCatalog, UniverseError> {
    real.get(name).ok_or_else(|| {
        let message = format!("the published catalog {} is not at hand", quote(name));
        field_error(field(), message, "bring its content along")
    })
}

impl CatalogData {
    /// The snapshot of the plain data, without that of a published catalog.
    pub fn snapshot(&self) -> Snapshot {
        let mut builder = SnapshotBuilder::default();
        let mut known = HashMap::new();
        for bundle in &self.bundles {
            let properties: Vec<_> = bundle
                .properties
                .iter()
                .map(|property| Property { kind: &property.kind, json: property.json() })
                .collect();
            let dependencies: Vec<_> = bundle
                .dependencies
                .iter()
                .map(|dependency| LegacyDependency {
                    kind: &dependency.kind,
                    json: dependency.json(),
                })
                .collect();
            let provided: Vec<_> = bundle.provided_apis.iter().map(ApiData::api).collect();
            let required: Vec<_> = bundle.required_apis.iter().map(ApiData::api).collect();
            let facts = BundleFacts {
                version: &bundle.version,
                properties: &properties,
                dependencies: &dependencies,
                provided_apis: &provided,
                required_apis: &required,
                min_kube_version: &bundle.min_kube_version,
            };
            known.insert((&bundle.package, &bundle.name), builder.bundle(&bundle.package, &facts));
        }
        for package in self.packages.iter().filter(|package| !package.get_package_fails) {
            for channel in &package.channels {
                for entry in &channel.entries {
                    let Some(Some(bundle)) = known.get(&(&package.name, &entry.name)) else {
                        continue;
                    };
                    let skips: Vec<&str> = entry.skips.iter().map(String::as_str).collect();
                    let facts = EntryFacts {
                        name: &entry.name,
                        channel: &channel.name,
                        default_channel: channel.name == package.default_channel,
                        replaces: entry.replaces.as_deref(),
                        skips: &skips,
                        skip_range: entry.skip_range.as_deref(),
                    };
                    builder.entry(bundle, &facts);
                }
            }
        }
        builder.finish()
    }

    /// The plain data of a file-based catalog, without name, namespace and priority.
    pub fn of(catalog: &Catalog) -> Self {
        let packages = catalog.packages().map(|package| PackageData {
            name: package.name.to_string(),
            default_channel: package.default_channel.to_string(),
            channels: package
                .channels()
                .map(|channel| ChannelData {
                    name: channel.name.to_string(),
                    entries: channel.entries().iter().map(entry).collect(),
                    ..ChannelData::default()
                })
                .collect(),
            ..PackageData::default()
        });
        let bundles = catalog.packages().flat_map(|package| {
            package.bundles().map(|bundle| BundleData {
                name: bundle.name.to_string(),
                package: package.name.to_string(),
                version: bundle.version.to_string(),
                properties: bundle
                    .properties
                    .iter()
                    .map(|property| PropertyData::new(&*property.kind, &property.json))
                    .collect(),
                min_kube_version: bundle.min_kube_version.as_deref().unwrap_or_default().to_owned(),
                ..BundleData::default()
            })
        });
        Self { packages: packages.collect(), bundles: bundles.collect(), ..Self::default() }
    }
}

fn entry(entry: &mainstay_catalog::CatalogEntry) -> EntryData {
    EntryData {
        name: entry.name.to_string(),
        replaces: entry.replaces.as_deref().map(str::to_owned),
        skips: entry.skips.iter().map(|skip| (**skip).to_owned()).collect(),
        skip_range: entry.skip_range.as_deref().map(str::to_owned),
    }
}

impl GroupData {
    fn group(&self) -> OperatorGroup {
        OperatorGroup {
            name: self.name.clone(),
            fail_forward: self.fail_forward,
            exclude_global: self.exclude_global == "true",
        }
    }

    fn of(group: &OperatorGroup) -> Self {
        Self {
            name: group.name.clone(),
            fail_forward: group.fail_forward,
            exclude_global: if group.exclude_global { "true".to_owned() } else { String::new() },
        }
    }
}

impl ApiData {
    fn api(&self) -> Api {
        Api::new(&*self.group, &*self.version, &*self.kind)
    }

    fn of(api: &Api) -> Self {
        Self {
            group: api.group.clone(),
            version: api.version.clone(),
            kind: api.kind.clone(),
            plural: None,
        }
    }

    fn crd(&self) -> CrdReference {
        let plural =
            self.plural.clone().unwrap_or_else(|| format!("{}s", self.kind.to_lowercase()));
        let name = if self.group.is_empty() { plural } else { format!("{plural}.{}", self.group) };
        CrdReference { name, version: self.version.clone(), kind: self.kind.clone() }
    }

    fn of_crd(crd: &CrdReference) -> Self {
        let (plural, group) = crd.name.split_once('.').unwrap_or((&crd.name, ""));
        Self {
            group: group.to_owned(),
            version: crd.version.clone(),
            kind: crd.kind.clone(),
            plural: Some(plural.to_owned()),
        }
    }
}

impl SubscriptionData {
    fn subscription(&self) -> Subscription {
        Subscription {
            name: self.name.clone(),
            package: self.package.clone(),
            channel: self.channel.clone(),
            catalog: CatalogKey::new(&*self.source, &*self.source_namespace),
            starting_csv: self.starting_csv.clone(),
            restores: false,
            installed_csv: self.installed_csv.clone(),
            current_csv: self.current_csv.clone(),
        }
    }

    fn of(subscription: &Subscription) -> Self {
        Self {
            name: subscription.name.clone(),
            package: subscription.package.clone(),
            channel: subscription.channel.clone(),
            source: subscription.catalog.name.clone(),
            source_namespace: subscription.catalog.namespace.clone(),
            starting_csv: subscription.starting_csv.clone(),
            installed_csv: subscription.installed_csv.clone(),
            current_csv: subscription.current_csv.clone(),
            install_plan_approval: String::new(),
            only_live: false,
        }
    }
}

impl CsvData {
    fn csv(&self, at: usize, real: &HashMap<String, RealCatalog>) -> Result<Csv, UniverseError> {
        let list = self.properties.as_ref().map(|properties| {
            annotation(properties.iter().map(|property| (&*property.kind, property.json())))
        });
        let mut csv = Csv {
            name: self.name.clone(),
            version: parse_tolerant(&self.version).ok(),
            replaces: self.replaces.clone(),
            phase: self.phase.clone(),
            copied: self.copied,
            properties: self.properties_annotation.clone().or(list),
            owned_crds: self.owned_crds.iter().map(ApiData::crd).collect(),
            required_crds: self.required_crds.iter().map(ApiData::crd).collect(),
            owned_apis: self.owned_api_services.iter().map(ApiData::api).collect(),
            required_apis: self.required_api_services.iter().map(ApiData::api).collect(),
        };
        if !self.real_data.is_empty() {
            let field = || format!("csvs[{at}].realData");
            let catalog = &published(real, &self.real_data, field)?.catalog;
            let bundle = catalog.packages().find_map(|package| package.bundle(&self.name));
            let bundle = bundle.ok_or_else(|| {
                let message = format!(
                    "the published catalog {} has no bundle {}",
                    quote(&self.real_data),
                    quote(&self.name)
                );
                field_error(field(), message, "name one of its bundles")
            })?;
            csv.version = Some(bundle.version.clone());
            csv.properties = Some(annotation(
                bundle.properties.iter().map(|property| (&*property.kind, &*property.json)),
            ));
        }
        Ok(csv)
    }

    fn of(csv: &Csv) -> Self {
        Self {
            name: csv.name.clone(),
            namespace: None,
            version: csv.version.as_ref().map(ToString::to_string).unwrap_or_default(),
            replaces: csv.replaces.clone(),
            phase: csv.phase.clone(),
            copied: csv.copied,
            properties: None,
            properties_annotation: csv.properties.clone(),
            owned_crds: csv.owned_crds.iter().map(ApiData::of_crd).collect(),
            required_crds: csv.required_crds.iter().map(ApiData::of_crd).collect(),
            owned_api_services: csv.owned_apis.iter().map(ApiData::of).collect(),
            required_api_services: csv.required_apis.iter().map(ApiData::of).collect(),
            real_data: String::new(),
        }
    }
}

/// The text of the annotation `operatorframework.io/properties`.
fn annotation<'a>(properties: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let items: Vec<String> = properties
        .map(|(kind, json)| format!("{{\"type\":{},\"value\":{json}}}", json!(kind)))
        .collect();
    format!("{{\"properties\":[{}]}}", items.join(","))
}

impl DemandData {
    fn of(demand: &Demand) -> Self {
        Self {
            package: demand.package.clone(),
            range: demand.range.as_ref().map(|range| range.as_str().to_owned()).unwrap_or_default(),
        }
    }
}

impl ProhibitionData {
    fn prohibition(&self, at: usize) -> Result<Prohibition, UniverseError> {
        let what = match (&self.package, &self.bundle, &self.outside_of) {
            (Some(package), None, None) => Prohibited::Package(package.clone()),
            (None, Some(bundle), None) => Prohibited::Bundle(bundle.clone()),
            (None, None, Some(packages)) => {
                Prohibited::OutsideOf(packages.iter().cloned().collect())
            }
            _ => {
                return Err(field_error(
                    format!("prohibitions[{at}]"),
                    "it does not say what is prohibited, or says it twice".to_owned(),
                    "give one of `package`, `bundle` and `outsideOf`",
                ));
            }
        };
        Ok(Prohibition { what, message: self.message.clone() })
    }

    fn of(prohibition: &Prohibition) -> Self {
        let mut data = Self { message: prohibition.message.clone(), ..Self::default() };
        match &prohibition.what {
            Prohibited::Package(package) => data.package = Some(package.clone()),
            Prohibited::Bundle(bundle) => data.bundle = Some(bundle.clone()),
            Prohibited::OutsideOf(packages) => {
                data.outside_of = Some(packages.iter().cloned().collect());
            }
        }
        data
    }
}
