//! Bundle ConfigMaps: the objects of a bundle in a ConfigMap. An unpack Job of OLM writes
//! them, and InstallPlan steps refer to them when the manifests are too large for the InstallPlan.
//!
//! ```text
//! steps with manifests ── too large ─► ConfigMap in the catalog's namespace
//!                                      steps with references ── run ─► the same steps
//! ```
//!
//! References have upstream's format, so each can run the InstallPlans of the other. A
//! reference names the ConfigMap, and the fields of the CSV that are not in the bundle.

mod error;

use crate::context::Context;
use crate::error::Error;
use crate::permissions;
use crate::steps;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use error::{BundleMapError, DecodeError, ReferenceError};
use flate2::{Compression, write::GzEncoder};
use mainstay_api::{BundleLookup, Step, names, resources};
use mainstay_client::Cluster;
use mainstay_controller::WithOperation as _;
use mainstay_image::{
    compress,
    tar::{self, TarError},
};
use mainstay_object::{NamespacedName, Object, builtin};
use mainstay_yaml::Options;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Read, Write as _};

/// The limit of all manifests in an InstallPlan, in bytes. An API server accepts requests of 1.5
/// million bytes, in which the quotes of a manifest are escaped.
const MAX_INLINE_BYTES: usize = 1_000_000;
/// The limit of the decompressed files of a bundle, in bytes.
const MAX_UNPACKED_BYTES: u64 = 64 << 20;
/// Annotation: the encoding of the files.
const ENCODING: &str = "olm.contentEncoding";
/// The encoding with each file compressed.
const GZIP: &str = "gzip+base64";
/// The encoding with one archive of all files.
const ARCHIVE: &str = "tar+gzip";
/// Annotation: the image that the files come from.
const SOURCE_IMAGE: &str = "olm.sourceImage";

/// A reference to a ConfigMap in the place of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reference {
    kind: String,
    name: String,
    namespace: String,
    catalog_source_name: String,
    catalog_source_namespace: String,
    #[serde(default)]
    replaces: String,
    /// The value of the properties annotation.
    #[serde(default)]
    pub(crate) properties: String,
    /// The SHA-256 of the objects. Users of the catalog's namespace can edit ConfigMaps there, so
    /// the hash ensures that the installed objects are the resolved and approved ones. Upstream's
    /// references have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    sha256: String,
}

/// The reference in the place of a manifest; none if the text is a manifest.
pub(crate) fn reference(manifest: &str) -> Option<Reference> {
    // Most texts are large manifests.
    if manifest.len() > 1 << 20 || !manifest.contains("\"catalogSourceName\"") {
        return None;
    }
    let found: Reference = serde_json::from_str(manifest).ok()?;
    (found.kind == *builtin::CONFIG_MAP.kind && !found.name.is_empty()).then_some(found)
}

