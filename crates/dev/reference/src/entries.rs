//! Entries of the reference resolver: existing operators, then the entries of each catalog.

use crate::properties::BundleProperties;
use mainstay_resolver::{
    BundleProperty, CatalogContent, CatalogKey, CrdReference, EntryView, ExistingCsv, OperatorApi,
    ResolutionInput,
};
use mainstay_version::Version;
use serde_json::{Value, json};

/// A catalog, or the virtual catalog of existing operators.
pub(crate) struct Source {
    pub key: CatalogKey,
    pub priority: i64,
    /// Whether it can be read.
    pub ready: bool,
}

/// The place of a bundle in a channel, or an existing operator.
pub(crate) struct Entry<'a> {
    /// Index of its source; zero is the virtual catalog of existing operators.
    pub source: usize,
    pub name: String,
    pub package: String,
    pub channel: String,
    pub default_channel: bool,
    pub replaces: Option<String>,
    pub skips: Vec<String>,
    pub version: Option<Version>,
    pub properties: BundleProperties,
    /// The entry of the snapshot, which evaluates the `skipRange`.
    pub view: Option<EntryView<'a>>,
    /// For an existing operator, whether it is the `installedCSV` of a Subscription.
    pub subscribed: bool,
}

impl Entry<'_> {
    /// Whether it is a direct successor of the installed entry.
    pub(crate) fn follows(&self, installed: &Entry<'_>) -> bool {
        let in_range = match (self.view, &installed.version) {
            (Some(view), Some(version)) => view.skips_version(version),
            _ => false,
        };
        in_range
            || self.replaces.as_ref() == Some(&installed.name)
            || self.skips.contains(&installed.name)
    }
}

/// The existing operators cannot be read, so that the whole namespace fails.
#[derive(Debug)]
pub(crate) struct ExistingError;

/// The sources, in the order of preference of an existing operator.
pub(crate) fn sources(input: &ResolutionInput<'_>, exclude_global: bool) -> Vec<Source> {
    let mut sources: Vec<Source> = input
        .catalogs
        .iter()
        .filter(|catalog| {
            let namespace = &catalog.key.namespace;
            *namespace == input.namespace
                || (*namespace == input.global_namespace && !exclude_global)
        })
        .map(|catalog| Source {
            key: catalog.key.clone(),
            priority: catalog.priority,
            ready: matches!(catalog.content, CatalogContent::Ready(_)),
        })
        .collect();
    sources.sort_by_key(|source| {
        let CatalogKey { name, namespace } = source.key.clone();
        (std::cmp::Reverse(source.priority), namespace != input.namespace, name, namespace)
    });
    let own = CatalogKey::new("@existing", &*input.namespace);
    sources.insert(0, Source { key: own, priority: 0, ready: true });
    sources
}

/// All entries of all sources.
pub(crate) fn entries<'a>(
    input: &ResolutionInput<'a>,
    sources: &[Source],
    fail_forward: bool,
) -> Result<Vec<Entry<'a>>, ExistingError> {
    let mut entries = existing(input, fail_forward)?;
    for (at, source) in sources.iter().enumerate().skip(1) {
        let content = input.catalogs.iter().find(|catalog| catalog.key == source.key);
        let Some(CatalogContent::Ready(snapshot)) = content.map(|content| &content.content) else {
            continue;
        };
        for view in snapshot.entries() {
            let properties = view.properties().map(|BundleProperty { kind, json }| (kind, json));
            let mut properties = BundleProperties::read(properties);
            if properties.min_kube_version.is_none() {
                properties.min_kube_version = view.min_kube_version().cloned();
            }
            entries.push(Entry {
                source: at,
                name: view.name().to_owned(),
                package: view.package().to_owned(),
                channel: view.channel().to_owned(),
                default_channel: view.default_channel(),
                replaces: view.replaces().map(str::to_owned),
                skips: view.skips().map(str::to_owned).collect(),
                version: view.version().cloned(),
                properties,
                view: Some(view),
                subscribed: false,
            });
        }
    }
    Ok(entries)
}

