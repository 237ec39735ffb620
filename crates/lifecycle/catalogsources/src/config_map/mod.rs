//! ConfigMap catalogs: three keys with YAML lists, the format before catalog images.
//!
//! ```text
//! packages                   ─► packages, channels ─┐
//! clusterServiceVersions     ─► bundles, edges ─────┼─► documents ─► catalog
//! customResourceDefinitions  ─► manifests ──────────┘
//! ```
//!
//! A channel names its head; the entries below follow from `spec.replaces` of the
//! ClusterServiceVersions. A watch reads the ConfigMap again on every change. If the ConfigMap is
//! deleted or becomes invalid, its last good content stays in use.
//!
//! These catalogs are older than the rules for file-based catalogs, and are read as leniently as
//! upstream reads them. A ClusterServiceVersion may lack its version or API group, two may have the
//! same version, and package names may be any text. An invalid package is left out and reported;
//! the other packages stay.

use crate::store::{self, CatalogStore, SourceState};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use mainstay_api::{names, resources};
use mainstay_catalog::{BlobOrigin, Catalog, CatalogDocuments};
use mainstay_client::{Cache, Selection};
use mainstay_object::{Gvk, NamespacedName, Object, builtin};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

const PACKAGES: &str = "packages";
const CSVS: &str = "clusterServiceVersions";
const CRDS: &str = "customResourceDefinitions";

/// Metadata of the ConfigMap of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConfigMapMetadata {
    pub(crate) uid: String,
    pub(crate) version: String,
    /// The UIDs of its owners.
    pub(crate) owners: Vec<String>,
    pub(crate) labelled: bool,
}

/// A ConfigMap in the cache.
#[derive(Debug, PartialEq, Eq)]
struct CachedConfigMap {
    metadata: ConfigMapMetadata,
    data: BTreeMap<String, String>,
}

impl CachedConfigMap {
    fn of(object: &Object) -> Self {
        let owners = object.owner_references();
        Self {
            metadata: ConfigMapMetadata {
                uid: object.uid().to_owned(),
                version: object.resource_version().to_owned(),
                owners: owners.into_iter().map(|owner| owner.uid).collect(),
                labelled: object.label(names::MANAGED).is_some(),
            },
            data: object.part(&["data"]).unwrap_or_default(),
        }
    }
}

impl CatalogStore {
    /// Follows a ConfigMap, and reads it if `reads` (otherwise a catalog pod reads it); never
    /// returns.
    pub(crate) async fn run_config_map(&self, key: &NamespacedName, name: &str, reads: bool) {
        let Some(cluster) = self.cluster() else { return };
        let changed = Arc::new(Notify::new());
        let (notify, stop) = (Arc::clone(&changed), CancellationToken::new());
        let _stop = stop.clone().drop_guard();
        let selection = Selection::all(builtin::CONFIG_MAP)
            .namespace(&*key.namespace)
            .fields(format!("metadata.name={name}"));
        let cache = Cache::builder(selection, |object| Some(CachedConfigMap::of(object)))
            .subscribe(move |_| notify.notify_one())
            .start(&cluster, stop);
        cache.synced().await;
        let config_map_key = NamespacedName::new(&*key.namespace, name);
        let mut last = None;
        loop {
            match cache.get(&config_map_key) {
                None => {
                    last = None;
                    let why = format!(
                        "failed to get catalog config map {name}: configmaps {} not found",
                        mainstay_gocompat::quote(name)
                    );
                    let missing = Some(why.clone());
                    let state = SourceState {
                        failure: Some(why),
                        missing_config_map: missing,
                        ..SourceState::default()
                    };
                    self.update_state(key, state, None);
                }
                Some(config_map) => {
                    // A change of labels or owners is no change of the content.
                    let same = last.as_ref() == Some(&config_map.data);
                    let state = if same || !reads {
                        SourceState::default()
                    } else {
                        self.read_config_map(key, name, &config_map).await
                    };
                    if same {
                        self.record_config_map(key, &config_map.metadata);
                    } else {
                        last = Some(config_map.data.clone());
                        let metadata = Some(config_map.metadata.clone());
                        self.update_state(key, SourceState { config_map: metadata, ..state }, None);
                    }
                }
            }
            changed.notified().await;
        }
    }

