//! Catalogs in `ConfigMaps`: three keys with lists, as they were written before there were images.
//!
//! ```text
//! packages                   ─► packages, channels ─┐
//! clusterServiceVersions     ─► bundles, edges ─────┼─► documents ─► catalog
//! customResourceDefinitions  ─► manifests ──────────┘
//! ```
//!
//! A channel names its head; what is below it follows from what `ClusterServiceVersions` say that they
//! replace. The ConfigMap is watched, so it is read again the moment it changes. One that goes, or that
//! cannot be read, leaves what it last said.
//!
//! Such catalogs are older than the rules for file-based ones, and are read as leniently as the original
//! reads them: a ClusterServiceVersion need not have a version or its API group, two may have one version,
//! and package names may be any text. A package that cannot be read is left out, and reported; it never
//! takes the others away.

use crate::store::{self, CatalogState, CatalogStore};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use mainstay_api::{names, resources};
use mainstay_catalog::{Catalog, Declared, Origin};
use mainstay_client::{Cache, Selection};
use mainstay_object::{Gvk, NamespacedName, Object, known};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

const PACKAGES: &str = "packages";
const VERSIONS: &str = "clusterServiceVersions";
const DEFINITIONS: &str = "customResourceDefinitions";

/// What is known of the ConfigMap that a catalog is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadConfigMap {
    pub(crate) uid: String,
    pub(crate) version: String,
    /// The uids of its owners.
    pub(crate) owners: Vec<String>,
    pub(crate) labelled: bool,
}

/// A ConfigMap as it was seen.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    read: ReadConfigMap,
    data: BTreeMap<String, String>,
}

