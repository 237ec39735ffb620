//! What a schema in a definition may not have, beyond being structural.

use super::fields;
use crate::trail::{self, Trail};
use mainstay_object::{FieldError, FieldPath};
use serde_json::Value;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
/// What the root may have beside `type` when `/status` exists, in Go's spelling.
const ROOT_FIELDS: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]";
const NOT_AT_ROOT: [&str; 22] = [
    "$ref",
    "$schema",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "definitions",
    "dependencies",
    "enum",
    "id",
    "maxProperties",
    "minProperties",
    "not",
    "nullable",
    "oneOf",
    "patternProperties",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

/// What [`root`] found.
pub(super) struct Found {
    pub(super) errors: Vec<FieldError>,
    /// Whether parts are not supported at all; the original then does not ask whether the rest is
    /// structural.
    pub(super) unsupported: bool,
}

/// Checks the schema of whole objects.
pub(super) fn root(schema: &Value, has_status: bool, path: &FieldPath) -> Found {
    let path = &Trail::below(path.as_str());
    let mut found = Vec::new();
    if has_status {
        if schema.get("type").is_some_and(|kind| kind != "object") {
            found.push(trail::invalid(
                &path.child("type"),
                schema["type"].clone(),
                "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled",
            ));
        } else if NOT_AT_ROOT.iter().any(|name| is_set(schema, name)) {
            let detail = format!(
                "only {ROOT_FIELDS} fields are allowed at the root of the schema if the status subresource is enabled"
            );
            found.push(trail::invalid(path, schema.clone(), detail));
        }
    }
    if schema.get("nullable") == Some(&Value::Bool(true)) {
        let path = path.child("nullable");
        found.push(trail::forbidden(&path, "nullable cannot be true at the root"));
    }
    let mut walk = Walk { found, unsupported: false };
    walk.schema(schema, Inside { root: true, ..Inside::default() }, path);
    Found { errors: walk.found, unsupported: walk.unsupported }
}

/// Whether a field says something: Go's zero values do not, except behind a pointer (`default`).
fn is_set(schema: &Value, name: &str) -> bool {
    match schema.get(name) {
        None | Some(Value::Null) => false,
        // Any default is one, also an empty text.
        Some(_) if name == "default" => true,
        Some(Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(entries)) => !entries.is_empty() || name == "not",
        Some(_) => true,
    }
}

/// What a schema stands in.
#[derive(Clone, Copy, Default)]
struct Inside<'a> {
    root: bool,
    meta: bool,
    /// Why defaults are forbidden here.
    no_defaults: Option<&'a str>,
}

struct Walk {
    found: Vec<FieldError>,
    unsupported: bool,
}

impl Walk {
    fn forbid(&mut self, path: &Trail<'_>, field: &str, detail: impl Into<String>) {
        self.found.push(trail::forbidden(&path.child(field), detail));
    }

    fn required(&mut self, path: &Trail<'_>, detail: impl Into<String>) {
        self.found.push(trail::required(path, detail));
    }

    fn invalid(&mut self, path: &Trail<'_>, value: impl Into<Value>, detail: impl Into<String>) {
        self.found.push(trail::invalid(path, value, detail));
    }