    async fn read_config_map(
        &self,
        key: &NamespacedName,
        name: &str,
        config_map: &Arc<CachedConfigMap>,
    ) -> SourceState {
        let (config_map, modified) = (Arc::clone(config_map), self.modification_time(key));
        let loaded = tokio::task::spawn_blocking(move || {
            catalog(&config_map.data)
                .map(|read| (store::content(read.catalog, modified), read.left_out))
        });
        match loaded.await {
            Ok(Ok((content, left_out))) => {
                let incomplete = !left_out.is_empty();
                let failure = incomplete
                    .then(|| format!("the catalog config map {name}: {}", left_out.join("; ")));
                SourceState {
                    content: Some(content),
                    failure,
                    incomplete,
                    ..SourceState::default()
                }
            }
            Ok(Err(why)) => {
                let failure = Some(format!("the catalog config map {name} cannot be read: {why}"));
                SourceState { failure, ..SourceState::default() }
            }
            Err(error) => {
                SourceState { failure: Some(error.to_string()), ..SourceState::default() }
            }
        }
    }
}

/// The catalog of a ConfigMap.
#[derive(Debug)]
pub(crate) struct ConfigMapCatalog {
    pub(crate) catalog: Arc<Catalog>,
    /// Why packages or parts of packages were left out.
    pub(crate) left_out: Vec<String>,
}

/// A ConfigMap is no catalog.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigMapError {
    /// A key is missing.
    #[error("it has no key {key}")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// The value of a key is no YAML.
    #[error("the key {key}: {source}")]
    ParseKey {
        /// The key.
        key: &'static str,
        /// The parse error.
        source: mainstay_yaml::YamlError,
    },
    /// A key is no list.
    #[error("the key {key} is no list")]
    NotAList {
        /// The key.
        key: &'static str,
    },
    /// Every package is left out; the text is the reason for the first one.
    #[error("{0}")]
    NoPackage(String),
}

/// Why a package is left out.
#[derive(Debug, thiserror::Error)]
enum PackageError {
    /// The head of a channel is not among the ClusterServiceVersions.
    #[error("the head {head} of the channel {channel} is not in the key {CSVS}")]
    MissingHead {
        /// The head.
        head: String,
        /// The channel.
        channel: String,
    },
    /// A CustomResourceDefinition that a ClusterServiceVersion owns is missing.
    #[error("{csv} owns {definition}, which is not in the key {CRDS}")]
    MissingCrd {
        /// The ClusterServiceVersion.
        csv: String,
        /// The CustomResourceDefinition.
        definition: String,
    },
    /// The documents of the package are no valid catalog; the text is the headline of the error.
    #[error("{0}")]
    Load(String),
}

/// Reads the catalog in the keys of a ConfigMap.
///
/// # Errors
/// A key is missing or is no list, or no package can be read.
pub(crate) fn catalog(data: &BTreeMap<String, String>) -> Result<ConfigMapCatalog, ConfigMapError> {
    if !data.contains_key(PACKAGES) {
        return Err(ConfigMapError::MissingKey { key: PACKAGES });
    }
    let (csvs, crds) = (list(data, CSVS)?, list(data, CRDS)?);
    let manifests = Manifests::of(&csvs, &crds);
    let package_list = list(data, PACKAGES)?;
    let (packages, mut left_out) = packages(&package_list);
    let mut declared = CatalogDocuments::default();
    for package in &packages {
        let other_heads: BTreeSet<&str> = packages
            .iter()
            .filter(|other| other.name != package.name)
            .flat_map(|other| other.channels.iter().map(|channel| text(channel, "currentCSV")))
            .collect();
        let read = package_documents(package, &manifests, &other_heads).and_then(|documents| {
            let origin = || BlobOrigin { file: PACKAGES.into(), line: 1 };
            CatalogDocuments::of(documents.into_iter().map(|document| (origin(), document)))
                .map_err(|error| PackageError::Load(error.headline()))
        });
        match read {
            Ok(read) => declared.append(read),
            Err(error) => left_out.push(format!("package {} is left out: {error}", package.name)),
        }
    }
    let (catalog, problems) = declared.check_permissive();
    left_out.extend(
        problems.iter().map(|problem| format!("a package is left out: {}", problem.message)),
    );
    let is_empty = catalog.packages().next().is_none();
    match left_out.first() {
        Some(why) if is_empty => Err(ConfigMapError::NoPackage(why.clone())),
        _ => Ok(ConfigMapCatalog { catalog, left_out }),
    }
}

/// An entry of the key `packages`.
struct ListedPackage<'v> {
    name: &'v str,
    default_channel: &'v str,
    channels: Vec<&'v Value>,
}