impl Seen {
    fn of(object: &Object) -> Self {
        let owners = object.owner_references();
        Self {
            read: ReadConfigMap {
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
    /// Follows a ConfigMap, and reads it unless a pod does; never returns.
    pub(crate) async fn run_config_map(&self, key: &NamespacedName, name: &str, reads: bool) {
        let Some(cluster) = self.cluster() else { return };
        let changed = Arc::new(Notify::new());
        let (hear, stop) = (Arc::clone(&changed), CancellationToken::new());
        let _stop = stop.clone().drop_guard();
        let selection = Selection::all(known::CONFIG_MAP)
            .namespace(&*key.namespace)
            .fields(format!("metadata.name={name}"));
        let cache = Cache::builder(selection, |object| Some(Seen::of(object)))
            .subscribe(move |_| hear.notify_one())
            .start(&cluster, stop);
        cache.synced().await;
        let at = NamespacedName::new(&*key.namespace, name);
        let mut last = None;
        loop {
            match cache.get(&at) {
                None => {
                    last = None;
                    let why = format!(
                        "failed to get catalog config map {name}: configmaps {} not found",
                        mainstay_gocompat::quote(name)
                    );
                    let missing = Some(why.clone());
                    let lost =
                        CatalogState { failure: Some(why), missing, ..CatalogState::default() };
                    self.take(key, lost, None);
                }
                Some(seen) => {
                    // Labels and owners are no content.
                    let same = last.as_ref() == Some(&seen.data);
                    let state = if same || !reads {
                        CatalogState::default()
                    } else {
                        self.read_config_map(key, name, &seen).await
                    };
                    if same {
                        self.note(key, &seen.read);
                    } else {
                        last = Some(seen.data.clone());
                        let config_map = Some(seen.read.clone());
                        self.take(key, CatalogState { config_map, ..state }, None);
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
        seen: &Arc<Seen>,
    ) -> CatalogState {
        let (seen, modified) = (Arc::clone(seen), self.modified(key));
        let made = tokio::task::spawn_blocking(move || {
            catalog(&seen.data).map(|read| (store::content(read.catalog, modified), read.left_out))
        });
        match made.await {
            Ok(Ok((content, left_out))) => {
                let incomplete = !left_out.is_empty();
                let failure = incomplete
                    .then(|| format!("the catalog config map {name}: {}", left_out.join("; ")));
                CatalogState {
                    content: Some(content),
                    failure,
                    incomplete,
                    ..CatalogState::default()
                }
            }
            Ok(Err(why)) => {
                let failure = Some(format!("the catalog config map {name} cannot be read: {why}"));
                CatalogState { failure, ..CatalogState::default() }
            }
            Err(error) => {
                CatalogState { failure: Some(error.to_string()), ..CatalogState::default() }
            }
        }
    }
}

/// What a ConfigMap offers.
#[derive(Debug)]
pub(crate) struct ReadCatalog {
    pub(crate) catalog: Arc<Catalog>,
    /// Why packages, or parts of them, were left out.
    pub(crate) left_out: Vec<String>,
}

/// A ConfigMap has no catalog.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigMapError {
    /// It lacks a key.
    #[error("it has no key {key}")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// A key is no YAML.
    #[error("the key {key}: {source}")]
    ParseKey {
        /// The key.
        key: &'static str,
        /// Why not.
        source: mainstay_yaml::YamlError,
    },
    /// A key is no list.
    #[error("the key {key} is no list")]
    NoList {
        /// The key.
        key: &'static str,
    },
    /// Every package is left out: why the first one is.
    #[error("{0}")]
    NoPackage(String),
}

/// A package is left out.
#[derive(Debug, thiserror::Error)]
enum PackageError {
    /// The head of a channel is not there.
    #[error("the head {head} of the channel {channel} is not in the key {VERSIONS}")]
    MissingHead {
        /// The head.
        head: String,
        /// The channel.
        channel: String,
    },
    /// A CustomResourceDefinition that a ClusterServiceVersion owns is not there.
    #[error("{csv} owns {definition}, which is not in the key {DEFINITIONS}")]
    MissingDefinition {
        /// The ClusterServiceVersion.
        csv: String,
        /// The CustomResourceDefinition.
        definition: String,
    },
    /// The documents that the package makes are no catalog; the headline of the error.
    #[error("{0}")]
    Load(String),
}

/// Reads the catalog that the keys of a ConfigMap make.
///
/// # Errors
/// A key is missing or is no list, or not one of the packages can be read.
pub(crate) fn catalog(data: &BTreeMap<String, String>) -> Result<ReadCatalog, ConfigMapError> {
    if !data.contains_key(PACKAGES) {
        return Err(ConfigMapError::MissingKey { key: PACKAGES });
    }
    let (versions, definitions) = (list(data, VERSIONS)?, list(data, DEFINITIONS)?);
    let manifests = Manifests::of(&versions, &definitions);
    let listed = list(data, PACKAGES)?;
    let (packages, mut left_out) = packages(&listed);
    let mut declared = Declared::default();
    for package in &packages {
        let elsewhere: BTreeSet<&str> = packages
            .iter()
            .filter(|other| other.name != package.name)
            .flat_map(|other| other.channels.iter().map(|channel| text(channel, "currentCSV")))
            .collect();
        let read = documents(package, &manifests, &elsewhere).and_then(|documents| {
            let origin = || Origin { file: PACKAGES.into(), line: 1 };
            Declared::of(documents.into_iter().map(|document| (origin(), document)))
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
    let nothing = catalog.packages().next().is_none();
    match left_out.first() {
        Some(why) if nothing => Err(ConfigMapError::NoPackage(why.clone())),
        _ => Ok(ReadCatalog { catalog, left_out }),
    }
}

/// A package as the key lists it.
struct ListedPackage<'v> {
    name: &'v str,
    default_channel: &'v str,
    channels: Vec<&'v Value>,
}

/// The packages of a list, and what is wrong with it. One that is listed twice has the channels of both
/// entries; the last entry decides where they differ, as in the database that the original fills from the
/// list.
fn packages(list: &[Value]) -> (Vec<ListedPackage<'_>>, Vec<String>) {
    let (mut packages, mut wrong) = (Vec::<ListedPackage<'_>>::new(), Vec::new());
    for entry in list {
        let name = text(entry, "packageName");
        let channels: Vec<&Value> = items(entry, "channels").collect();
        let default_channel = text(entry, "defaultChannel");
        if let Some(first) = packages.iter_mut().find(|package| package.name == name) {
            let warning = format!("package {name} is listed more than once, its last entry counts");
            if !wrong.contains(&warning) {
                wrong.push(warning);
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
    (packages, wrong)
}

/// The manifests of a ConfigMap by name.
struct Manifests<'v> {
    versions: BTreeMap<&'v str, &'v Value>,
    /// `ClusterServiceVersions` may bring different `CustomResourceDefinitions` under one name.
    definitions: BTreeMap<&'v str, Vec<&'v Value>>,
}

impl<'v> Manifests<'v> {
    fn of(versions: &'v [Value], definitions: &'v [Value]) -> Self {
        let name = |manifest: &'v Value| text(&manifest["metadata"], "name");
        let manifests = |list: &'v [Value]| list.iter().filter(|manifest| manifest.is_object());
        let versions = manifests(versions).map(|manifest| (name(manifest), manifest)).collect();
        let mut named: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for crd in manifests(definitions) {
            named.entry(name(crd)).or_default().push(crd);
        }
        Self { versions, definitions: named }
    }
}

/// The list in a key; empty if the key is not there.
fn list(data: &BTreeMap<String, String>, key: &'static str) -> Result<Vec<Value>, ConfigMapError> {
    let text = data.get(key).map(String::as_str).unwrap_or_default();
    let read = mainstay_yaml::one(text.as_bytes(), &mainstay_yaml::Options::default());
    match read.map_err(|source| ConfigMapError::ParseKey { key, source })? {
        Value::Array(items) => Ok(items),
        Value::Null => Ok(Vec::new()),
        _ => Err(ConfigMapError::NoList { key }),
    }
}

pub(crate) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

pub(crate) fn items<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    value[field].as_array().into_iter().flatten()
}

/// The documents of a file-based catalog for a package. `elsewhere` are the heads of the channels of other
/// packages.
fn documents(
    package: &ListedPackage<'_>,
    manifests: &Manifests<'_>,
    elsewhere: &BTreeSet<&str>,
) -> Result<Vec<Value>, PackageError> {
    let ListedPackage { name, default_channel, channels } = package;
    let mut documents =
        vec![json!({"schema": "olm.package", "name": name, "defaultChannel": default_channel})];
    let mut bundles = BTreeSet::new();
    for channel in channels {
        let entries = entries(channel, &manifests.versions, elsewhere)?;
        bundles.extend(entries.iter().map(|entry| text(entry, "name").to_owned()));
        documents.push(json!({
            "schema": "olm.channel", "package": name, "name": text(channel, "name"),
            "entries": entries,
        }));
    }
    for bundle in &bundles {
        if let Some(csv) = manifests.versions.get(bundle.as_str()) {
            documents.push(document(name, bundle, csv, manifests)?);
        }
    }
    Ok(documents)
}

/// What stands in a channel: its head, and what is replaced from there on, as far as it is told. It ends at
/// the head of another package: what replaces that renames the package, and has it not in its own.
fn entries(
    channel: &Value,
    versions: &BTreeMap<&str, &Value>,
    elsewhere: &BTreeSet<&str>,
) -> Result<Vec<Value>, PackageError> {
    let head = text(channel, "currentCSV");
    if !versions.contains_key(head) {
        let (head, channel) = (head.to_owned(), text(channel, "name").to_owned());
        return Err(PackageError::MissingHead { head, channel });
    }
    let (mut entries, mut known) = (Vec::new(), BTreeSet::new());
    let mut at = head;
    let is_here = |name: &str| name == head || !elsewhere.contains(name);
    while let Some(csv) = versions.get(at).filter(|_| is_here(at) && known.insert(at)) {
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

/// Whether a definition has a version of its kind, in either form of definitions.
fn has_version(definition: &Value, version: &str) -> bool {
    let spec = &definition["spec"];
    text(spec, "version") == version
        || items(spec, "versions").any(|entry| entry["name"] == *version)
}

/// The version of a ClusterServiceVersion that names none.
const UNVERSIONED: &str = "0.0.0";

/// The kind of a manifest, in the version that it says it is written in: `v1alpha1` alone is one, too.
fn written_in(manifest: &Value, kind: &Gvk) -> Gvk {
    let written = text(manifest, "apiVersion");
    let version = written.rsplit('/').next().filter(|version| !version.is_empty());
    Gvk { version: version.unwrap_or(&kind.version).to_owned(), ..kind.clone() }
}

/// A manifest that says of what kind it is. The key that it stands in decides that; older packages leave
/// out the group, or everything.
fn of_kind(manifest: &Value, kind: &Gvk) -> Value {
    let mut manifest = manifest.clone();
    manifest["apiVersion"] = kind.api_version().into();
    manifest["kind"] = kind.kind.as_str().into();
    manifest
}

/// A bundle: the version, the definitions that it owns, and what it says of APIs.
fn document(
    package: &str,
    name: &str,
    csv: &Value,
    manifests: &Manifests<'_>,
) -> Result<Value, PackageError> {
    let spec = &csv["spec"];
    // What Go's zero value of the field reads as.
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
        let all = manifests.definitions.get(kind).map_or(&[][..], Vec::as_slice);
        let fitting = all.iter().rev().find(|one| has_version(one, text(owner, "version")));
        let Some(definition) = fitting.or(all.last()) else {
            let (csv, definition) = (name.to_owned(), kind.to_owned());
            return Err(PackageError::MissingDefinition { csv, definition });
        };
        owned.entry(kind).or_insert(definition);
    }
    let csv = of_kind(csv, &resources::CLUSTER_SERVICE_VERSION.gvk());
    let crd = known::CUSTOM_RESOURCE_DEFINITION.gvk();
    let owned = owned.into_values().map(|manifest| of_kind(manifest, &written_in(manifest, &crd)));
    for manifest in std::iter::once(csv).chain(owned) {
        let data = STANDARD.encode(manifest.to_string());
        add(json!({"type": "olm.bundle.object", "value": {"data": data}}));
    }
    Ok(json!({"schema": "olm.bundle", "package": package, "name": name, "properties": properties}))
}

#[cfg(test)]
mod tests;
