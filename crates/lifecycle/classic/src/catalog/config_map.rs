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

use super::store::{self, CatalogStore, State};
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
pub(crate) struct Read {
    pub(super) uid: String,
    pub(super) version: String,
    /// The uids of its owners.
    pub(super) owners: Vec<String>,
    pub(super) labelled: bool,
}

/// A ConfigMap as it was seen.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    read: Read,
    data: BTreeMap<String, String>,
}

impl Seen {
    fn of(object: &Object) -> Self {
        let owners = object.owner_references();
        Self {
            read: Read {
                uid: object.uid().to_owned(),
                version: object.resource_version().to_owned(),
                owners: owners.into_iter().map(|it| it.uid).collect(),
                labelled: object.label(names::MANAGED).is_some(),
            },
            data: object.part(&["data"]).unwrap_or_default(),
        }
    }
}

impl CatalogStore {
    /// Follows a ConfigMap, and reads it unless a pod does; never returns.
    pub(super) async fn run_config_map(&self, key: &NamespacedName, name: &str, reads: bool) {
        let Some(cluster) = self.cluster() else { return };
        let changed = Arc::new(Notify::new());
        let (hear, stop) = (Arc::clone(&changed), CancellationToken::new());
        let _stop = stop.clone().drop_guard();
        let selection = Selection::all(known::CONFIG_MAP)
            .namespace(&*key.namespace)
            .fields(format!("metadata.name={name}"));
        let cache = Cache::builder(selection, |it| Some(Seen::of(it)))
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
                    let lost = State { failure: Some(why), missing, ..State::default() };
                    self.take(key, lost, None);
                }
                Some(seen) => {
                    // Labels and owners are no content.
                    let same = last.as_ref() == Some(&seen.data);
                    let state = if same || !reads {
                        State::default()
                    } else {
                        self.read_config_map(key, name, &seen).await
                    };
                    if same {
                        self.note(key, &seen.read);
                    } else {
                        last = Some(seen.data.clone());
                        let config_map = Some(seen.read.clone());
                        self.take(key, State { config_map, ..state }, None);
                    }
                }
            }
            changed.notified().await;
        }
    }

    async fn read_config_map(&self, key: &NamespacedName, name: &str, seen: &Arc<Seen>) -> State {
        let (seen, modified) = (Arc::clone(seen), self.modified(key));
        let made = tokio::task::spawn_blocking(move || {
            catalog(&seen.data).map(|read| (store::content(read.catalog, modified), read.left_out))
        });
        match made.await {
            Ok(Ok((content, left_out))) => {
                let incomplete = !left_out.is_empty();
                let failure = incomplete
                    .then(|| format!("the catalog config map {name}: {}", left_out.join("; ")));
                State { content: Some(content), failure, incomplete, ..State::default() }
            }
            Ok(Err(why)) => {
                let failure = Some(format!("the catalog config map {name} cannot be read: {why}"));
                State { failure, ..State::default() }
            }
            Err(error) => State { failure: Some(error.to_string()), ..State::default() },
        }
    }
}

/// What a ConfigMap offers.
#[derive(Debug)]
pub(super) struct ReadCatalog {
    pub(super) catalog: Arc<Catalog>,
    /// Why packages, or parts of them, were left out.
    pub(super) left_out: Vec<String>,
}

/// Reads the catalog that the keys of a ConfigMap make.
///
/// # Errors
/// A key is missing or is no list, or not one of the packages can be read.
pub(super) fn catalog(data: &BTreeMap<String, String>) -> Result<ReadCatalog, String> {
    if !data.contains_key(PACKAGES) {
        return Err(format!("it has no key {PACKAGES}"));
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
            Declared::of(documents.into_iter().map(|it| (origin(), it)))
                .map_err(|error| error.headline())
        });
        match read {
            Ok(read) => declared.append(read),
            Err(why) => left_out.push(format!("package {} is left out: {why}", package.name)),
        }
    }
    let (catalog, problems) = declared.check_permissive();
    left_out.extend(problems.iter().map(|it| format!("a package is left out: {}", it.message)));
    let nothing = catalog.packages().next().is_none();
    match left_out.first() {
        Some(why) if nothing => Err(why.clone()),
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
        let name = |it: &'v Value| text(&it["metadata"], "name");
        let manifests = |list: &'v [Value]| list.iter().filter(|it| it.is_object());
        let versions = manifests(versions).map(|it| (name(it), it)).collect();
        let mut named: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for it in manifests(definitions) {
            named.entry(name(it)).or_default().push(it);
        }
        Self { versions, definitions: named }
    }
}

