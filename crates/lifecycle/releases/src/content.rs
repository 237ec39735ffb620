//! Chart, manifest and hooks of a release, from the rendered objects of a bundle.
//!
//! Upstream puts each object into a chart of its own: a file with the JSON of the object, and a template of the
//! same name that prints the file. Helm renders the templates, sorts the objects by kind, and takes hooks out.
//! Then two post-renderers run: the first adds the owner reference, the second adds labels and writes the
//! manifest, one JSON object per line and without separators.

use crate::chart::{Chart, ChartFile, ChartMetadata};
use crate::go_json::object_jsons;
use crate::hook::{ReleaseHook, RenderedTarget, classify};
use crate::order::order_by_file_name;
use mainstay_gocompat::json::{self, Html, Numbers};
use mainstay_object::{Gvk, Scope};
use mainstay_schema::builtin;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Annotations on objects that `helm.sh/resource-policy` keeps, which have no owner: `/NAME` and kind of their
/// ClusterExtension.
pub const PRIMARY_RESOURCE: [&str; 2] =
    ["operator-sdk/primary-resource", "operator-sdk/primary-resource-type"];

/// The owner of a release and of its objects: a ClusterExtension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseOwner<'a> {
    /// Its API version.
    pub api_version: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
}

/// What a release installs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReleaseContent {
    /// The chart.
    pub chart: Chart,
    /// The manifest after post-rendering.
    pub manifest: String,
    /// Objects that Helm would run as hooks; they are not in the manifest.
    pub hooks: Vec<ReleaseHook>,
    /// The objects of the manifest, in its order.
    pub objects: Vec<Value>,
}

impl ReleaseOwner<'_> {
    /// The owner reference of the objects and of the index Secrets.
    pub fn reference(&self) -> Value {
        json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }
}

impl ReleaseContent {
    /// The content for the rendered objects of a bundle, in the order of the renderer.
    ///
    /// `annotations` are those of the ClusterServiceVersion, with the property `olm.properties`. Each
    /// object gets the owner reference and the labels. Of built-in kinds, a namespaced object without
    /// namespace gets `namespace`, and a cluster-scoped one loses its namespace. Objects of other kinds
    /// keep what the renderer gave them.
    pub fn from_objects(
        objects: &[Value],
        annotations: &BTreeMap<String, String>,
        namespace: &str,
        owner: &ReleaseOwner<'_>,
        labels: &BTreeMap<String, String>,
    ) -> Self {
        Self::new(objects, annotations, namespace, Some(owner), labels)
    }

    /// The content for objects that exist in a cluster before their extension does: they have no owner yet.
    pub fn from_recorded(
        objects: &[Value],
        annotations: &BTreeMap<String, String>,
        namespace: &str,
        labels: &BTreeMap<String, String>,
    ) -> Self {
        Self::new(objects, annotations, namespace, None, labels)
    }

    fn new(
        objects: &[Value],
        annotations: &BTreeMap<String, String>,
        namespace: &str,
        owner: Option<&ReleaseOwner<'_>>,
        labels: &BTreeMap<String, String>,
    ) -> Self {
        let jsons = object_jsons(objects);
        let names: Vec<String> = jsons.iter().map(|json| file_name(json)).collect();
        let chart = chart(&jsons, &names, annotations);
        let mut content = Self { chart, ..Self::default() };
        let mut rendered = BTreeSet::new();
        for at in order_by_file_name(objects, &names) {
            // Templates with the same name are rendered once.
            if !rendered.insert(&names[at]) {
                continue;
            }
            match classify(&objects[at], &jsons[at], &names[at]) {
                RenderedTarget::Dropped => {}
                RenderedTarget::Hook(hook) => content.hooks.push(*hook),
                RenderedTarget::Manifest => {
                    let object = post_render(&objects[at], namespace, owner, labels);
                    let line = json::value(&object, Html::Escaped, Numbers::Object);
                    content.manifest.push_str(&line);
                    content.manifest.push('\n');
                    content.objects.push(object);
                }
            }
        }
        content
    }
}

/// The name of the file and of the template of an object.
pub(crate) fn file_name(json: &str) -> String {
    use std::fmt::Write as _;

    let mut name = "object-".to_owned();
    for byte in &Sha256::digest(json.as_bytes())[..8] {
        let _ = write!(name, "{byte:02x}");
    }
    name.push_str(".json");
    name
}

fn chart(jsons: &[String], names: &[String], annotations: &BTreeMap<String, String>) -> Chart {
    let files = |data: &dyn Fn(&str, &str) -> String| -> Option<Vec<ChartFile>> {
        let files = jsons.iter().zip(names).map(|(json, name)| ChartFile {
            name: name.clone(),
            data: data(json, name).into_bytes(),
        });
        // Go writes a list without elements as null.
        (!jsons.is_empty()).then(|| files.collect())
    };
    Chart {
        metadata: Some(ChartMetadata {
            annotations: annotations.clone(),
            ..ChartMetadata::default()
        }),
        templates: files(&|_, name| format!("{{{{.Files.Get \"{name}\"}}}}")),
        files: files(&|json, _| json.to_owned()),
        ..Chart::default()
    }
}