/// The name of all objects that unpack a bundle: the start of the SHA-256 of its image.
pub(crate) fn name_of(image: &str) -> String {
    let mut name = hex(&Sha256::digest(image.as_bytes()));
    name.truncate(63);
    name
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The objects of a bundle in a canonical form, which is equal for all ConfigMaps of the bundle.
fn canonical_texts(objects: &[Object]) -> BTreeSet<String> {
    objects.iter().map(|object| without_plan_fields(object).to_string()).collect()
}

/// The SHA-256 of the objects of a bundle, independent of the encoding of its ConfigMap.
fn digest(objects: &[Object]) -> String {
    let mut hash = Sha256::new();
    for text in canonical_texts(objects) {
        // A JSON text contains no line feed.
        hash.update(text.as_bytes());
        hash.update(b"\n");
    }
    hex(&hash.finalize())
}

/// Reads the objects of a bundle from its ConfigMap.
///
/// # Errors
/// If the ConfigMap cannot be decoded.
pub(crate) fn objects(map: &Object) -> Result<Vec<Object>, BundleMapError> {
    let encoding = map.annotation(ENCODING).unwrap_or_default();
    let mut files = BTreeMap::new();
    let mut remaining_bytes = MAX_UNPACKED_BYTES;
    for field in ["data", "binaryData"] {
        let Some(Value::Object(entries)) = map.get(&[field]) else { continue };
        for (key, value) in entries {
            let mut decode = || -> Result<(), DecodeError> {
                let text = value.as_str().unwrap_or_default();
                let mut bytes = match field {
                    "data" => text.as_bytes().to_vec(),
                    _ => STANDARD.decode(text)?,
                };
                if encoding == GZIP {
                    bytes = decompress(&STANDARD.decode(&bytes)?, &mut remaining_bytes)?;
                }
                if encoding == ARCHIVE {
                    files.extend(manifests(&decompress(&bytes, &mut remaining_bytes)?)?);
                } else {
                    files.insert(key.clone(), bytes);
                }
                Ok(())
            };
            decode().map_err(|source| BundleMapError::DecodeKey { key: key.clone(), source })?;
        }
    }
    let mut found = Vec::new();
    for (file, bytes) in files {
        for document in mainstay_yaml::documents(&bytes, &Options::default()) {
            let file_name = || file.clone();
            let document = document
                .map_err(|source| BundleMapError::ParseYaml { file: file_name(), source })?;
            if document.value.is_null() {
                continue;
            }
            let object = Object::from_value(document.value);
            let object = object
                .map_err(|source| BundleMapError::ReadObject { file: file_name(), source })?;
            mainstay_images::check_identity(&object)
                .map_err(|source| BundleMapError::Identity { file: file_name(), source })?;
            found.push(object);
        }
    }
    Ok(found)
}

fn decompress(bytes: &[u8], remaining_bytes: &mut u64) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let read = compress::open(bytes)?.take(*remaining_bytes + 1).read_to_end(&mut out)?;
    *remaining_bytes = remaining_bytes
        .checked_sub(u64::try_from(read).unwrap_or(u64::MAX))
        .ok_or_else(|| io::Error::other("the files of the bundle are larger than 64 MiB"))?;
    Ok(out)
}

/// The files below `manifests/` of an archive.
fn manifests(bytes: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, TarError> {
    let mut reader = tar::TarReader::new(bytes);
    let mut files = BTreeMap::new();
    while let Some(entry) = reader.next()? {
        let name = String::from_utf8_lossy(&entry.name).into_owned();
        let inside = name.trim_start_matches("./").starts_with("manifests/");
        if entry.kind == tar::TarEntryKind::File && inside {
            let mut content = Vec::new();
            reader.read_to_end(&mut content)?;
            files.insert(name, content);
        }
    }
    Ok(files)
}

/// The files of a bundle, one for each object.
fn binary_data(objects: &[Object]) -> io::Result<Value> {
    let mut data = Map::new();
    for (at, object) in objects.iter().enumerate() {
        let text = format!("{at:02}-{}-{}.json", object.kind(), object.name()).to_lowercase();
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let key: String =
            text.chars().map(|character| if plain(character) { character } else { '-' }).collect();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(object.to_value().to_string().as_bytes())?;
        let compressed = STANDARD.encode(encoder.finish()?);
        data.insert(key, STANDARD.encode(compressed).into());
    }
    Ok(Value::Object(data))
}

/// Writes the objects of a bundle into a ConfigMap.
pub(crate) fn fill(map: &mut Object, image: &str, objects: &[Object]) -> io::Result<()> {
    map.set_annotation(ENCODING, GZIP);
    if !image.is_empty() {
        map.set_annotation(SOURCE_IMAGE, image);
    }
    map.set(&["binaryData"], binary_data(objects)?);
    Ok(())
}

/// The ConfigMap of a bundle.
fn config_map(
    name: &str,
    image: &str,
    catalog: &NamespacedName,
    owner: Option<Value>,
    objects: &[Object],
) -> io::Result<Object> {
    let mut map = Object::new(&builtin::CONFIG_MAP.gvk(), name);
    map.set(&["metadata", "namespace"], (*catalog.namespace).into());
    map.set_label(names::MANAGED, names::MANAGED_VALUE);
    if let Some(owner) = owner {
        map.set(&["metadata", "ownerReferences"], json!([owner]));
    }
    fill(&mut map, image, objects)?;
    Ok(map)
}

/// The steps, with references for the largest bundles if all manifests are too large for an
/// InstallPlan. Creates the ConfigMaps first.
///
/// # Errors
/// If the API fails, or if a bundle is too large for a ConfigMap.
pub(crate) async fn with_references<'a>(
    context: &Context,
    steps: &'a [Step],
    lookups: &[BundleLookup],
) -> Result<Cow<'a, [Step]>, Error> {
    let mut total: usize = steps.iter().map(|step| step.resource.manifest.len()).sum();
    if total <= MAX_INLINE_BYTES {
        return Ok(steps.into());
    }
    let mut steps = steps.to_vec();
    let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
    for step in steps.iter().filter(|step| is_of_bundle(step)) {
        *sizes.entry(step.resolving.clone()).or_default() += step.resource.manifest.len();
    }
    let mut bundles: Vec<(String, usize)> = sizes.into_iter().collect();
    bundles.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    for (bundle, size) in bundles {
        if total <= MAX_INLINE_BYTES {
            break;
        }
        let image = lookups
            .iter()
            .find(|lookup| lookup.identifier == bundle)
            .map(|lookup| lookup.path.as_str());
        let mut own: Vec<&mut Step> = steps
            .iter_mut()
            .filter(|step| step.resolving == bundle && is_of_bundle(step))
            .collect();
        store_bundle(context, image.unwrap_or_default(), &mut own).await?;
        total -= size;
    }
    Ok(steps.into())
}

