//! Rules for the schema of a CRD besides being structural.

use super::expressions::{self, RuleCosts, RulePosition};
use super::{fields, go_print};
use crate::paths;
use crate::structural::is_known_format;
use crate::trail::{self, Trail};
use mainstay_object::{FieldError, FieldErrorKind, FieldErrors, FieldPath};
use serde_json::Value;
use std::collections::HashSet;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
/// The allowed fields of the root besides `type` if `/status` exists, with Go's names.
const ROOT_FIELDS: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// The result of [`check_all`].
pub(super) struct SchemaErrors {
    pub(super) errors: Vec<FieldError>,
    /// Errors of CEL rules in schemas that are valid otherwise.
    pub(super) expressions: Vec<FieldError>,
    /// Costs of the CEL rules.
    pub(super) costs: RuleCosts,
    /// The reason for which upstream cannot convert the schema to a structural one. It then does not
    /// check whether the schema is structural.
    pub(super) unsupported: Option<String>,
}

/// The errors of the root.
pub(super) fn check_root(schema: &Value, has_status: bool, path: &FieldPath) -> Vec<FieldError> {
    let path = &Trail::below(path.as_str());
    let mut found = Vec::new();
    if has_status {
        for (name, json) in go_print::set_fields(schema) {
            if name == "Type" {
                if schema["type"] == "object" {
                    continue;
                }
                found.push(trail::invalid(
                    &path.child("type"),
                    schema["type"].clone(),
                    "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled",
                ));
                break;
            }
            if !ROOT_FIELDS.contains(&name) {
                let names = ROOT_FIELDS.join(" ");
                let detail = format!(
                    "only [{names}] fields are allowed at the root of the schema if the status subresource is enabled"
                );
                let kind = FieldErrorKind::InvalidText(go_print::schema(schema));
                found.push(FieldError { field: path.to_string(), kind, detail });
                break;
            }
            debug_assert!(schema.get(json).is_some(), "set_fields returns present fields");
        }
    }
    if schema.get("nullable") == Some(&Value::Bool(true)) {
        let path = path.child("nullable");
        found.push(trail::forbidden(&path, "nullable cannot be true at the root"));
    }
    found
}

/// The errors of all schemas from the root down. `position` includes CEL rules, which requires a parsed
/// schema.
pub(super) fn check_all(
    schema: &Value,
    position: Option<RulePosition<'_>>,
    costs: RuleCosts,
    path: &FieldPath,
) -> SchemaErrors {
    let path = &Trail::below(path.as_str());
    let mut walk =
        Walk { found: FieldErrors::default(), expressions: Vec::new(), costs, unsupported: None };
    walk.schema(schema, Context { root: true, position, ..Context::default() }, path);
    let Walk { found, expressions, costs, unsupported } = walk;
    SchemaErrors { errors: found.into_vec(), expressions, costs, unsupported }
}

/// Whether a field is set; Go's zero values are not.
fn is_set(schema: &Value, name: &str) -> bool {
    match schema.get(name) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(entries)) => !entries.is_empty(),
        Some(_) => true,
    }
}

/// A pointer field of the Go struct: set unless it is null.
fn pointer<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get(name).filter(|value| !value.is_null())
}

/// The surroundings of a schema.
#[derive(Clone, Copy, Default)]
struct Context<'a> {
    root: bool,
    meta: bool,
    /// The reason for which defaults are forbidden here.
    no_defaults: Option<&'a str>,
    /// The outermost schema whose parts do not correlate with old values.
    uncorrelated: Option<&'a Trail<'a>>,
    /// The position of CEL rules; none below `allOf`, `anyOf`, `oneOf` and `not`.
    position: Option<RulePosition<'a>>,
}

struct Walk {
    found: FieldErrors,
    /// Errors of CEL rules, reported after all others.
    expressions: Vec<FieldError>,
    costs: RuleCosts,
    unsupported: Option<String>,
}

impl Walk {
    fn forbid(&mut self, path: &Trail<'_>, field: &str, detail: impl Into<String>) {
        self.found.push(trail::forbidden(&path.child(field), detail));
    }