/// The object with its owner and the labels.
fn post_render(
    object: &Value,
    namespace: &str,
    owner: Option<&ReleaseOwner<'_>>,
    labels: &BTreeMap<String, String>,
) -> Value {
    let mut object = object.clone();
    let scope = builtin_scope(&object);
    let Some(fields) = object.as_object_mut() else { return object };
    let metadata = entry_object(fields, "metadata");
    match scope {
        Some(Scope::Cluster) => {
            metadata.remove("namespace");
        }
        Some(Scope::Namespaced) => {
            let current = metadata.entry("namespace").or_insert(Value::Null);
            if current.as_str().is_none_or(str::is_empty) {
                *current = namespace.into();
            }
        }
        None => {}
    }
    let Some(owner) = owner else {
        add_labels(metadata, labels);
        return object;
    };
    if keeps_resource(metadata) {
        // Helm does not delete such an object, so nothing else may: the owner is only noted.
        let annotations = entry_object(metadata, "annotations");
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        let kind = [owner.kind, group].into_iter().filter(|part| !part.is_empty());
        let kind = kind.collect::<Vec<_>>().join(".");
        let values = [format!("/{}", owner.name), kind];
        for (name, value) in PRIMARY_RESOURCE.into_iter().zip(values) {
            annotations.insert(name.into(), value.into());
        }
    } else {
        let references =
            metadata.entry("ownerReferences").or_insert_with(|| Value::Array(Vec::new()));
        match references {
            Value::Array(references) => references.push(owner.reference()),
            other => *other = json!([owner.reference()]),
        }
    }
    add_labels(metadata, labels);
    object
}

fn add_labels(metadata: &mut Map<String, Value>, labels: &BTreeMap<String, String>) {
    let all = entry_object(metadata, "labels");
    for (name, value) in labels {
        all.insert(name.clone(), value.clone().into());
    }
    if all.is_empty() {
        metadata.remove("labels");
    }
}

fn builtin_scope(object: &Value) -> Option<Scope> {
    let gvk = Gvk::from_api_version(object["apiVersion"].as_str()?, object["kind"].as_str()?);
    Some(builtin::kind(&gvk.group, &gvk.version, &gvk.kind)?.scope)
}

/// Whether the annotation `helm.sh/resource-policy` forbids to delete the object.
fn keeps_resource(metadata: &Map<String, Value>) -> bool {
    let policy = metadata
        .get("annotations")
        .and_then(|annotations| annotations.get("helm.sh/resource-policy"))
        .and_then(Value::as_str);
    policy.is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
}

/// The object in a field; it is made if the field holds none.
fn entry_object<'f>(fields: &'f mut Map<String, Value>, name: &str) -> &'f mut Map<String, Value> {
    let value = fields.entry(name).or_insert(Value::Null);
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("the value was made an object"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: ReleaseOwner<'_> = ReleaseOwner {
        api_version: "olm.operatorframework.io/v1",
        kind: "ClusterExtension",
        name: "ext",
        uid: "1",
    };

    fn object(kind: &str, metadata: &Value) -> Value {
        let api_version = match kind {
            "ConfigMap" => "v1",
            "ClusterRole" => "rbac.authorization.k8s.io/v1",
            _ => "example.com/v1",
        };
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
    }

    fn rendered(object: &Value) -> Value {
        let none = BTreeMap::new();
        let content =
            ReleaseContent::from_objects(std::slice::from_ref(object), &none, "ns", &OWNER, &none);
        content.objects.into_iter().next().unwrap()["metadata"].take()
    }

    #[test]
    fn object_that_is_to_be_kept_gets_annotations_instead_of_an_owner() {
        let metadata = rendered(&object(
            "ConfigMap",
            &json!({"namespace": "ns", "annotations": {"helm.sh/resource-policy": " Keep"}}),
        ));
        assert_eq!(metadata["ownerReferences"], Value::Null);
        assert_eq!(metadata["annotations"]["operator-sdk/primary-resource"], "/ext");
        assert_eq!(
            metadata["annotations"]["operator-sdk/primary-resource-type"],
            "ClusterExtension.olm.operatorframework.io"
        );
    }

    #[test]
    fn built_in_kinds_get_the_namespace_of_their_scope() {
        let namespace =
            |kind, metadata: Value| rendered(&object(kind, &metadata))["namespace"].take();
        assert_eq!(namespace("ConfigMap", json!({})), "ns");
        assert_eq!(namespace("ConfigMap", json!({"namespace": "other"})), "other");
        assert_eq!(namespace("ClusterRole", json!({"namespace": "other"})), Value::Null);
        assert_eq!(namespace("Widget", json!({})), Value::Null);
        assert_eq!(namespace("Widget", json!({"namespace": "other"})), "other");
    }

    #[test]
    fn same_object_twice_is_two_templates_and_one_object() {
        let twice = [object("Widget", &json!({})), object("Widget", &json!({}))];
        let none = BTreeMap::new();
        let content = ReleaseContent::from_objects(&twice, &none, "ns", &OWNER, &none);
        assert_eq!(content.chart.templates.map(|templates| templates.len()), Some(2));
        assert_eq!(content.objects.len(), 1);
        assert_eq!(content.manifest.lines().count(), 1);
        let empty = ReleaseContent::from_objects(&[], &none, "ns", &OWNER, &none);
        assert_eq!((empty.chart.templates, empty.manifest), (None, String::new()));
    }
}
