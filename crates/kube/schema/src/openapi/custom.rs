//! The types of custom kinds.

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
    definition: &crd::Definition,
    version: &crd::Version,
    format: Format,
    into: &mut Map<String, Value>,
) {
    let package = package(definition, version);
    let name = format!("{package}.{}", definition.kind);
    let gvk =
        |kind: &str| json!([{"group": definition.group, "kind": kind, "version": version.name}]);
    let mut schema = object(&version.source, format);
    schema["x-kubernetes-group-version-kind"] = gvk(&definition.kind);
    add_selectable(&mut schema, version);
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
    add_selectable(&mut list, version);
    into.insert(name, schema);
    into.insert(format!("{package}.{}", definition.list_kind), list);
}

/// Groups that the part of the original that serves custom kinds has never heard of.
const UNHEARD: [&str; 4] =
    ["admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"];

/// Leaves them out where a document of custom kinds alone lists all groups.
pub(super) fn forget(types: &mut Map<String, Value>) {
    let name = format!("io.k8s.{META}.DeleteOptions");
    let kinds = types
        .get_mut(&name)
        .and_then(|schema| schema.get_mut("x-kubernetes-group-version-kind"))
        .and_then(Value::as_array_mut);
    if let Some(kinds) = kinds {
        kinds.retain(|kind| !UNHEARD.iter().any(|group| kind["group"] == *group));
    }
}

/// Which fields field selectors know.
fn add_selectable(schema: &mut Value, version: &crd::Version) {
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
    // Whoever knew some fields would take all others for mistakes.
    if format == Format::V2 && source[UNKNOWN] == true {
        return json!({"type": "object"});
    }
    let mut schema = unfolded(source);
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
    format.described(&format!("io.k8s.{META}.{short}"), description)
}

/// `apiVersion` and `kind`, as every object has them.
fn type_meta() -> Map<String, Value> {
    let mut fields = Map::new();
    let known = builtin::definition("api.core.v1.Namespace");
    for name in ["apiVersion", "kind"] {
        let mut field = json!({"type": "string"});
        if let Some(known) = known
            && let Some(at) = known.fields().iter().position(|field| &*field.name == name)
        {
            field["description"] = Texts::of(known).field(known, at).0.into();
        }
        fields.insert(name.to_owned(), field);
    }
    fields
}

/// The schemas that a schema holds.
fn inner(schema: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
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

/// Says what `x-kubernetes-int-or-string` means in words of JSON schema.
fn unfolded(source: &Value) -> Value {
    fn unfold(schema: &mut Value) {
        inner(schema, &mut unfold);
        if schema["x-kubernetes-int-or-string"] != true {
            return;
        }
        let both = json!([{"type": "integer"}, {"type": "string"}]);
        let Value::Object(fields) = schema else { return };
        let said = |value: Option<&Value>| value == Some(&both);
        let in_all = fields
            .get("allOf")
            .and_then(Value::as_array)
            .and_then(|all| all.first())
            .is_some_and(|first| said(first.get("anyOf")));
        if said(fields.get("anyOf")) || in_all {
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
    unfold(&mut schema);
    schema
}

/// Leaves out what clients of version 2 cannot read.
fn simplify(schema: &mut Value) {
    if let Value::Object(fields) = schema {
        for key in ["allOf", "oneOf", "anyOf", "not", "default"] {
            fields.remove(key);
        }
        let nullable = fields.remove("nullable") == Some(Value::Bool(true));
        let open = fields.get(UNKNOWN) == Some(&Value::Bool(true));
        if nullable || open {
            fields.remove("items");
            fields.remove("properties");
        }
        let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
        let bare = kind == "array" && !fields.contains_key("items");
        if nullable || bare || open && kind == "object" {
            fields.remove("type");
        }
        let is_nullable = |value: &Value| value["nullable"] == true;
        let loose: Vec<String> = fields
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter(|(_, value)| is_nullable(value))
            .map(|(name, _)| name.clone())
            .collect();
        let any = fields.get("additionalProperties").is_some_and(is_nullable);
        if let Some(Value::Array(required)) = fields.get_mut("required") {
            required.retain(|name| !any && !loose.iter().any(|loose| name == loose.as_str()));
            if required.is_empty() {
                fields.remove("required");
            }
        }
    }
    inner(schema, &mut simplify);
}

/// Gives embedded objects the fields that every object has.
fn embed(schema: &mut Value, format: Format) {
    inner(schema, &mut |schema| embed(schema, format));
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
            if !required.iter().any(|one| one == name) {
                required.push(name.into());
            }
        }
    }
}
