//! Objects in the form in which Go encodes them, and the objects of the manifests.

use super::RenderContext;
use mainstay_schema::{builtin, form};
use serde_json::{Map, Value};

/// Kinds that the manifests of a bundle may have, and whether they are namespaced.
const SUPPORTED: &[(&str, bool)] = &[
    ("ClusterRole", false),
    ("ClusterRoleBinding", false),
    ("ClusterServiceVersion", true),
    ("ConfigMap", true),
    ("ConsoleCLIDownload", false),
    ("ConsoleLink", false),
    ("ConsolePlugin", false),
    ("ConsoleQuickStart", false),
    ("ConsoleYAMLSample", false),
    ("CustomResourceDefinition", false),
    ("NetworkPolicy", true),
    ("PodDisruptionBudget", true),
    ("PodMonitor", true),
    ("PriorityClass", false),
    ("PrometheusRule", true),
    ("Role", true),
    ("RoleBinding", true),
    ("Secret", true),
    ("Service", true),
    ("ServiceAccount", true),
    ("ServiceMonitor", true),
    ("VerticalPodAutoscaler", false),
];

/// Whether a kind is namespaced; none if a bundle may not have it.
pub(super) fn namespaced(kind: &str) -> Option<bool> {
    SUPPORTED.iter().find(|(name, _)| *name == kind).map(|(_, namespaced)| *namespaced)
}

/// An object of a built-in kind: without empty fields, and with the fields that Go always encodes.
pub(super) fn object(api_version: &str, kind: &str, mut fields: Map<String, Value>) -> Value {
    fields.insert("apiVersion".to_owned(), api_version.into());
    fields.insert("kind".to_owned(), kind.into());
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    complete(&mut fields, builtin::definition_name(group, version, kind).as_deref());
    Value::Object(fields)
}

/// Gives the fields of an object the form of their type, if the type is known.
pub(super) fn complete(fields: &mut Map<String, Value>, definition: Option<&str>) {
    if let Some(definition) = definition.and_then(builtin::definition) {
        form::complete(definition, fields);
    }
}

/// The metadata of an object; an empty namespace is left out.
pub(super) fn metadata(name: &str, namespace: &str) -> Value {
    let mut fields = Map::new();
    fields.insert("name".to_owned(), name.into());
    if !namespace.is_empty() {
        fields.insert("namespace".to_owned(), namespace.into());
    }
    Value::Object(fields)
}

/// Sets an annotation of an object.
pub(super) fn annotate(object: &mut Value, name: &str, value: &str) {
    let Some(metadata) = entry(object, "metadata") else { return };
    if let Some(annotations) = entry(metadata, "annotations") {
        annotations[name] = value.into();
    }
}

/// A field that is an object; created if absent.
pub(super) fn entry<'v>(value: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    let field = value.as_object_mut()?.entry(name).or_insert(Value::Null);
    if field.is_null() {
        *field = Value::Object(Map::new());
    }
    field.is_object().then_some(field)
}

/// The objects of the manifests without CRDs. Namespaced ones move to the operator's namespace.
pub(super) fn others(context: &RenderContext<'_>, mut out: Vec<Value>) -> Vec<Value> {
    for object in &mut out {
        let Value::Object(fields) = object else { continue };
        if !fields.get("kind").and_then(Value::as_str).and_then(namespaced).unwrap_or(false) {
            continue;
        }
        let namespace = context.settings.namespace;
        let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        // Null metadata stays null, as upstream does it.
        let Value::Object(metadata) = metadata else { continue };
        if namespace.is_empty() {
            metadata.remove("namespace");
        } else {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
    }
    out
}
