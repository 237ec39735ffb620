//! The types of a document: built-in definitions with everything they reach.
//!
//! What the types look like follows from the table by the rules of `kube-openapi`'s generator: Go's
//! zero values are defaults of what is no pointer and is written when empty, elements have the zero
//! value of their type. What does not follow (enumerations, unions, an order) is a patch that lies in
//! the table behind the description.

use crate::builtin::texts::Texts;
use crate::builtin::{self, Definition, Field, Shape, Type, Written};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Which version of `OpenAPI` is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// 2.0: no defaults, and nothing but a description beside a reference.
    V2,
    /// 3.0: a reference that has something beside it stands in `allOf`.
    V3,
}

impl Format {
    /// A reference to a type, which has nothing beside it.
    pub(super) fn reference(self, name: &str) -> Value {
        match self {
            Self::V2 => json!({"$ref": format!("#/definitions/{name}")}),
            Self::V3 => json!({"$ref": format!("#/components/schemas/{name}")}),
        }
    }

    /// A reference to a type with a description beside it.
    pub(super) fn described(self, name: &str, description: &str) -> Value {
        let mut out = self.reference(name);
        if !description.is_empty() {
            if self == Self::V3 {
                out = json!({"allOf": [out]});
            }
            out["description"] = description.into();
        }
        out
    }
}

/// Built-in types with everything that they reach, by full name.
pub(super) fn reached<'a>(
    names: impl IntoIterator<Item = &'a str>,
    format: Format,
) -> Map<String, Value> {
    let mut schemas = Map::new();
    let mut texts: BTreeMap<&str, Texts> = BTreeMap::new();
    let mut open: Vec<String> = names.into_iter().map(str::to_owned).collect();
    while let Some(name) = open.pop() {
        let Some(definition) = builtin::definition(&name) else { continue };
        let full = format!("io.k8s.{}", definition.name());
        if schemas.contains_key(&full) {
            continue;
        }
        let package = definition.name().rsplit_once('.').map_or("", |parts| parts.0);
        let texts = texts.entry(package).or_insert_with(|| Texts::of(definition));
        schemas.insert(full, schema(definition, texts, format, &mut open));
    }
    schemas
}

fn schema(definition: &Definition, texts: &Texts, format: Format, open: &mut Vec<String>) -> Value {
    let mut out = match (definition.shape(), format) {
        (Shape::Object | Shape::FreeObject, _) => json!({"type": "object"}),
        (Shape::Any, _) => json!({}),
        (Shape::Time | Shape::MicroTime, _) => json!({"type": "string", "format": "date-time"}),
        (Shape::IntOrString, Format::V3) => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        (Shape::IntOrString, Format::V2) => json!({"type": "string", "format": "int-or-string"}),
        (Shape::Quantity, Format::V3) => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        (Shape::Quantity, Format::V2) | (Shape::ParsedText, _) => json!({"type": "string"}),
    };
    let (description, patch) = texts.definition(definition);
    if !description.is_empty() {
        out["description"] = description.into();
    }
    let mut properties = Map::new();
    let is_list = definition.short_name().ends_with("List");
    for (at, field) in definition.fields().iter().enumerate() {
        let (description, patch) = texts.field(definition, at);
        let mut property = property(field, description, format, open);
        if is_list && &*field.name == "items" {
            // Lists of objects are nobody's to merge.
            drop(
                property.as_object_mut().map(|property| property.remove("x-kubernetes-list-type")),
            );
        }
        amend(&mut property, patch, format);
        properties.insert((*field.name).to_owned(), property);
    }
    if !properties.is_empty() {
        out["properties"] = properties.into();
    }
    let required = required(definition);
    if !required.is_empty() {
        out["required"] = json!(required);
    }
    if definition.is_atomic() {
        out["x-kubernetes-map-type"] = "atomic".into();
    }
    let gvks = kinds_of(definition);
    if !gvks.is_empty() {
        out["x-kubernetes-group-version-kind"] = gvks.into();
    }
    amend(&mut out, patch, format);
    out
}

/// The required fields in the order of Go's struct, which their tags follow.
fn required(definition: &Definition) -> Vec<&str> {
    let mut found: Vec<&Field> =
        definition.fields().iter().filter(|field| field.required).collect();
    found.sort_by(|a, b| a.tags.cmp(&b.tags));
    found.into_iter().map(|field| &*field.name).collect()
}

/// Merges what the table knows besides. Version 2 has no defaults.
fn amend(schema: &mut Value, patch: &str, format: Format) {
    if patch.is_empty() {
        return;
    }
    // The table is generated; a test holds that every patch can be read.
    if let Ok(Value::Object(patch)) = serde_json::from_str(patch) {
        merge(schema, &patch, format);
    }
}

fn merge(into: &mut Value, patch: &Map<String, Value>, format: Format) {
    if !into.is_object() {
        *into = json!({});
    }
    let Value::Object(fields) = into else { return };
    for (key, value) in patch {
        match value {
            Value::Null => drop(fields.remove(key)),
            _ if key == "default" && format == Format::V2 => {}
            Value::Object(inner) if key != "default" => {
                merge(fields.entry(key).or_insert_with(|| json!({})), inner, format);
            }
            _ => drop(fields.insert(key.clone(), value.clone())),
        }
    }
}

