//! The types of a document: built-in definitions with everything they reach, and custom kinds.

use super::META;
use crate::builtin::table::Texts;
use crate::builtin::{self, Definition, Field, Shape, Type};
use crate::crd;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Types that a document needs, collected while its paths are written.
#[derive(Default)]
pub(super) struct Types {
    named: BTreeSet<String>,
    custom: Map<String, Value>,
}

/// A reference to a type of the document.
fn reference_to(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

impl Types {
    /// A reference to a built-in type, which the document will then have.
    pub(super) fn reference(&mut self, name: &str) -> Value {
        self.named.insert(name.to_owned());
        reference_to(&format!("io.k8s.{name}"))
    }

    /// References to a custom kind and its list, which the document will then have.
    pub(super) fn custom(
        &mut self,
        definition: &crd::Definition,
        version: &crd::Version,
    ) -> (Value, Value) {
        let mut domain: Vec<&str> = definition.group.split('.').collect();
        domain.reverse();
        let package = format!("{}.{}", domain.join("."), version.name);
        let name = format!("{package}.{}", definition.kind);
        let list_name = format!("{package}.{}", definition.list_kind);
        let gvk = |kind: &str| json!([{"group": definition.group, "kind": kind, "version": version.name}]);
        let mut schema = (*version.source).clone();
        if let Value::Object(fields) = &mut schema {
            let properties = fields.entry("properties").or_insert_with(|| json!({}));
            if let Value::Object(properties) = properties {
                for (field, value) in self.meta("ObjectMeta", "Standard object's metadata.") {
                    properties.insert(field, value);
                }
            }
            fields.insert("x-kubernetes-group-version-kind".to_owned(), gvk(&definition.kind));
        }
        let mut properties = self.meta("ListMeta", "Standard list metadata.");
        let items = json!({
            "description": format!("List of {}.", definition.plural),
            "type": "array",
            "items": reference_to(&name),
        });
        properties.insert("items".to_owned(), items);
        let list = json!({
            "description": format!("{} is a list of {}", definition.list_kind, definition.kind),
            "type": "object",
            "required": ["items"],
            "properties": properties,
            "x-kubernetes-group-version-kind": gvk(&definition.list_kind),
        });
        self.custom.insert(name.clone(), schema);
        self.custom.insert(list_name.clone(), list);
        (reference_to(&name), reference_to(&list_name))
    }

    /// `apiVersion`, `kind` and `metadata`, as every object has them.
    fn meta(&mut self, metadata: &str, description: &str) -> Map<String, Value> {
        let mut fields = Map::new();
        let known = builtin::definition("api.core.v1.Namespace");
        for name in ["apiVersion", "kind"] {
            let mut field = json!({"type": "string"});
            if let Some(known) = known
                && let Some(at) = known.fields().iter().position(|field| &*field.name == name)
            {
                field["description"] = Texts::of(known).field(known, at).into();
            }
            fields.insert(name.to_owned(), field);
        }
        let reference = self.reference(&format!("{META}.{metadata}"));
        let field = json!({"description": description, "allOf": [reference]});
        fields.insert("metadata".to_owned(), field);
        fields
    }

    /// All types, with everything that they reach.
    pub(super) fn finish(self) -> Map<String, Value> {
        let mut schemas = self.custom;
        let mut texts: BTreeMap<&str, Texts> = BTreeMap::new();
        let mut open: Vec<String> = self.named.into_iter().collect();
        while let Some(name) = open.pop() {
            let Some(definition) = builtin::definition(&name) else { continue };
            let full = format!("io.k8s.{}", definition.name());
            if schemas.contains_key(&full) {
                continue;
            }
            let package = definition.name().rsplit_once('.').map_or("", |parts| parts.0);
            let texts = texts.entry(package).or_insert_with(|| Texts::of(definition));
            schemas.insert(full, schema(definition, texts, &mut open));
        }
        schemas
    }
}

fn schema(definition: &Definition, texts: &Texts, open: &mut Vec<String>) -> Value {
    let mut out = match definition.shape() {
        Shape::Object | Shape::FreeObject => json!({"type": "object"}),
        Shape::Any => json!({}),
        Shape::Time | Shape::MicroTime => json!({"type": "string", "format": "date-time"}),
        Shape::IntOrString => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        Shape::Quantity => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
    };
    let description = texts.definition(definition);
    if !description.is_empty() {
        out["description"] = description.into();
    }
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (at, field) in definition.fields().iter().enumerate() {
        let description = texts.field(definition, at);
        properties.insert((*field.name).to_owned(), property(field, description, open));
        if field.required {
            required.push(&*field.name);
        }
    }
    if !properties.is_empty() {
        out["properties"] = properties.into();
    }
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
    out
}

fn property(field: &Field, description: &str, open: &mut Vec<String>) -> Value {
    let mut out = value(&field.ty, open);
    // A reference may have nothing beside it.
    if out.get("$ref").is_some() {
        out = json!({"allOf": [out]});
    }
    if !description.is_empty() {
        out["description"] = description.into();
    }
    if let Some(default) = &field.default {
        out["default"] = default.clone();
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

fn value(ty: &Type, open: &mut Vec<String>) -> Value {
    match ty {
        Type::String => json!({"type": "string"}),
        Type::Bytes => json!({"type": "string", "format": "byte"}),
        Type::Int32 => json!({"type": "integer", "format": "int32"}),
        Type::Int64 => json!({"type": "integer", "format": "int64"}),
        Type::Double => json!({"type": "number", "format": "double"}),
        Type::Boolean => json!({"type": "boolean"}),
        Type::List(element) => json!({"type": "array", "items": value(element, open)}),
        Type::Map(element) => {
            json!({"type": "object", "additionalProperties": value(element, open)})
        }
        Type::Object(name) => {
            open.push((**name).to_owned());
            reference_to(&format!("io.k8s.{name}"))
        }
    }
}

/// The kinds whose objects have this type; sorted as they were found.
fn kinds_of(definition: &Definition) -> Vec<Value> {
    let gvk = |group: &str, version: &str, kind: &str| json!({"group": group, "kind": kind, "version": version});
    let short = definition.short_name();
    let in_meta = definition.name().strip_suffix(short) == Some("apimachinery.pkg.apis.meta.v1.");
    if in_meta && matches!(short, "DeleteOptions" | "WatchEvent") {
        let mut versions: Vec<(&str, &str)> =
            builtin::kinds().iter().map(|row| (row.group, row.version)).collect();
        versions.sort_unstable();
        versions.dedup();
        return versions.iter().map(|(group, version)| gvk(group, version, short)).collect();
    }
    if in_meta && matches!(short, "Status" | "APIResourceList" | "APIGroup" | "APIGroupList") {
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