/// Whether the manifest of a step comes from a bundle; that of a generated Subscription does not.
fn is_of_bundle(step: &Step) -> bool {
    step.resource.kind != *resources::SUBSCRIPTION.kind
        && !step.resolving.is_empty()
        && reference(&step.resource.manifest).is_none()
}

/// Stores the manifests of a bundle in a ConfigMap, and replaces them with references.
async fn store_bundle(
    context: &Context,
    image: &str,
    steps: &mut [&mut Step],
) -> Result<(), Error> {
    let Some(first) = steps.first() else { return Ok(()) };
    let resource = &first.resource;
    let catalog = NamespacedName::new(&*resource.source_namespace, &*resource.source_name);
    let objects = bundle_objects(steps)?;
    let path =
        if image.is_empty() { format!("{catalog}/{}", first.resolving) } else { image.into() };
    let name = name_of(&path);
    let kind = &*resources::CLUSTER_SERVICE_VERSION.kind;
    let csv = objects.iter().find(|object| object.kind() == kind);
    let text = |path: &[&str]| csv.and_then(|csv| csv.str(path)).unwrap_or_default().to_owned();
    let reference = Reference {
        kind: builtin::CONFIG_MAP.kind.to_string(),
        name: name.clone(),
        namespace: catalog.namespace.to_string(),
        catalog_source_name: catalog.name.to_string(),
        catalog_source_namespace: catalog.namespace.to_string(),
        replaces: text(&["spec", "replaces"]),
        properties: text(&["metadata", "annotations", names::PROPERTIES]),
        sha256: digest(&objects),
    };
    let owner = context.caches.catalogs.sources.get(&catalog).map(|source| {
        let kind = resources::CATALOG_SOURCE;
        json!({
            "apiVersion": kind.api_version(), "kind": kind.kind, "name": source.metadata.name,
            "uid": source.metadata.uid, "controller": false, "blockOwnerDeletion": false,
        })
    });
    let wanted =
        config_map(&name, image, &catalog, owner, &objects).map_err(serde_json::Error::io)?;
    ensure_config_map(&context.cluster, wanted).await?;
    let text = serde_json::to_string(&reference)?;
    for step in steps {
        step.resource.manifest.clone_from(&text);
    }
    Ok(())
}

