//! Objects in the form in which Go writes them, and those that pass through.

use super::RenderContext;
use mainstay_schema::{builtin, form};
use serde_json::{Map, Value};

/// Kinds that a bundle may bring along beside its definitions, and whether they have a namespace.
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

/// Whether objects of a kind have a namespace; none if a bundle may not have them.
pub(super) fn namespaced(kind: &str) -> Option<bool> {
    SUPPORTED.iter().find(|(name, _)| *name == kind).map(|(_, namespaced)| *namespaced)
}

/// An object of a built-in kind: what is empty goes, what is always written comes.
pub(super) fn object(api_version: &str, kind: &str, mut fields: Map<String, Value>) -> Value {
    fields.insert("apiVersion".to_owned(), api_version.into());
    fields.insert("kind".to_owned(), kind.into());
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    complete(&mut fields, builtin::definition_name(group, version, kind).as_deref());
    Value::Object(fields)
}

/// Gives the fields of an object the form of their type, if that is known.
pub(super) fn complete(fields: &mut Map<String, Value>, definition: Option<&str>) {
    if let Some(definition) = definition.and_then(builtin::definition) {
        form::complete(definition, fields);
    }
}

/// The metadata of an object; no namespace if it is empty.
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

/// A field of an object that is an object itself, and becomes one if it is not there.
pub(super) fn entry<'v>(value: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    let field = value.as_object_mut()?.entry(name).or_insert(Value::Null);
    if field.is_null() {
        *field = Value::Object(Map::new());
    }
    field.is_object().then_some(field)
}

/// The objects beside definitions: those that have a namespace come into the operator's.
pub(super) fn others(job: &RenderContext<'_>, mut out: Vec<Value>) -> Vec<Value> {
    for object in &mut out {
        let Value::Object(fields) = object else { continue };
        if !fields.get("kind").and_then(Value::as_str).and_then(namespaced).unwrap_or(false) {
            continue;
        }
        let namespace = job.settings.namespace;
        let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        // A metadata that is null stays so, as upstream has it.
        let Value::Object(metadata) = metadata else { continue };
        if namespace.is_empty() {
            metadata.remove("namespace");
        } else {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
    }
    out
}
