//! Types of custom kinds in OpenAPI documents.

use super::META;
use super::operations::package;
use super::types::Format;
use crate::builtin;
use crate::builtin::texts::Texts;
use crate::crd;
use serde_json::{Map, Value, json};

const OBJECT_META: &str = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_META: &str = "Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const API_VERSION: &str = "apiVersion defines the versioned schema of this representation of an object. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "kind is a string value representing the type of this object. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";

/// Adds the types of a kind and its list.
pub(super) fn add(
    definition: &crd::CustomResourceDefinition,
    version: &crd::CrdVersion,
    format: Format,
    into: &mut Map<String, Value>,
) {
    let package = package(definition, version);
    let name = format!("{package}.{}", definition.kind);
    let gvk =
        |kind: &str| json!([{"group": definition.group, "kind": kind, "version": version.name}]);
    let mut schema = object(&version.source, format);
    schema["x-kubernetes-group-version-kind"] = gvk(&definition.kind);
    add_selectable_fields(&mut schema, version);
    let mut properties = type_meta();
    properties.insert("metadata".to_owned(), meta("ListMeta", LIST_META, format));
    let items = json!({
        "description": format!(
            "List of {}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
            definition.plural
        ),
        "type": "array",
        "items": format.reference(&name),
    });
    properties.insert("items".to_owned(), items);
    let mut list = json!({
        "description": format!("{} is a list of {}", definition.list_kind, definition.kind),
        "type": "object",
        "required": ["items"],
        "properties": properties,
        "x-kubernetes-group-version-kind": gvk(&definition.list_kind),
    });
    add_selectable_fields(&mut list, version);
    into.insert(name, schema);
    into.insert(format!("{package}.{}", definition.list_kind), list);
}

/// Groups that upstream's apiextensions server does not serve.
const UNSERVED_GROUPS: [&str; 4] =
    ["admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"];

/// Removes these groups from `DeleteOptions`, in a document with custom kinds only.
pub(super) fn remove_unserved_groups(types: &mut Map<String, Value>) {
    let name = format!("io.k8s.{META}.DeleteOptions");
    let kinds = types
        .get_mut(&name)
        .and_then(|schema| schema.get_mut("x-kubernetes-group-version-kind"))
        .and_then(Value::as_array_mut);
    if let Some(kinds) = kinds {
        kinds.retain(|kind| !UNSERVED_GROUPS.iter().any(|group| kind["group"] == *group));
    }
}

/// Adds `x-kubernetes-selectable-fields`.
fn add_selectable_fields(schema: &mut Value, version: &crd::CrdVersion) {
    if !version.selectable_fields.is_empty() {
        let fields: Vec<Value> = version
            .selectable_fields
            .iter()
            .map(|path| json!({"fieldPath": path.trim_start_matches('.')}))
            .collect();
        schema["x-kubernetes-selectable-fields"] = fields.into();
    }
}

fn object(source: &Value, format: Format) -> Value {
    // With some fields in the document, kubectl would reject all others.
    if format == Format::V2 && source[UNKNOWN] == true {
        return json!({"type": "object"});
    }
    let mut schema = expand_int_or_string(source);
    if format == Format::V2 {
        simplify(&mut schema);
    }
    embed(&mut schema, format);
    if let Value::Object(fields) = &mut schema {
        let properties = fields.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            properties.extend(type_meta());
            properties.insert("metadata".to_owned(), meta("ObjectMeta", OBJECT_META, format));
        }
    }
    schema
}

fn meta(short: &str, description: &str, format: Format) -> Value {
    format.described_reference(&format!("io.k8s.{META}.{short}"), description)
}

/// `apiVersion` and `kind`, as in each object.
fn type_meta() -> Map<String, Value> {
    let mut fields = Map::new();
    let namespace = builtin::definition("api.core.v1.Namespace");
    for name in ["apiVersion", "kind"] {
        let mut field = json!({"type": "string"});
        if let Some(namespace) = namespace
            && let Some(at) = namespace.fields().iter().position(|field| &*field.name == name)
        {
            field["description"] = Texts::of(namespace).field(namespace, at).0.into();
        }
        fields.insert(name.to_owned(), field);
    }
    fields
}

/// Visits the nested schemas of a schema.
fn visit_nested(schema: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    let Value::Object(fields) = schema else { return };
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(&mut *visit);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(value) = fields.get_mut(key).filter(|value| value.is_object()) {
            visit(value);
        }
    }
}

/// Expands `x-kubernetes-int-or-string` to `anyOf`.
fn expand_int_or_string(source: &Value) -> Value {
    fn expand(schema: &mut Value) {
        visit_nested(schema, &mut expand);
        if schema["x-kubernetes-int-or-string"] != true {
            return;
        }
        let both = json!([{"type": "integer"}, {"type": "string"}]);
        let Value::Object(fields) = schema else { return };
        let has_both = |value: Option<&Value>| value == Some(&both);
        let in_all_of = fields
            .get("allOf")
            .and_then(Value::as_array)
            .and_then(|all| all.first())
            .is_some_and(|first| has_both(first.get("anyOf")));
        if has_both(fields.get("anyOf")) || in_all_of {
            return;
        }
        if fields.contains_key("anyOf") {
            let first = json!({"anyOf": both});
            match fields.get_mut("allOf").and_then(Value::as_array_mut) {
                Some(all) => all.insert(0, first),
                None => drop(fields.insert("allOf".to_owned(), json!([first]))),
            }
        } else {
            fields.insert("anyOf".to_owned(), both);
        }
    }
    let mut schema = source.clone();
    expand(&mut schema);
    schema
}

/// Removes keywords that clients of version 2 do not support.
fn simplify(schema: &mut Value) {
    if let Value::Object(fields) = schema {
        for key in ["allOf", "oneOf", "anyOf", "not", "default"] {
            fields.remove(key);
        }
        let nullable = fields.remove("nullable") == Some(Value::Bool(true));
        let preserves_unknown = fields.get(UNKNOWN) == Some(&Value::Bool(true));
        if nullable || preserves_unknown {
            fields.remove("items");
            fields.remove("properties");
        }
        let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
        let is_untyped_list = kind == "array" && !fields.contains_key("items");
        if nullable || is_untyped_list || preserves_unknown && kind == "object" {
            fields.remove("type");
        }
        let is_nullable = |value: &Value| value["nullable"] == true;
        let nullable_properties: Vec<String> = fields
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter(|(_, value)| is_nullable(value))
            .map(|(name, _)| name.clone())
            .collect();
        let any = fields.get("additionalProperties").is_some_and(is_nullable);
        if let Some(Value::Array(required)) = fields.get_mut("required") {
            required.retain(|name| {
                !any && !nullable_properties.iter().any(|property| name == property.as_str())
            });
            if required.is_empty() {
                fields.remove("required");
            }
        }
    }
    visit_nested(schema, &mut simplify);
}

/// Adds the common fields of objects to embedded objects.
fn embed(schema: &mut Value, format: Format) {
    visit_nested(schema, &mut |schema| embed(schema, format));
    let Value::Object(fields) = schema else { return };
    let set = |key: &str| fields.get(key) == Some(&Value::Bool(true));
    if !set("x-kubernetes-embedded-resource") || format == Format::V2 && set(UNKNOWN) {
        return;
    }
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    for (name, description) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        properties[name] = json!({"type": "string", "description": description});
    }
    properties["metadata"] = meta("ObjectMeta", OBJECT_META, format);
    let required = fields.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(required) = required {
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|field| field == name) {
                required.push(name.into());
            }
        }
    }
}