/// The list in a key; empty if the key is not there.
fn list(data: &BTreeMap<String, String>, key: &str) -> Result<Vec<Value>, String> {
    let text = data.get(key).map(String::as_str).unwrap_or_default();
    let read = mainstay_yaml::one(text.as_bytes(), &mainstay_yaml::Options::default());
    match read.map_err(|error| format!("the key {key}: {error}"))? {
        Value::Array(items) => Ok(items),
        Value::Null => Ok(Vec::new()),
        _ => Err(format!("the key {key} is no list")),
    }
}

pub(super) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

pub(super) fn items<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    value[field].as_array().into_iter().flatten()
}

/// The documents of a file-based catalog for a package. `elsewhere` are the heads of the channels of other
/// packages.
fn documents(
    package: &ListedPackage<'_>,
    manifests: &Manifests<'_>,
    elsewhere: &BTreeSet<&str>,
) -> Result<Vec<Value>, String> {
    let ListedPackage { name, default_channel, channels } = package;
    let mut documents =
        vec![json!({"schema": "olm.package", "name": name, "defaultChannel": default_channel})];
    let mut bundles = BTreeSet::new();
    for channel in channels {
        let entries = entries(channel, &manifests.versions, elsewhere)?;
        bundles.extend(entries.iter().map(|it| text(it, "name").to_owned()));
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
) -> Result<Vec<Value>, String> {
    let head = text(channel, "currentCSV");
    if !versions.contains_key(head) {
        let channel = text(channel, "name");
        return Err(format!(
            "the head {head} of the channel {channel} is not in the key {VERSIONS}"
        ));
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
    text(spec, "version") == version || items(spec, "versions").any(|it| it["name"] == *version)
}

/// The version of a ClusterServiceVersion that names none.
const UNVERSIONED: &str = "0.0.0";

/// The kind of a manifest, in the version that it says it is written in: `v1alpha1` alone is one, too.
fn written_in(manifest: &Value, kind: &Gvk) -> Gvk {
    let written = text(manifest, "apiVersion");
    let version = written.rsplit('/').next().filter(|it| !it.is_empty());
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
) -> Result<Value, String> {
    let spec = &csv["spec"];
    // What Go's zero value of the field reads as.
    let version = match &spec["version"] {
        Value::Null => UNVERSIONED,
        version => version.as_str().filter(|it| !it.is_empty()).unwrap_or(UNVERSIONED),
    };
    let mut properties =
        vec![json!({"type": "olm.package", "value": {"packageName": package, "version": version}})];
    let mut add = |property: Value| {
        if !properties.contains(&property) {
            properties.push(property);
        }
    };
    for (list, kind) in [("owned", "olm.gvk"), ("required", "olm.gvk.required")] {
        for it in items(&spec["customresourcedefinitions"], list) {
            let group = text(it, "name").split_once('.').map_or("", |it| it.1);
            let api =
                json!({"group": group, "kind": text(it, "kind"), "version": text(it, "version")});
            add(json!({"type": kind, "value": api}));
        }
        for it in items(&spec["apiservicedefinitions"], list) {
            let api = json!({
                "group": text(it, "group"), "kind": text(it, "kind"),
                "version": text(it, "version"),
            });
            add(json!({"type": kind, "value": api}));
        }
    }
    let mut owned: BTreeMap<&str, &Value> = BTreeMap::new();
    for it in items(&spec["customresourcedefinitions"], "owned") {
        let kind = text(it, "name");
        let all = manifests.definitions.get(kind).map_or(&[][..], Vec::as_slice);
        let fitting = all.iter().rev().find(|one| has_version(one, text(it, "version")));
        let Some(definition) = fitting.or(all.last()) else {
            return Err(format!("{name} owns {kind}, which is not in the key {DEFINITIONS}"));
        };
        owned.entry(kind).or_insert(definition);
    }
    let csv = of_kind(csv, &resources::CLUSTER_SERVICE_VERSION.gvk());
    let crd = known::CUSTOM_RESOURCE_DEFINITION.gvk();
    let owned = owned.into_values().map(|it| of_kind(it, &written_in(it, &crd)));
    for manifest in std::iter::once(csv).chain(owned) {
        let data = STANDARD.encode(manifest.to_string());
        add(json!({"type": "olm.bundle.object", "value": {"data": data}}));
    }
    Ok(json!({"schema": "olm.bundle", "package": package, "name": name, "properties": properties}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(packages: &str, versions: &str, definitions: &str) -> BTreeMap<String, String> {
        [(PACKAGES, packages), (VERSIONS, versions), (DEFINITIONS, definitions)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    }

    const ONE: &str = "
- packageName: anvil
  channels: [{name: stable, currentCSV: anvil.v2}]
";
    const TWO: &str = "
- {metadata: {name: anvil.v1}, spec: {version: 1.0.0}}
- metadata: {name: anvil.v2, annotations: {olm.skipRange: <2.0.0}}
  spec:
    version: 2.0.0
    replaces: anvil.v1
    skips: [anvil.v1.5]
    customresourcedefinitions:
      owned: [{name: anvils.forge.example.com, kind: Anvil, version: v1}]
      required: [{name: fires.forge.example.com, kind: Fire, version: v1}]
";
    const DEFINED: &str =
        "[{kind: CustomResourceDefinition, metadata: {name: anvils.forge.example.com}}]";

    #[test]
    fn lists_make_a_catalog_whose_channels_follow_what_versions_replace() {
        let catalog = catalog(&data(ONE, TWO, DEFINED)).unwrap().catalog;
        let package = catalog.package("anvil").unwrap();
        assert_eq!(&*package.default_channel, "stable");
        let channel = package.channel("stable").unwrap();
        assert_eq!(&*channel.head().name, "anvil.v2");
        // shows CSV-32
        assert_eq!(channel.head().skip_range.as_deref(), Some("<2.0.0"));
        // shows CSV-31
        assert_eq!(channel.head().skips.iter().map(|it| &**it).collect::<Vec<_>>(), ["anvil.v1.5"]);
        assert_eq!(channel.entries().len(), 2);
        let bundle = package.bundle("anvil.v2").unwrap();
        assert_eq!(bundle.objects().unwrap().len(), 2);
        let apis: Vec<String> = bundle.provided_apis().map(|it| format!("{it:?}")).collect();
        assert!(apis[0].contains("forge.example.com"), "{apis:?}");
        assert_eq!(bundle.required_apis().count(), 1);
    }

    #[test]
    fn a_version_gets_the_definition_that_has_the_version_that_it_owns() {
        const BOTH: &str = "
- metadata: {name: anvil.v1}
  spec: {version: 1.0.0, customresourcedefinitions: {owned: [{name: a.g, kind: A, version: v1alpha1}]}}
- metadata: {name: anvil.v2}
  spec:
    version: 2.0.0
    replaces: anvil.v1
    customresourcedefinitions: {owned: [{name: a.g, kind: A, version: v1}]}
";
        const DEFINED: &str = "
- {metadata: {name: a.g}, spec: {versions: [{name: v1alpha1}]}}
- {metadata: {name: a.g}, spec: {versions: [{name: v1}]}}
";
        let catalog = catalog(&data(ONE, BOTH, DEFINED)).unwrap().catalog;
        for (name, version) in [("anvil.v1", "v1alpha1"), ("anvil.v2", "v1")] {
            let objects = catalog.bundle("anvil", name).unwrap().objects().unwrap();
            let texts: Vec<String> = objects.iter().map(|it| format!("{it:?}")).collect();
            assert_eq!(texts.len(), 2);
            assert!(texts[1].contains(&format!("\"{version}\"")), "{}", texts[1]);
        }
    }

    #[test]
    fn what_is_wrong_names_the_key() {
        for (data, words) in [
            (data("{", "", ""), "the key packages: "),
            (data("a: 1", "", ""), "the key packages is no list"),
            (data(ONE, "", ""), "the head anvil.v2 of the channel stable is not in the key"),
            (data(ONE, TWO, ""), "owns anvils.forge.example.com, which is not in the key"),
            (BTreeMap::new(), "it has no key packages"),
        ] {
            let why = catalog(&data).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn what_the_original_loads_is_loaded() {
        const VERSIONS: &str = "
- {metadata: {name: anvil.v1}, spec: {version: 1.0.0}}
- {metadata: {name: anvil.v2}, spec: {version: 1.0.0, replaces: anvil.v1}}
- {metadata: {name: bell.v1}, spec: {}}
";
        const TWICE: &str = "
- packageName: Anvil
  channels: [{name: stable, currentCSV: anvil.v1}]
- packageName: bell
  channels: [{name: stable, currentCSV: bell.v1}]
- packageName: Anvil
  channels: [{name: stable, currentCSV: anvil.v2}, {name: fast, currentCSV: anvil.v2}]
";
        let read = catalog(&data(TWICE, VERSIONS, "")).unwrap();
        assert_eq!(
            read.left_out,
            ["package Anvil is listed more than once, its last entry counts"]
        );
        let anvil = read.catalog.package("Anvil").unwrap();
        assert_eq!(&*anvil.channel("stable").unwrap().head().name, "anvil.v2");
        assert_eq!(anvil.channel("fast").unwrap().entries().len(), 2, "of one version");
        let bell = read.catalog.bundle("bell", "bell.v1").unwrap();
        assert_eq!(bell.version.to_string(), "0.0.0");
    }

    #[test]
    fn a_package_that_replaces_another_has_no_bundle_of_that() {
        const PACKAGES: &str = "
- {packageName: old, channels: [{name: stable, currentCSV: old.v1}]}
- {packageName: new, channels: [{name: stable, currentCSV: new.v2}]}
";
        const VERSIONS: &str = "
- {metadata: {name: old.v1}, spec: {version: 1.0.0}}
- {metadata: {name: new.v1}, spec: {version: 1.0.0, replaces: old.v1}}
- {metadata: {name: new.v2}, spec: {version: 2.0.0, replaces: new.v1}}
";
        let read = catalog(&data(PACKAGES, VERSIONS, "")).unwrap();
        assert_eq!(read.left_out, Vec::<String>::new());
        let channel = read.catalog.package("new").unwrap().channel("stable").unwrap();
        let names: Vec<&str> = channel.entries().iter().map(|entry| &*entry.name).collect();
        assert_eq!(names, ["new.v2", "new.v1"]);
        let first = channel.entry("new.v1").unwrap();
        assert_eq!(first.replaces.as_deref(), Some("old.v1"), "from there one comes here");
    }

    #[test]
    fn a_package_that_cannot_be_read_takes_no_other_away() {
        const PACKAGES: &str = "
- {packageName: headless, channels: [{name: stable, currentCSV: nobody.v1}]}
- {packageName: bell, channels: [{name: stable, currentCSV: bell.v1}]}
- {packageName: odd, channels: [{name: stable, currentCSV: odd.v1}]}
- {packageName: misshapen, channels: [{name: [], currentCSV: bell.v1}]}
- {packageName: empty}
";
        const VERSIONS: &str = "
- {metadata: {name: bell.v1}, spec: {version: 1.0.0}}
- {metadata: {name: odd.v1}, spec: {version: one}}
- text
";
        let read = catalog(&data(PACKAGES, VERSIONS, "")).unwrap();
        let names: Vec<&str> = read.catalog.packages().map(|it| &*it.name).collect();
        assert_eq!(names, ["bell"], "{:?}", read.left_out);
        let said = read.left_out.join("\n");
        for words in ["package headless is left out", "version \"one\"", "misshapen", "empty"] {
            assert!(said.contains(words), "{words}: {said}");
        }
        let only = "[{packageName: headless, channels: [{name: stable, currentCSV: nobody.v1}]}]";
        let why = catalog(&data(only, VERSIONS, "")).unwrap_err();
        assert!(why.contains("the head nobody.v1 of the channel stable"), "{why}");
    }

    #[test]
    fn manifests_are_of_the_kind_whose_key_they_stand_in() {
        const VERSIONS: &str = "
- apiVersion: v1alpha1
  kind: ClusterServiceVersion-v1
  metadata: {name: anvil.v2}
  spec:
    version: 2.0.0
    customresourcedefinitions:
      owned: [{name: a.g, kind: A, version: v1}, {name: b.g, kind: B, version: v1}]
";
        const DEFINED: &str = "
- {metadata: {name: a.g}}
- {apiVersion: apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition, metadata: {name: b.g}}
";
        let catalog = catalog(&data(ONE, VERSIONS, DEFINED)).unwrap().catalog;
        let objects = catalog.bundle("anvil", "anvil.v2").unwrap().objects().unwrap();
        let kinds: Vec<String> =
            objects.iter().map(|it| format!("{} {}", it.api_version(), it.kind())).collect();
        // shows E047
        assert_eq!(
            kinds,
            [
                "operators.coreos.com/v1alpha1 ClusterServiceVersion",
                "apiextensions.k8s.io/v1 CustomResourceDefinition",
                "apiextensions.k8s.io/v1beta1 CustomResourceDefinition",
            ]
        );
    }
}