/// The packages of the list, and warnings. A package that is listed twice has the channels of both
/// entries; where the entries differ, the last one counts, as in the database that upstream fills
/// from the list.
fn packages(list: &[Value]) -> (Vec<ListedPackage<'_>>, Vec<String>) {
    let (mut packages, mut warnings) = (Vec::<ListedPackage<'_>>::new(), Vec::new());
    for entry in list {
        let name = text(entry, "packageName");
        let channels: Vec<&Value> = items(entry, "channels").collect();
        let default_channel = text(entry, "defaultChannel");
        if let Some(first) = packages.iter_mut().find(|package| package.name == name) {
            let warning = format!("package {name} is listed more than once, its last entry counts");
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
            for channel in channels {
                let same = |other: &&mut &Value| text(other, "name") == text(channel, "name");
                match first.channels.iter_mut().find(same) {
                    Some(earlier) => *earlier = channel,
                    None => first.channels.push(channel),
                }
            }
            if !default_channel.is_empty() {
                first.default_channel = default_channel;
            }
            continue;
        }
        let default_channel = match default_channel {
            "" => channels.first().map(|channel| text(channel, "name")).unwrap_or_default(),
            named => named,
        };
        packages.push(ListedPackage { name, default_channel, channels });
    }
    (packages, warnings)
}

/// The manifests of a ConfigMap by name.
struct Manifests<'v> {
    csvs: BTreeMap<&'v str, &'v Value>,
    /// Several CustomResourceDefinitions may have one name: each ClusterServiceVersion can bring its own.
    crds: BTreeMap<&'v str, Vec<&'v Value>>,
}

impl<'v> Manifests<'v> {
    fn of(csvs: &'v [Value], crds: &'v [Value]) -> Self {
        let name = |manifest: &'v Value| text(&manifest["metadata"], "name");
        let manifests = |list: &'v [Value]| list.iter().filter(|manifest| manifest.is_object());
        let csvs = manifests(csvs).map(|manifest| (name(manifest), manifest)).collect();
        let mut crds_by_name: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for crd in manifests(crds) {
            crds_by_name.entry(name(crd)).or_default().push(crd);
        }
        Self { csvs, crds: crds_by_name }
    }
}

/// The list in a key; empty if the key is missing.
fn list(data: &BTreeMap<String, String>, key: &'static str) -> Result<Vec<Value>, ConfigMapError> {
    let text = data.get(key).map(String::as_str).unwrap_or_default();
    let read = mainstay_yaml::one(text.as_bytes(), &mainstay_yaml::Options::default());
    match read.map_err(|source| ConfigMapError::ParseKey { key, source })? {
        Value::Array(items) => Ok(items),
        Value::Null => Ok(Vec::new()),
        _ => Err(ConfigMapError::NotAList { key }),
    }
}

pub(crate) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

pub(crate) fn items<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    value[field].as_array().into_iter().flatten()
}

/// The documents of a file-based catalog for a package. `other_heads` are the heads of the channels of other
/// packages.
fn package_documents(
    package: &ListedPackage<'_>,
    manifests: &Manifests<'_>,
    other_heads: &BTreeSet<&str>,
) -> Result<Vec<Value>, PackageError> {
    let ListedPackage { name, default_channel, channels } = package;
    let mut documents =
        vec![json!({"schema": "olm.package", "name": name, "defaultChannel": default_channel})];
    let mut bundles = BTreeSet::new();
    for channel in channels {
        let entries = channel_entries(channel, &manifests.csvs, other_heads)?;
        bundles.extend(entries.iter().map(|entry| text(entry, "name").to_owned()));
        documents.push(json!({
            "schema": "olm.channel", "package": name, "name": text(channel, "name"),
            "entries": entries,
        }));
    }
    for bundle in &bundles {
        if let Some(csv) = manifests.csvs.get(bundle.as_str()) {
            documents.push(bundle_document(name, bundle, csv, manifests)?);
        }
    }
    Ok(documents)
}

/// The entries of a channel: its head and the chain of `spec.replaces` below. The chain ends at the
/// head of another package: an entry that replaces that head renames the package, which has no
/// bundles of the other.
fn channel_entries(
    channel: &Value,
    versions: &BTreeMap<&str, &Value>,
    other_heads: &BTreeSet<&str>,
) -> Result<Vec<Value>, PackageError> {
    let head = text(channel, "currentCSV");
    if !versions.contains_key(head) {
        let (head, channel) = (head.to_owned(), text(channel, "name").to_owned());
        return Err(PackageError::MissingHead { head, channel });
    }
    let (mut entries, mut visited) = (Vec::new(), BTreeSet::new());
    let mut at = head;
    let is_here = |name: &str| name == head || !other_heads.contains(name);
    while let Some(csv) = versions.get(at).filter(|_| is_here(at) && visited.insert(at)) {
        let mut entry = json!({"name": at});
        let next = text(&csv["spec"], "replaces");
        if !next.is_empty() {
            entry["replaces"] = next.into();
        }
        let skips: Vec<&Value> = items(&csv["spec"], "skips").collect();
        if !skips.is_empty() {
            entry["skips"] = json!(skips);
        }
        if let Some(range) = csv["metadata"]["annotations"].get(names::SKIP_RANGE) {
            entry["skipRange"] = range.clone();
        }
        entries.push(entry);
        at = next;
    }
    Ok(entries)
}