fn existing<'a>(
    input: &ResolutionInput<'a>,
    fail_forward: bool,
) -> Result<Vec<Entry<'a>>, ExistingError> {
    let mut csvs: Vec<&ExistingCsv> = input.csvs.iter().filter(|csv| !csv.copied).collect();
    csvs.sort_by_key(|csv| &csv.name);
    let mut entries = Vec::new();
    for csv in csvs {
        if fail_forward && ends_in_failure(input, csv)? && csv.phase == "Replacing" {
            continue;
        }
        let properties = bundle_properties(input, csv)?;
        entries.push(Entry {
            source: 0,
            name: csv.name.clone(),
            package: properties.packages.last().map(|(name, _)| name.clone()).unwrap_or_default(),
            channel: String::new(),
            default_channel: false,
            replaces: None,
            skips: Vec::new(),
            version: Some(csv.version.clone().unwrap_or_else(|| Version::new(0, 0, 0))),
            properties,
            view: None,
            subscribed: input
                .subscriptions
                .iter()
                .any(|subscription| subscription.installed_csv == csv.name),
        });
    }
    Ok(entries)
}

/// Whether the chain of `ClusterServiceVersion`s that replace `csv` ends with a failed one. All but
/// the last must be in the phase `Replacing`.
fn ends_in_failure(input: &ResolutionInput<'_>, csv: &ExistingCsv) -> Result<bool, ExistingError> {
    let mut chain = vec![csv];
    loop {
        let last = chain[chain.len() - 1];
        // Of several successors the last by name counts.
        let next =
            input.csvs.iter().filter(|csv| !csv.replaces.is_empty() && csv.replaces == last.name);
        let Some(next) = next.max_by_key(|csv| &csv.name) else {
            return Ok(last.phase == "Failed");
        };
        if last.phase != "Replacing" || chain.iter().any(|csv| csv.name == next.name) {
            return Err(ExistingError);
        }
        chain.push(next);
    }
}

/// The properties of an existing operator: those of its annotation, otherwise derived from its
/// lists.
fn bundle_properties(
    input: &ResolutionInput<'_>,
    csv: &ExistingCsv,
) -> Result<BundleProperties, ExistingError> {
    let owned = apis(&csv.owned_crds, &csv.owned_apis)?;
    let required = apis(&csv.required_crds, &csv.required_apis)?;
    let mut properties: Vec<(String, String)> = Vec::new();
    if let Some(text) = &csv.properties {
        #[derive(serde::Deserialize)]
        struct List {
            properties: Option<Vec<Item>>,
        }
        #[derive(serde::Deserialize)]
        struct Item {
            #[serde(rename = "type", default)]
            kind: String,
            #[serde(default)]
            value: Value,
        }
        let list: List = serde_json::from_str(text).map_err(|_| ExistingError)?;
        for item in list.properties.into_iter().flatten() {
            properties.push((item.kind, item.value.to_string()));
        }
    } else {
        let value = |api: &OperatorApi| {
            json!({"group": api.group, "version": api.version, "kind": api.kind}).to_string()
        };
        properties.extend(owned.iter().map(|api| ("olm.gvk".to_owned(), value(api))));
        properties.extend(required.iter().map(|api| ("olm.gvk.required".to_owned(), value(api))));
        let mut packages: Vec<&String> = input
            .subscriptions
            .iter()
            .filter(|subscription| {
                subscription.installed_csv == csv.name && !subscription.package.is_empty()
            })
            .map(|subscription| &subscription.package)
            .collect();
        packages.sort();
        packages.dedup();
        if let [package] = packages.as_slice() {
            let version = csv.version.as_ref().map(ToString::to_string).unwrap_or_default();
            let version = if version == "0.0.0" { String::new() } else { version };
            let value = json!({"packageName": package, "version": version});
            properties.push(("olm.package".to_owned(), value.to_string()));
        }
    }
    Ok(BundleProperties::read(properties.iter().map(|(kind, json)| (kind.as_str(), json.as_str()))))
}

fn apis(crds: &[CrdReference], served: &[OperatorApi]) -> Result<Vec<OperatorApi>, ExistingError> {
    let mut all = served.to_vec();
    for crd in crds {
        let (_, group) = crd.name.split_once('.').ok_or(ExistingError)?;
        all.push(OperatorApi::new(group, &*crd.version, &*crd.kind));
    }
    all.sort();
    all.dedup();
    Ok(all)
}