fn property(field: &Field, description: &str, format: Format, open: &mut Vec<String>) -> Value {
    let default = default_of(field).filter(|_| format == Format::V3);
    let mut out = value(&field.ty, format, default, !description.is_empty(), open);
    if !description.is_empty() {
        out["description"] = description.into();
    }
    if let Some(list_type) = field.list_type {
        out["x-kubernetes-list-type"] = list_type.as_str().into();
    }
    if !field.list_map_keys.is_empty() {
        out["x-kubernetes-list-map-keys"] = json!(field.list_map_keys);
    }
    if field.atomic {
        out["x-kubernetes-map-type"] = "atomic".into();
    }
    if let Some(key) = &field.patch_merge_key {
        out["x-kubernetes-patch-merge-key"] = (**key).into();
    }
    let strategies: Vec<&str> = [
        (field.patch_merge, "merge"),
        (field.patch_replace, "replace"),
        (field.patch_retain_keys, "retainKeys"),
    ]
    .into_iter()
    .filter_map(|(set, name)| set.then_some(name))
    .collect();
    if !strategies.is_empty() {
        out["x-kubernetes-patch-strategy"] = strategies.join(",").into();
    }
    out
}

/// What a field has when nobody says: what the sources say, else Go's zero value where it is written.
fn default_of(field: &Field) -> Option<Value> {
    if field.default.is_some() || field.pointer {
        return field.default.clone();
    }
    match &field.ty {
        Type::Object(_) => zero(&field.ty),
        ty if field.written == Written::Always => zero(ty),
        _ => None,
    }
}

/// Go's zero value as a default; lists, maps and bytes have none.
fn zero(ty: &Type) -> Option<Value> {
    match ty {
        Type::String => Some("".into()),
        Type::Int32 | Type::Int64 | Type::Double => Some(0.into()),
        Type::Boolean => Some(false.into()),
        Type::Object(_) => match ty.definition().map(Definition::shape) {
            Some(Shape::Object) => Some(json!({})),
            // Types with their own form in JSON have no default.
            _ => None,
        },
        Type::Bytes | Type::List(_) | Type::Map(_) => None,
    }
}

fn value(
    ty: &Type,
    format: Format,
    default: Option<Value>,
    described: bool,
    open: &mut Vec<String>,
) -> Value {
    let element = |element: &Type, open: &mut Vec<String>| {
        let default = zero(element).filter(|_| format == Format::V3);
        value(element, format, default, false, open)
    };
    let mut out = match ty {
        Type::String => json!({"type": "string"}),
        Type::Bytes => json!({"type": "string", "format": "byte"}),
        Type::Int32 => json!({"type": "integer", "format": "int32"}),
        Type::Int64 => json!({"type": "integer", "format": "int64"}),
        Type::Double => json!({"type": "number", "format": "double"}),
        Type::Boolean => json!({"type": "boolean"}),
        Type::List(inner) => json!({"type": "array", "items": element(inner, open)}),
        Type::Map(inner) => {
            json!({"type": "object", "additionalProperties": element(inner, open)})
        }
        Type::Object(named) => {
            open.push(named.name().to_owned());
            let reference = format.reference(&format!("io.k8s.{}", named.name()));
            if format == Format::V3 && (described || default.is_some()) {
                json!({"allOf": [reference]})
            } else {
                reference
            }
        }
    };
    if let Some(default) = default {
        out["default"] = default;
    }
    out
}

/// The kinds whose objects have this type; sorted as they were found.
fn kinds_of(definition: &Definition) -> Vec<Value> {
    let gvk = |group: &str, version: &str, kind: &str| json!({"group": group, "kind": kind, "version": version});
    let short = definition.short_name();
    let in_meta = definition.name().strip_suffix(short) == Some("apimachinery.pkg.apis.meta.v1.");
    if in_meta && matches!(short, "DeleteOptions" | "WatchEvent") {
        let versions: BTreeSet<(&str, &str)> =
            builtin::kinds().iter().map(|row| (row.group, row.version)).collect();
        return versions.iter().map(|(group, version)| gvk(group, version, short)).collect();
    }
    if in_meta && KINDS_OF_META.contains(&short) {
        return vec![gvk("", "v1", short)];
    }
    let named = |group: &str, version: &str, kind: &str| {
        builtin::definition_name(group, version, kind).as_deref() == Some(definition.name())
    };
    for row in builtin::kinds() {
        let item = short.strip_suffix("List").unwrap_or(short);
        if item == row.kind && named(row.group, row.version, short) {
            return vec![gvk(row.group, row.version, short)];
        }
        for subresource in row.subresources {
            let found = subresource.gvk(row);
            if found.kind == short && named(&found.group, &found.version, short) {
                return vec![gvk(&found.group, &found.version, short)];
            }
        }
    }
    Vec::new()
}

/// Kinds that every group speaks.
const KINDS_OF_META: [&str; 5] =
    ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"];