/// Whether a CustomResourceDefinition has a version: `spec.version` in v1beta1, `spec.versions`
/// otherwise.
fn crd_has_version(definition: &Value, version: &str) -> bool {
    let spec = &definition["spec"];
    text(spec, "version") == version
        || items(spec, "versions").any(|entry| entry["name"] == *version)
}

/// The version of a ClusterServiceVersion without `spec.version`.
const UNVERSIONED: &str = "0.0.0";

/// The GVK `kind` with the version of the manifest's `apiVersion`, which may lack the group:
/// `v1alpha1`.
fn declared_gvk(manifest: &Value, kind: &Gvk) -> Gvk {
    let written = text(manifest, "apiVersion");
    let version = written.rsplit('/').next().filter(|version| !version.is_empty());
    Gvk { version: version.unwrap_or(&kind.version).to_owned(), ..kind.clone() }
}

/// A manifest with `apiVersion` and `kind` set. Its key in the ConfigMap decides the kind; older
/// packages leave out the group or both fields.
fn with_gvk(manifest: &Value, kind: &Gvk) -> Value {
    let mut manifest = manifest.clone();
    manifest["apiVersion"] = kind.api_version().into();
    manifest["kind"] = kind.kind.as_str().into();
    manifest
}

/// A bundle document: the ClusterServiceVersion, the CustomResourceDefinitions that it owns, and
/// its API properties.
fn bundle_document(
    package: &str,
    name: &str,
    csv: &Value,
    manifests: &Manifests<'_>,
) -> Result<Value, PackageError> {
    let spec = &csv["spec"];
    // Go reads a missing version as its zero value.
    let version = match &spec["version"] {
        Value::Null => UNVERSIONED,
        version => version.as_str().filter(|version| !version.is_empty()).unwrap_or(UNVERSIONED),
    };
    let mut properties =
        vec![json!({"type": "olm.package", "value": {"packageName": package, "version": version}})];
    let mut add = |property: Value| {
        if !properties.contains(&property) {
            properties.push(property);
        }
    };
    for (list, kind) in [("owned", "olm.gvk"), ("required", "olm.gvk.required")] {
        for owned in items(&spec["customresourcedefinitions"], list) {
            let group = text(owned, "name").split_once('.').map_or("", |parts| parts.1);
            let api = json!({"group": group, "kind": text(owned, "kind"), "version": text(owned, "version")});
            add(json!({"type": kind, "value": api}));
        }
        for owned in items(&spec["apiservicedefinitions"], list) {
            let api = json!({
                "group": text(owned, "group"), "kind": text(owned, "kind"),
                "version": text(owned, "version"),
            });
            add(json!({"type": kind, "value": api}));
        }
    }
    let mut owned: BTreeMap<&str, &Value> = BTreeMap::new();
    for owner in items(&spec["customresourcedefinitions"], "owned") {
        let kind = text(owner, "name");
        let all = manifests.crds.get(kind).map_or(&[][..], Vec::as_slice);
        let matching = all.iter().rev().find(|crd| crd_has_version(crd, text(owner, "version")));
        let Some(definition) = matching.or(all.last()) else {
            let (csv, definition) = (name.to_owned(), kind.to_owned());
            return Err(PackageError::MissingCrd { csv, definition });
        };
        owned.entry(kind).or_insert(definition);
    }
    let csv = with_gvk(csv, &resources::CLUSTER_SERVICE_VERSION.gvk());
    let crd = builtin::CUSTOM_RESOURCE_DEFINITION.gvk();
    let owned =
        owned.into_values().map(|manifest| with_gvk(manifest, &declared_gvk(manifest, &crd)));
    for manifest in std::iter::once(csv).chain(owned) {
        let data = STANDARD.encode(manifest.to_string());
        add(json!({"type": "olm.bundle.object", "value": {"data": data}}));
    }
    Ok(json!({"schema": "olm.bundle", "package": package, "name": name, "properties": properties}))
}

#[cfg(test)]
mod tests;