    fn required(&mut self, path: &Trail<'_>, detail: impl Into<String>) {
        self.found.push(trail::required(path, detail));
    }

    fn invalid(&mut self, path: &Trail<'_>, value: impl Into<Value>, detail: impl Into<String>) {
        self.found.push_with(|| trail::invalid(path, value, detail));
    }

    fn schema(&mut self, schema: &Value, context: Context<'_>, path: &Trail<'_>) {
        let before = self.found.len();
        let own = context.position.and_then(|position| position.own_shape());
        let position = context.position.map(|position| position.with_own_shape(own.as_ref()));
        let context = Context { position, ..context };
        self.check_keywords(schema, context, path);
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            let detail =
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid(path, "uniqueItems", detail);
        }
        self.check_nested(schema, context, path);
        if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let path = path.child("x-kubernetes-preserve-unknown-fields");
            self.mark_unsupported(
                "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined",
            );
            self.invalid(&path, false, "must be true or undefined");
        }
        self.check_lists_and_maps(schema, path);
        self.check_rule_syntax(schema, path);
        if self.found.len() == before
            && is_set(schema, "x-kubernetes-validations")
            && let Some(position) = &context.position
        {
            let errors =
                expressions::check(schema, position, context.uncorrelated, path, &mut self.costs);
            self.expressions.extend(errors);
        }
    }

    fn mark_unsupported(&mut self, why: &str) {
        self.unsupported.get_or_insert_with(|| why.to_owned());
    }

    fn check_keywords(&mut self, schema: &Value, context: Context<'_>, path: &Trail<'_>) {
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        if !kind.is_empty() && !TYPES.contains(&kind) {
            self.found.push(trail::not_supported(&path.child("type"), kind, &TYPES));
        }
        if let Some(reason) = context.no_defaults
            && pointer(schema, "default").is_some()
        {
            self.forbid(path, "default", format!("must not be set {reason}"));
        }
        for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies"] {
            let is_set = match name {
                "additionalItems" | "dependencies" => pointer(schema, name).is_some(),
                _ => is_set(schema, name),
            };
            if is_set {
                self.mark_unsupported(&format!("OpenAPIV3Schema '{name}' is not supported"));
                self.forbid(path, name, format!("{name} is not supported"));
            }
        }
        if let Some(reference) = pointer(schema, "$ref") {
            if *reference != "" {
                self.mark_unsupported("OpenAPIV3Schema '$ref' is not supported");
            }
            self.forbid(path, "$ref", "$ref is not supported");
        }
        if is_set(schema, "$schema") {
            self.mark_unsupported("OpenAPIV3Schema 'schema' is not supported");
        }
        if kind == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            self.forbid(path, "type", detail);
        }
        if is_set(schema, "items") && schema["items"].is_array() {
            self.mark_unsupported("OpenAPIV3Schema 'items' must be a schema, but is an array");
            self.forbid(path, "items", "items must be a schema object and not an array");
        }
        if context.meta && is_set(schema, "x-kubernetes-embedded-resource") {
            let detail = "must not be used inside of resource meta";
            self.forbid(path, "x-kubernetes-embedded-resource", detail);
        }
    }

    fn check_nested(&mut self, schema: &Value, context: Context<'_>, path: &Trail<'_>) {
        let here = Context { root: false, ..context };
        let nested = Context { position: None, ..here };
        if let Some(additional) = schema.get("additionalProperties") {
            if is_set(schema, "properties") && *additional != Value::Bool(true) {
                let detail = "additionalProperties and properties are mutual exclusive";
                self.forbid(path, "additionalProperties", detail);
            }
            if additional.is_object() {
                let mut here = here;
                here.position = here.position.and_then(|position| position.additional(schema));
                if context.meta {
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
            here.position = here.position.and_then(|position| position.property(name, schema));
            // Properties of other map types would not correlate; there are none.
            let map_type = schema.get("x-kubernetes-map-type").and_then(Value::as_str);
            if map_type.is_some_and(|map_type| !matches!(map_type, "atomic" | "granular")) {
                here.uncorrelated = here.uncorrelated.or(Some(path));
            }
            if (context.root || embedded)
                && matches!(name.as_str(), "metadata" | "kind" | "apiVersion")
            {
                here.meta = true;
                if context.root {
                    reason = format!("in top-level {name}");
                    here.no_defaults = Some(&reason);
                }
            }
            self.schema(property, here, &path.child("properties").key(name));
        }
        if let Some(not) = schema.get("not").filter(|not| not.is_object()) {
            self.schema(not, nested, &path.child("not"));
        }
        for name in ["allOf", "oneOf", "anyOf"] {
            let rules = schema.get(name).and_then(Value::as_array).into_iter().flatten();
            for (at, rule) in rules.enumerate() {
                self.schema(rule, nested, &path.child(name).index(at));
            }
        }
        for (name, definition) in schema.get("definitions").map(fields).into_iter().flatten() {
            self.schema(definition, nested, &path.child("definitions").key(name));
        }
        match schema.get("items") {
            Some(items @ Value::Object(_)) => {
                let mut here = here;
                here.position = here.position.and_then(|position| position.items(schema));
                if schema.get("x-kubernetes-list-type").is_none_or(|list_type| list_type != "map") {
                    here.uncorrelated = here.uncorrelated.or(Some(path));
                }
                self.schema(items, here, &path.child("items"));
            }
            Some(Value::Array(all)) => {
                for (at, items) in all.iter().enumerate() {
                    self.schema(items, nested, &path.child("items").index(at));
                }
            }
            _ => {}
        }
        for (name, inner) in schema.get("dependencies").map(fields).into_iter().flatten() {
            if inner.is_object() {
                self.schema(inner, nested, &path.child("dependencies").key(name));
            }
        }
    }

    fn check_lists_and_maps(&mut self, schema: &Value, path: &Trail<'_>) {
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        let extension = |name: &str| schema.get(name).and_then(Value::as_str);
        let map_type = extension("x-kubernetes-map-type");
        let list_type = extension("x-kubernetes-list-type");
        if map_type.is_some() && kind != "object" {
            self.wrong_type(kind, "object", "x-kubernetes-map-type", path);
        }
        if let Some(other) = map_type.filter(|map_type| !matches!(*map_type, "atomic" | "granular"))
        {
            let path = path.child("x-kubernetes-map-type");
            self.found.push(trail::not_supported(&path, other, &["atomic", "granular"]));
        }
        let empty = Value::Null;
        let items = schema.get("items").unwrap_or(&empty);
        if list_type.is_some() && kind != "array" {
            self.wrong_type(kind, "array", "x-kubernetes-list-type", path);
        } else if list_type == Some("set") {
            self.check_set_items(items, &path.child("items"));
        }
        if let Some(other) =
            list_type.filter(|list_type| !matches!(*list_type, "atomic" | "set" | "map"))
        {
            let path = path.child("x-kubernetes-list-type");
            self.found.push(trail::not_supported(&path, other, &["atomic", "set", "map"]));
        }
        let keys: Vec<&str> = schema
            .get("x-kubernetes-list-map-keys")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !keys.is_empty() && list_type != Some("map") {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            let path = path.child("x-kubernetes-list-type");
            match list_type {
                None => self.required(&path, detail),
                Some(other) => self.invalid(&path, other, detail),
            }
        }
        if list_type == Some("map") {
            self.check_map_items(schema, items, &keys, path);
        }
        if let Some(list_type) = list_type.filter(|list_type| matches!(*list_type, "set" | "map")) {
            self.check_elements(items, list_type, &keys, &path.child("items"));
        }
    }

    fn wrong_type(&mut self, kind: &str, expected: &str, extension: &str, path: &Trail<'_>) {
        let detail = format!("must be {expected} if {extension} is specified");
        let path = path.child("type");
        if kind.is_empty() {
            self.required(&path, detail);
        } else {
            self.invalid(&path, kind, detail);
        }
    }

    /// The rules for elements of sets and maps (never null) and keys of maps (always present).
    fn check_elements(&mut self, items: &Value, list_type: &str, keys: &[&str], path: &Trail<'_>) {
        if is_set(items, "nullable") {
            let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            self.forbid(path, "nullable", detail);
        }
        if list_type != "map" {
            return;
        }
        let required = items.get("required").and_then(Value::as_array);
        let required: HashSet<&str> =
            required.into_iter().flatten().filter_map(Value::as_str).collect();
        for key in keys {
            let property = items.get("properties").and_then(|properties| properties.get(*key));
            let Some(property) = property else { continue };
            let base = path.child("properties");
            let path = base.key(key);
            let is_required = required.contains(key);
            if !is_required && pointer(property, "default").is_none() {
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

    /// The rules for elements of sets, which must be atomic for merging.
    fn check_set_items(&mut self, items: &Value, path: &Trail<'_>) {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let extension = |name: &str| items.get(name).and_then(Value::as_str);
        match items.get("type").and_then(Value::as_str) {
            Some("array") => {
                if let Some(other) =
                    extension("x-kubernetes-list-type").filter(|list_type| *list_type != "atomic")
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

    fn check_map_items(&mut self, schema: &Value, items: &Value, keys: &[&str], path: &Trail<'_>) {
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
        if !items.is_object() {
            let kind = FieldErrorKind::InvalidText(go_print::items(items));
            let detail = "must only have a single schema if x-kubernetes-list-type is map";
            return self.found.push(FieldError::new(&path.to_path(), kind, detail));
        }
        if items.get("type").is_none_or(|kind| kind != "object") {
            let kind = items.get("type").cloned().unwrap_or_else(|| "".into());
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            return self.invalid(&path.child("type"), kind, detail);
        }
        let all = || schema["x-kubernetes-list-map-keys"].clone();
        let mut distinct: HashSet<&str> = HashSet::new();
        for key in keys {
            if let Some(property) =
                items.get("properties").and_then(|properties| properties.get(*key))
            {
                let kind = property.get("type").and_then(Value::as_str);
                if matches!(kind, Some("array" | "object")) {
                    let base = path.child("properties");
                    let path = base.key(key);
                    let detail =
                        "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    self.invalid(&path.child("type"), items["type"].clone(), detail);
                }
            } else {
                let detail = "entries must all be names of item properties";
                self.found.push_with(|| trail::invalid(&keys_path, all(), detail));
            }
            if !distinct.insert(key) {
                let detail = "must not contain duplicate entries";
                self.found.push_with(|| trail::invalid(&keys_path, all(), detail));
            }
        }
    }

    /// The rules for the syntax of CEL rules.
    fn check_rule_syntax(&mut self, schema: &Value, path: &Trail<'_>) {
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
            let reason = pointer(rule, "reason").and_then(Value::as_str);
            if let Some(reason) = reason.filter(|reason| !REASONS.contains(reason)) {
                let path = path.child("reason");
                self.found.push(trail::not_supported(&path, reason, &REASONS));
            }
            let field = text("fieldPath");
            if field.is_empty() {
                continue;
            }
            let path = path.child("fieldPath");
            if field.trim().is_empty() {
                self.invalid(&path, field, "must be non-empty if specified");
            }
            if lines(field) {
                self.invalid(&path, field, "must not contain line breaks");
            }
            // An unsupported schema is reported elsewhere.
            if self.unsupported.is_none() && paths::resolve(field, schema, true).is_err() {
                self.invalid(&path, field, "must be a valid path");
            }
        }
    }
}

/// Collects unsupported formats of strings.
pub(super) fn unknown_formats(schema: &Value, found: &mut Vec<String>) {
    if let Some(format) = schema.get("format").and_then(Value::as_str)
        && schema.get("type").is_some_and(|kind| kind == "string")
        && !format.is_empty()
        && !is_known_format(format)
    {
        found.push(format.to_owned());
    }
    let items = schema.get("items").into_iter();
    let lists = ["allOf", "anyOf", "oneOf"].into_iter();
    let lists = lists.filter_map(|name| schema.get(name)?.as_array()).flatten();
    let not = schema.get("not").into_iter();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter();
    let properties = properties.flat_map(serde_json::Map::values);
    let additional = schema.get("additionalProperties").into_iter();
    for inner in items.chain(lists).chain(not).chain(properties).chain(additional) {
        unknown_formats(inner, found);
    }
}
