//! Built-in types of a document, with all types that they refer to.
//!
//! Schemas follow from the table by the rules of `kube-openapi`'s generator: Go's zero value is the
//! default of a field that is no pointer and is always written, and of elements. All other parts
//! (enumerations, unions, an order) are patches in the table, after the description.

use crate::builtin::texts::Texts;
use crate::builtin::{self, FieldDefinition, FieldType, JsonForm, OmitRule, TypeDefinition};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The version of `OpenAPI`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// 2.0: no defaults; a reference may only have a description beside it.
    V2,
    /// 3.0: a reference with other keywords beside it is in `allOf`.
    V3,
}

impl Format {
    /// A reference to a type.
    pub(super) fn reference(self, name: &str) -> Value {
        match self {
            Self::V2 => json!({"$ref": format!("#/definitions/{name}")}),
            Self::V3 => json!({"$ref": format!("#/components/schemas/{name}")}),
        }
    }

    /// A reference to a type with a description.
    pub(super) fn described_reference(self, name: &str, description: &str) -> Value {
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

/// Built-in types with all types that they refer to, by full name.
pub(super) fn with_references<'a>(
    names: impl IntoIterator<Item = &'a str>,
    format: Format,
) -> Map<String, Value> {
    let mut schemas = Map::new();
    let mut texts: BTreeMap<&str, Texts> = BTreeMap::new();
    let mut pending: Vec<String> = names.into_iter().map(str::to_owned).collect();
    while let Some(name) = pending.pop() {
        let Some(definition) = builtin::definition(&name) else { continue };
        let full = format!("io.k8s.{}", definition.name());
        if schemas.contains_key(&full) {
            continue;
        }
        let package = definition.name().rsplit_once('.').map_or("", |parts| parts.0);
        let texts = texts.entry(package).or_insert_with(|| Texts::of(definition));
        schemas.insert(full, schema(definition, texts, format, &mut pending));
    }
    schemas
}

fn schema(
    definition: &TypeDefinition,
    texts: &Texts,
    format: Format,
    pending: &mut Vec<String>,
) -> Value {
    let mut out = match (definition.json_form(), format) {
        (JsonForm::Object | JsonForm::FreeObject, _) => json!({"type": "object"}),
        (JsonForm::Any, _) => json!({}),
        (JsonForm::Time | JsonForm::MicroTime, _) => {
            json!({"type": "string", "format": "date-time"})
        }
        (JsonForm::IntOrString, Format::V3) => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        (JsonForm::IntOrString, Format::V2) => json!({"type": "string", "format": "int-or-string"}),
        (JsonForm::Quantity, Format::V3) => {
            json!({"oneOf": [{"type": "string"}, {"type": "number"}]})
        }
        (JsonForm::Quantity, Format::V2) | (JsonForm::ParsedText, _) => json!({"type": "string"}),
    };
    let (description, patch) = texts.definition(definition);
    if !description.is_empty() {
        out["description"] = description.into();
    }
    let mut properties = Map::new();
    let is_list = definition.short_name().ends_with("List");
    for (at, field) in definition.fields().iter().enumerate() {
        let (description, patch) = texts.field(definition, at);
        let mut property = property(field, description, format, pending);
        if is_list && &*field.name == "items" {
            // Kinds of lists are never merged.
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
fn required(definition: &TypeDefinition) -> Vec<&str> {
    let mut found: Vec<&FieldDefinition> =
        definition.fields().iter().filter(|field| field.required).collect();
    found.sort_by(|a, b| a.tags.cmp(&b.tags));
    found.into_iter().map(|field| &*field.name).collect()
}

/// Merges the patch from the table. Version 2 has no defaults.
fn amend(schema: &mut Value, patch: &str, format: Format) {
    if patch.is_empty() {
        return;
    }
    // The table is generated; a test checks that each patch parses.
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

fn property(
    field: &FieldDefinition,
    description: &str,
    format: Format,
    pending: &mut Vec<String>,
) -> Value {
    let default = default_of(field).filter(|_| format == Format::V3);
    let mut out = value(&field.ty, format, default, !description.is_empty(), pending);
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

/// The default of a field: that of the Go sources, else Go's zero value if it is always written.
fn default_of(field: &FieldDefinition) -> Option<Value> {
    if field.default.is_some() || field.pointer {
        return field.default.clone();
    }
    match &field.ty {
        FieldType::Object(_) => zero(&field.ty),
        ty if field.omit == OmitRule::Never => zero(ty),
        _ => None,
    }
}

/// Go's zero value as a default; lists, maps and bytes have none.
fn zero(ty: &FieldType) -> Option<Value> {
    match ty {
        FieldType::String => Some("".into()),
        FieldType::Int32 | FieldType::Int64 | FieldType::Double => Some(0.into()),
        FieldType::Boolean => Some(false.into()),
        FieldType::Object(_) => match ty.definition().map(TypeDefinition::json_form) {
            Some(JsonForm::Object) => Some(json!({})),
            // Types with a special JSON form have no default.
            _ => None,
        },
        FieldType::Bytes | FieldType::List(_) | FieldType::Map(_) => None,
    }
}

fn value(
    ty: &FieldType,
    format: Format,
    default: Option<Value>,
    described: bool,
    pending: &mut Vec<String>,
) -> Value {
    let element = |element: &FieldType, pending: &mut Vec<String>| {
        let default = zero(element).filter(|_| format == Format::V3);
        value(element, format, default, false, pending)
    };
    let mut out = match ty {
        FieldType::String => json!({"type": "string"}),
        FieldType::Bytes => json!({"type": "string", "format": "byte"}),
        FieldType::Int32 => json!({"type": "integer", "format": "int32"}),
        FieldType::Int64 => json!({"type": "integer", "format": "int64"}),
        FieldType::Double => json!({"type": "number", "format": "double"}),
        FieldType::Boolean => json!({"type": "boolean"}),
        FieldType::List(inner) => json!({"type": "array", "items": element(inner, pending)}),
        FieldType::Map(inner) => {
            json!({"type": "object", "additionalProperties": element(inner, pending)})
        }
        FieldType::Object(reference_to) => {
            pending.push(reference_to.name().to_owned());
            let reference = format.reference(&format!("io.k8s.{}", reference_to.name()));
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

/// The kinds whose objects have this type, in the order of the table.
fn kinds_of(definition: &TypeDefinition) -> Vec<Value> {
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
    let has_name = |group: &str, version: &str, kind: &str| {
        builtin::definition_name(group, version, kind).as_deref() == Some(definition.name())
    };
    for row in builtin::kinds() {
        let item = short.strip_suffix("List").unwrap_or(short);
        if item == row.kind && has_name(row.group, row.version, short) {
            return vec![gvk(row.group, row.version, short)];
        }
        for subresource in row.subresources {
            let found = subresource.gvk(row);
            if found.kind == short && has_name(&found.group, &found.version, short) {
                return vec![gvk(&found.group, &found.version, short)];
            }
        }
    }
    Vec::new()
}

/// Kinds of the meta group that exist in each group.
const KINDS_OF_META: [&str; 5] =
    ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"];