/// The objects of a bundle: those of its steps, without the RBAC objects that the CSV generates.
fn bundle_objects(steps: &[&mut Step]) -> Result<Vec<Object>, Error> {
    let kind = &*resources::CLUSTER_SERVICE_VERSION.kind;
    let mut generated = Vec::new();
    if let Some(csv) = steps.iter().find(|step| step.resource.kind == kind) {
        generated = permissions::generated(&serde_json::from_str(&csv.resource.manifest)?);
    }
    let of_version = |step: &Step| {
        let step = &step.resource;
        generated.iter().any(|other| other.kind == step.kind && other.manifest == step.manifest)
    };
    let objects = steps.iter().filter(|step| !of_version(step));
    objects.map(|step| Ok(serde_json::from_str(&step.resource.manifest)?)).collect()
}

/// Creates or updates a ConfigMap. One with the same objects stays as it is.
async fn ensure_config_map(cluster: &Cluster, mut wanted: Object) -> Result<(), Error> {
    let operation = "keeping a bundle in a ConfigMap";
    let (namespace, name) = (wanted.namespace().to_owned(), wanted.name().to_owned());
    let found = cluster.find(&builtin::CONFIG_MAP, Some(&namespace), &name).await;
    let Some(found) = found.during(operation)? else {
        cluster.create(&builtin::CONFIG_MAP, &wanted).await.during(operation)?;
        return Ok(());
    };
    let texts = |map: &Object| Some(canonical_texts(&objects(map).ok()?));
    let (present, new) = (texts(&found), texts(&wanted));
    if present.is_some() && present == new {
        return Ok(());
    }
    wanted.set(&["metadata", "resourceVersion"], found.resource_version().into());
    cluster.update(&builtin::CONFIG_MAP, &wanted).await.during(operation)?;
    Ok(())
}

/// An object without the fields that an InstallPlan adds.
fn without_plan_fields(object: &Object) -> Value {
    let mut object = object.clone();
    object.remove(&["metadata", "namespace"]);
    if object.kind() == &*resources::CLUSTER_SERVICE_VERSION.kind {
        object.remove(&["spec", "replaces"]);
        object.remove(&["metadata", "annotations", names::PROPERTIES]);
    }
    object.to_value()
}

/// The steps, with manifests in the place of references.
///
/// # Errors
/// Which step has no manifest, and why, with the API error if there is one.
pub(crate) async fn with_manifests<'a>(
    cluster: &Cluster,
    namespace: &str,
    steps: &'a [Step],
) -> Result<Cow<'a, [Step]>, MissingManifest> {
    if steps.iter().all(|step| reference(&step.resource.manifest).is_none()) {
        return Ok(steps.into());
    }
    let mut steps = steps.to_vec();
    let mut steps_by_reference: BTreeMap<Reference, Vec<Step>> = BTreeMap::new();
    for step in &mut steps {
        let Some(reference) = reference(&step.resource.manifest) else { continue };
        let missing = |why: String| MissingManifest {
            message: format!(
                "the manifests of {} are in ConfigMap {}/{}: {why}",
                step.resolving, reference.namespace, reference.name
            ),
            source: None,
        };
        if !steps_by_reference.contains_key(&reference) {
            let location = (Some(&*reference.namespace), &*reference.name);
            let map = cluster.get(&builtin::CONFIG_MAP, location.0, location.1).await;
            let map = map.map_err(|error| MissingManifest {
                source: Some(error),
                ..missing("it cannot be read".to_owned())
            })?;
            let all = referenced_steps(namespace, &reference, &map)
                .map_err(|error| missing(error.to_string()))?;
            steps_by_reference.insert(reference.clone(), all);
        }
        let all = steps_by_reference.get(&reference).map(Vec::as_slice).unwrap_or_default();
        let resource = &mut step.resource;
        let same = |step: &&Step| {
            let other = &step.resource;
            other.kind == resource.kind
                && other.group == resource.group
                && other.name == resource.name
        };
        let Some(found) = all.iter().find(same) else {
            return Err(missing(format!("it has no {} {}", resource.kind, resource.name)));
        };
        resource.manifest.clone_from(&found.resource.manifest);
    }
    Ok(steps.into())
}