    fn schema(&mut self, schema: &Value, inside: Inside<'_>, path: &Trail<'_>) {
        self.plain(schema, inside, path);
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            let detail =
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid(path, "uniqueItems", detail);
        }
        self.below(schema, inside, path);
        if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let path = path.child("x-kubernetes-preserve-unknown-fields");
            self.unsupported = true;
            self.invalid(&path, false, "must be true or undefined");
        }
        self.lists_and_maps(schema, path);
        self.cel_rules(schema, path);
    }

    fn plain(&mut self, schema: &Value, inside: Inside<'_>, path: &Trail<'_>) {
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        if !kind.is_empty() && !TYPES.contains(&kind) {
            self.found.push(trail::not_supported(&path.child("type"), kind, &TYPES));
        }
        if let Some(reason) = inside.no_defaults
            && is_set(schema, "default")
        {
            self.forbid(path, "default", format!("must not be set {reason}"));
        }
        for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies"] {
            if is_set(schema, name) {
                self.unsupported = true;
                self.forbid(path, name, format!("{name} is not supported"));
            }
        }
        if schema.get("$ref").is_some_and(Value::is_string) {
            self.unsupported = true;
            self.forbid(path, "$ref", "$ref is not supported");
        }
        if kind == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            self.forbid(path, "type", detail);
        }
        if schema.get("items").is_some_and(Value::is_array) {
            self.unsupported = true;
            self.forbid(path, "items", "items must be a schema object and not an array");
        }
        if inside.meta && is_set(schema, "x-kubernetes-embedded-resource") {
            let detail = "must not be used inside of resource meta";
            self.forbid(path, "x-kubernetes-embedded-resource", detail);
        }
    }

    fn below(&mut self, schema: &Value, inside: Inside<'_>, path: &Trail<'_>) {
        let here = Inside { root: false, ..inside };
        if let Some(additional) = schema.get("additionalProperties") {
            if is_set(schema, "properties") && *additional != Value::Bool(true) {
                let detail = "additionalProperties and properties are mutual exclusive";
                self.forbid(path, "additionalProperties", detail);
            }
            if additional.is_object() {
                let mut here = here;
                if inside.meta {
                    here.no_defaults =
                        Some("inside additionalProperties applying to object metadata");
                }
                self.schema(additional, here, &path.child("additionalProperties"));
            }
        }
        let embedded = schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
        for (name, property) in schema.get("properties").map(fields).into_iter().flatten() {
            let mut here = here;
            let reason: String;
            if (inside.root || embedded)
                && matches!(name.as_str(), "metadata" | "kind" | "apiVersion")
            {
                here.meta = true;
                if inside.root {
                    reason = format!("in top-level {name}");
                    here.no_defaults = Some(&reason);
                }
            }
            self.schema(property, here, &path.child("properties").key(name));
        }
        if let Some(not) = schema.get("not").filter(|not| not.is_object()) {
            self.schema(not, here, &path.child("not"));
        }
        for name in ["allOf", "oneOf", "anyOf"] {
            let rules = schema.get(name).and_then(Value::as_array).into_iter().flatten();
            for (at, rule) in rules.enumerate() {
                self.schema(rule, here, &path.child(name).index(at));
            }
        }
        if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
            self.schema(items, here, &path.child("items"));
        }
    }

    fn lists_and_maps(&mut self, schema: &Value, path: &Trail<'_>) {
        let text = |value: &Value, name: &str| {
            value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let kind = text(schema, "type");
        let (list_type, map_type) =
            (text(schema, "x-kubernetes-list-type"), text(schema, "x-kubernetes-map-type"));
        for (extension, value, wanted) in [
            ("x-kubernetes-map-type", &map_type, "object"),
            ("x-kubernetes-list-type", &list_type, "array"),
        ] {
            if value.is_empty() || kind == wanted {
                continue;
            }
            let detail = format!("must be {wanted} if {extension} is specified");
            let path = path.child("type");
            if kind.is_empty() {
                self.required(&path, detail);
            } else {
                self.invalid(&path, kind.clone(), detail);
            }
        }
        if !map_type.is_empty() && !matches!(map_type.as_str(), "atomic" | "granular") {
            let path = path.child("x-kubernetes-map-type");
            self.found.push(trail::not_supported(&path, map_type, &["atomic", "granular"]));
        }
        if !list_type.is_empty() && !matches!(list_type.as_str(), "atomic" | "set" | "map") {
            let path = path.child("x-kubernetes-list-type");
            let allowed = ["atomic", "set", "map"];
            self.found.push(trail::not_supported(&path, list_type.clone(), &allowed));
        }
        let empty = Value::Null;
        let items = schema.get("items").unwrap_or(&empty);
        if list_type == "set" && kind == "array" {
            self.set_items(items, &path.child("items"));
        }
        let keys: Vec<&str> = schema
            .get("x-kubernetes-list-map-keys")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !keys.is_empty() && list_type != "map" {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            let path = path.child("x-kubernetes-list-type");
            if list_type.is_empty() {
                self.required(&path, detail);
            } else {
                self.invalid(&path, list_type.clone(), detail);
            }
        }
        if list_type == "map" {
            self.map_items(schema, items, &keys, path);
        }
        if matches!(list_type.as_str(), "set" | "map") && is_set(items, "nullable") {
            let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            self.forbid(&path.child("items"), "nullable", detail);
        }
    }

    /// Elements of sets must be single values for whoever merges them.
    fn set_items(&mut self, items: &Value, path: &Trail<'_>) {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let extension = |name: &str| items.get(name).and_then(Value::as_str);
        match items.get("type").and_then(Value::as_str) {
            Some("array") => {
                if let Some(other) =
                    extension("x-kubernetes-list-type").filter(|it| *it != "atomic")
                {
                    self.invalid(&path.child("x-kubernetes-list-type"), other, detail);
                }
            }
            Some("object") if extension("x-kubernetes-map-type") != Some("atomic") => {
                let value = items.get("x-kubernetes-list-type").cloned().unwrap_or_default();
                self.invalid(&path.child("x-kubernetes-map-type"), value, detail);
            }
            _ => {}
        }
    }

    fn map_items(&mut self, schema: &Value, items: &Value, keys: &[&str], path: &Trail<'_>) {
        let keys_path = path.child("x-kubernetes-list-map-keys");
        if keys.is_empty() {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            self.required(&keys_path, detail);
        }
        if items.is_null() {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            return self.required(&path.child("items"), detail);
        }
        let path = path.child("items");
        if items.get("type").is_none_or(|kind| kind != "object") {
            let kind = items.get("type").cloned().unwrap_or_else(|| "".into());
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            return self.invalid(&path.child("type"), kind, detail);
        }
        let all = schema["x-kubernetes-list-map-keys"].clone();
        let required = |key: &str| {
            let required = items.get("required").and_then(Value::as_array);
            required.into_iter().flatten().any(|name| name == key)
        };
        for (at, key) in keys.iter().enumerate() {
            let Some(property) = items.get("properties").and_then(|it| it.get(*key)) else {
                let detail = "entries must all be names of item properties";
                self.invalid(&keys_path, all.clone(), detail);
                continue;
            };
            let base = path.child("properties");
            let path = base.key(key);
            if matches!(property.get("type").and_then(Value::as_str), Some("array" | "object")) {
                let detail =
                    "must be a scalar type if parent array's x-kubernetes-list-type is map";
                self.invalid(&path.child("type"), items["type"].clone(), detail);
            }
            if keys[..at].contains(key) {
                self.invalid(&keys_path, all.clone(), "must not contain duplicate entries");
            }
            if !required(key) && !is_set(property, "default") {
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                self.required(&path.child("default"), detail);
            }
            if is_set(property, "nullable") {
                let detail =
                    "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.forbid(&path, "nullable", detail);
            }
        }
    }

    /// The form of CEL rules; their expressions are not looked at.
    fn cel_rules(&mut self, schema: &Value, path: &Trail<'_>) {
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        for (at, rule) in rules.into_iter().flatten().enumerate() {
            let base = path.child("x-kubernetes-validations");
            let path = base.index(at);
            let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
            let (expression, message) = (text("rule"), text("message"));
            let lines = |text: &str| text.contains(['\n', '\r']);
            if expression.trim().is_empty() {
                self.required(&path.child("rule"), "rule is not specified");
            } else if !message.is_empty() && message.trim().is_empty() {
                self.invalid(&path.child("message"), message, "must be non-empty if specified");
            } else if lines(message.trim()) {
                self.invalid(&path.child("message"), message, "must not contain line breaks");
            } else if lines(expression.trim()) && message.trim().is_empty() {
                let detail = "message must be specified if rule contains line breaks";
                self.required(&path.child("message"), detail);
            }
            let expression = text("messageExpression");
            if !expression.is_empty() && expression.trim().is_empty() {
                let detail = "messageExpression must be non-empty if specified";
                self.required(&path.child("messageExpression"), detail);
            }
            let reason = text("reason");
            if !reason.is_empty() && !REASONS.contains(&reason) {
                let path = path.child("reason");
                self.found.push(trail::not_supported(&path, reason, &REASONS));
            }
        }
    }
}