/// The manifest of a step is missing.
#[derive(Debug)]
pub(crate) struct MissingManifest {
    pub(crate) message: String,
    pub(crate) source: Option<mainstay_client::Error>,
}

/// The steps of a bundle in a ConfigMap.
fn referenced_steps(
    namespace: &str,
    reference: &Reference,
    map: &Object,
) -> Result<Vec<Step>, ReferenceError> {
    let properties: Value = serde_json::from_str(&reference.properties).unwrap_or_default();
    let properties = properties["properties"].as_array().cloned().unwrap_or_default();
    let catalog =
        NamespacedName::new(&*reference.catalog_source_namespace, &*reference.catalog_source_name);
    let all = objects(map)?;
    if !reference.sha256.is_empty() && reference.sha256 != digest(&all) {
        let (namespace, name) = (reference.namespace.clone(), reference.name.clone());
        return Err(ReferenceError::Changed { namespace, name });
    }
    steps::for_objects(namespace, all, &properties, &reference.replaces, &catalog)
        .ok_or(ReferenceError::NoCsv)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    fn csv() -> Object {
        object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": "a.v1", "annotations": {"x": "y"}},
            "spec": {"install": {"strategy": "deployment", "spec": {"permissions": [{
                "serviceAccountName": "a", "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
            }]}}},
        }))
    }

    fn service() -> Object {
        object(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a:b"}}))
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn map(encoding: &str, binary: &[(&str, Vec<u8>)], plain: &[(&str, &str)]) -> Object {
        let binary: Map<String, Value> = binary
            .iter()
            .map(|(key, value)| ((*key).to_owned(), STANDARD.encode(value).into()))
            .collect();
        let plain: Map<String, Value> =
            plain.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
        object(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "m", "annotations": {ENCODING: encoding}},
            "binaryData": binary, "data": plain,
        }))
    }

    #[test]
    fn unpack_objects_have_the_name_that_the_original_derives_from_the_image() {
        let name = name_of("registry.invalid/anvil-c211-bundle:1");
        assert_eq!(name, "4f197fb433e4e9ac432f1089f1e625e244123dad089080a1b13824d2df20b01");
    }

    #[test]
    fn bundle_objects_survive_a_round_trip_through_their_config_map() {
        let catalog = NamespacedName::new("olm", "cat");
        let all = [csv(), service()];
        let map = config_map("m", "r/i:v1", &catalog, None, &all).unwrap();
        assert_eq!(map.annotation(SOURCE_IMAGE), Some("r/i:v1"));
        let Some(Value::Object(data)) = map.get(&["binaryData"]) else { panic!("{map:?}") };
        let keys: Vec<&String> = data.keys().collect();
        assert_eq!(keys, ["00-clusterserviceversion-a.v1.json", "01-service-a-b.json"]);
        assert_eq!(objects(&map).unwrap(), all);
    }

    #[test]
    fn every_encoding_of_a_bundle_config_map_is_read() {
        let text = "apiVersion: v1\nkind: Service\nmetadata: {name: one}\n---\n---\napiVersion: v1\nkind: Service\nmetadata: {name: two}\n";
        let compressed = STANDARD.encode(gzip(text.as_bytes())).into_bytes();
        let mut header = ::tar::Header::new_ustar();
        let mut archive = Vec::new();
        for (path, text) in [("metadata/annotations.yaml", "a: b"), ("./manifests/s.yaml", text)] {
            header.set_path(path).unwrap();
            header.set_mode(0o644);
            header.set_entry_type(::tar::EntryType::Regular);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            header.set_size(text.len().try_into().unwrap());
            header.set_cksum();
            archive.extend(header.as_bytes());
            archive.extend(text.as_bytes());
            archive.resize(archive.len().next_multiple_of(512), 0);
        }
        archive.extend([0; 1024]);
        for map in [
            map("", &[], &[("s.yaml", text)]),
            map(GZIP, &[("s.yaml", compressed)], &[]),
            map(ARCHIVE, &[("content", gzip(&archive))], &[]),
        ] {
            let found = objects(&map).unwrap();
            let names: Vec<&str> = found.iter().map(Object::name).collect();
            assert_eq!(names, ["one", "two"], "{map:?}");
        }
    }

    #[test]
    fn errors_of_a_bundle_config_map_name_the_file() {
        let bomb = STANDARD.encode(gzip(&vec![b' '; 65 << 20])).into_bytes();
        for (map, wanted) in [
            (map("", &[], &[("s.yaml", "a: [")]), "s.yaml: "),
            (map("", &[], &[("s.yaml", "just: text")]), "s.yaml: "),
            (map(GZIP, &[("s.yaml", b"?".to_vec())], &[]), "s.yaml: "),
            (map(GZIP, &[("big.yaml", bomb)], &[]), "big.yaml: the files of the bundle are larger"),
            (map(ARCHIVE, &[("content", gzip(&[1; 600]))], &[]), "content: "),
        ] {
            let error = objects(&map).unwrap_err().to_string();
            assert!(error.starts_with(wanted), "{error}");
        }
    }

    #[test]
    fn a_reference_differs_from_the_manifest_of_a_config_map() {
        let written = r#"{"kind":"ConfigMap","name":"4f","namespace":"olm","catalogSourceName":"cat","catalogSourceNamespace":"olm","replaces":"a.v0","properties":"{\"properties\":[]}"}"#;
        let found = reference(written).unwrap();
        assert_eq!((&*found.name, &*found.replaces), ("4f", "a.v0"));
        assert_eq!(serde_json::to_string(&found).unwrap(), written);
        for other in [
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}"#,
            r#"{"kind":"Secret","name":"4f","namespace":"olm","catalogSourceName":"cat","catalogSourceNamespace":"olm"}"#,
            "{",
        ] {
            assert_eq!(reference(other), None, "{other}");
        }
    }

    #[test]
    fn steps_of_a_referenced_bundle_are_those_of_the_bundle() {
        let reference = Reference {
            kind: "ConfigMap".to_owned(),
            name: "m".to_owned(),
            namespace: "olm".to_owned(),
            catalog_source_name: "cat".to_owned(),
            catalog_source_namespace: "olm".to_owned(),
            replaces: "a.v0".to_owned(),
            properties: r#"{"properties":[{"type":"t","value":1}]}"#.to_owned(),
            sha256: digest(&[csv()]),
        };
        let catalog = NamespacedName::new("olm", "cat");
        let bundle = map("", &[], &[("csv.json", &csv().to_value().to_string())]);
        let referenced = referenced_steps("team", &reference, &bundle).unwrap();
        // A client edited the ConfigMap since. Without a hash this cannot be detected.
        let mut more = csv();
        more.set(&["spec", "install", "spec", "permissions"], json!([]));
        let changed = map("", &[], &[("csv.json", &more.to_value().to_string())]);
        let refused = referenced_steps("team", &reference, &changed).unwrap_err().to_string();
        assert!(refused.contains("ConfigMap olm/m"), "{refused}");
        let theirs = Reference { sha256: String::new(), ..reference.clone() };
        assert!(referenced_steps("team", &theirs, &changed).is_ok());
        let properties = [json!({"type": "t", "value": 1})];
        let object_steps =
            steps::for_objects("team", vec![csv()], &properties, "a.v0", &catalog).unwrap();
        assert_eq!(referenced, object_steps);
        // The objects of its steps are those of the bundle.
        let mut all = object_steps;
        let all: Vec<&mut Step> = all.iter_mut().collect();
        let objects_found = bundle_objects(&all).unwrap();
        let kinds: Vec<&str> = objects_found.iter().map(Object::kind).collect();
        assert_eq!(kinds, ["ClusterServiceVersion"]);
        assert!(referenced_steps("team", &reference, &map("", &[], &[])).is_err());
    }
}
