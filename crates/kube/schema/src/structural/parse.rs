//! Parsing of a schema, and the rules that make it structural.

use super::expressions::ValidationRule;
use super::pattern::Pattern;
use super::{Additional, Kind, ListType, Rules, Schema};
use crate::trail::{Trail, forbidden, invalid, required};
use mainstay_formats::StringFormat;
use mainstay_object::{FieldError, FieldPath};
use serde_json::{Map, Value};

/// The position of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
    /// Below `allOf`, `anyOf`, `oneOf` or `not`: validations only, no structure.
    Validations,
    /// As `Validations`, where `anyOf` lists the types of an int-or-string.
    IntOrStringTypes,
}

impl Level {
    const fn is_validation(self) -> bool {
        matches!(self, Self::Validations | Self::IntOrStringTypes)
    }
}

/// Parses the schema of whole objects.
pub(super) fn schema(value: &Value, path: &FieldPath) -> Result<Schema, Vec<FieldError>> {
    let mut parser = Parser { found: Vec::new() };
    let path = Trail::below(path.as_str());
    let schema = parser.schema(value, Level::Root, &path);
    parser.complete(schema.rules.as_deref(), &schema, &path, &path);
    if parser.found.is_empty() {
        return Ok(schema);
    }
    parser.found.sort_by_cached_key(ToString::to_string);
    Err(parser.found)
}

struct Parser {
    found: Vec<FieldError>,
}

impl Parser {
    fn schema(&mut self, value: &Value, level: Level, path: &Trail<'_>) -> Schema {
        let empty = Map::new();
        let source = value.as_object().unwrap_or(&empty);
        let flag = |name: &str| source.get(name).and_then(Value::as_bool).unwrap_or_default();
        let mut schema = Schema {
            kind: source.get("type").and_then(Value::as_str).and_then(Kind::parse),
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            list_type: match source.get("x-kubernetes-list-type").and_then(Value::as_str) {
                Some("set") => Some(ListType::Set),
                Some("map") => Some(ListType::Map),
                Some(_) => Some(ListType::Atomic),
                None => None,
            },
            list_map_keys: texts(source.get("x-kubernetes-list-map-keys")),
            atomic_map: source
                .get("x-kubernetes-map-type")
                .is_some_and(|map_type| map_type == "atomic"),
            default: source.get("default").filter(|value| !value.is_null()).cloned().map(Box::new),
            ..<Schema as Default>::default()
        };
        if level.is_validation() {
            self.check_forbidden(source, path);
        }
        let below =
            |level: Level| if level.is_validation() { Level::Validations } else { Level::Field };
        self.structure(source, &mut schema, level, below(level), path);
        self.rules(source, &mut schema, level, path);
        let expressions = ValidationRule::read_all(value);
        if !expressions.is_empty() {
            schema.rules.get_or_insert_default().expressions = expressions;
        }
        if !level.is_validation() {
            self.invariants(source, &schema, level, path);
        }
        schema
    }

    /// Parses properties, additional properties and items.
    fn structure(
        &mut self,
        source: &Map<String, Value>,
        schema: &mut Schema,
        level: Level,
        below: Level,
        path: &Trail<'_>,
    ) {
        if let Some(Value::Object(properties)) = source.get("properties") {
            let base = path.child("properties");
            schema.properties = properties
                .iter()
                .map(|(name, value)| {
                    (name.as_str().into(), self.schema(value, below, &base.key(name)))
                })
                .collect();
        }
        match source.get("additionalProperties") {
            Some(value @ Value::Object(_)) => {
                let inner = self.schema(value, below, &path.child("additionalProperties"));
                schema.additional = Some(Additional::Schema(Box::new(inner)));
            }
            // The rules for CRDs reject `false` where it would have an effect.
            Some(Value::Bool(_)) => schema.additional = Some(Additional::Any),
            _ => {}
        }
        if let Some(items @ Value::Object(_)) = source.get("items") {
            let level = if level.is_validation() { Level::Validations } else { Level::Item };
            schema.items = Some(Box::new(self.schema(items, level, &path.child("items"))));
        }
        let mut below = (schema.embedded, schema.default.is_some());
        let inner = schema.properties.iter().map(|property| &property.1);
        for inner in inner.chain(schema.additional()).chain(schema.items.as_deref()) {
            below.0 |= inner.any_embedded;
            below.1 |= inner.any_default;
        }
        (schema.any_embedded, schema.any_default) = below;
        let properties = schema.properties.iter().enumerate();
        let defaulted = properties.filter(|(_, (_, property))| property.default.is_some());
        schema.defaulted = defaulted.map(|(at, _)| at).collect();
    }

    fn rules(
        &mut self,
        source: &Map<String, Value>,
        schema: &mut Schema,
        level: Level,
        path: &Trail<'_>,
    ) {
        let text = |name: &str| source.get(name).and_then(Value::as_str).filter(|t| !t.is_empty());
        let number = |name: &str| source.get(name).and_then(Value::as_f64);
        #[expect(clippy::cast_possible_truncation, reason = "lengths; a fraction is not one")]
        let integer = |name: &str| {
            let value = source.get(name)?;
            value.as_i64().or_else(|| value.as_f64().map(|float| float as i64))
        };
        let flag = |name: &str| source.get(name).and_then(Value::as_bool).unwrap_or_default();
        schema.formatted = text("format").is_some();
        let mut rules = Rules {
            format: text("format").and_then(StringFormat::parse),
            maximum: number("maximum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            minimum: number("minimum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            multiple_of: number("multipleOf"),
            max_length: integer("maxLength"),
            min_length: integer("minLength"),
            pattern: text("pattern").map(Pattern::new),
            max_items: integer("maxItems"),
            min_items: integer("minItems"),
            max_properties: integer("maxProperties"),
            min_properties: integer("minProperties"),
            allowed: source.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
            required: texts(source.get("required")),
            ..Rules::default()
        };
        if let Some(pattern) = &rules.pattern
            && let Some(error) = pattern.error()
        {
            let detail = format!("must be a valid regular expression, but isn't: {error}");
            self.found.push(invalid(&path.child("pattern"), &*pattern.text, detail));
        }
        // `anyOf` may list the types of an int-or-string, without effect on the structure. Upstream does
        // not check that the schema is an int-or-string.
        let lists_types = level == Level::IntOrStringTypes
            || (!level.is_validation() && is_int_or_string(source.get("anyOf")));
        let lists_types_below = !level.is_validation()
            && source
                .get("allOf")
                .and_then(|all| all.get(0))
                .is_some_and(|first| is_int_or_string(first.get("anyOf")));
        for (name, list) in [
            ("allOf", &mut rules.all_of),
            ("anyOf", &mut rules.any_of),
            ("oneOf", &mut rules.one_of),
        ] {
            let values = source.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let base = path.child(name);
            for (at, value) in values.iter().enumerate() {
                let before = self.found.len();
                let is_first = name == "allOf" && at == 0 && lists_types_below;
                let level = if is_first { Level::IntOrStringTypes } else { Level::Validations };
                list.push(self.schema(value, level, &base.index(at)));
                if name == "anyOf" && lists_types {
                    self.found.truncate(before);
                }
            }
        }
        if let Some(not @ Value::Object(_)) = source.get("not") {
            rules.not = Some(Box::new(self.schema(not, Level::Validations, &path.child("not"))));
        }
        if rules != Rules::default() {
            schema.rules = Some(Box::new(rules));
        }
    }

    fn invariants(
        &mut self,
        source: &Map<String, Value>,
        schema: &Schema,
        level: Level,
        path: &Trail<'_>,
    ) {
        let kind = source.get("type").and_then(Value::as_str).unwrap_or_default();
        if kind == "array" && schema.items.is_none() {
            self.found.push(required(&path.child("items"), "must be specified"));
        }
        if schema.additional.is_some() && level == Level::Root {
            let path = path.child("additionalProperties");
            self.found.push(forbidden(&path, "must not be used at the root"));
        }
        for (set, name) in [
            (schema.preserve_unknown, "x-kubernetes-preserve-unknown-fields"),
            (schema.embedded, "x-kubernetes-embedded-resource"),
        ] {
            if schema.int_or_string && set {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                self.found.push(invalid(&path.child(name), true, detail));
            }
        }
        self.type_invariants(schema, kind, level, path);
        if level == Level::Root || schema.embedded {
            self.meta_invariants(source, level, path);
        }
    }

    fn type_invariants(&mut self, schema: &Schema, kind: &str, level: Level, path: &Trail<'_>) {
        let at = path.child("type");
        if schema.embedded && kind != "object" {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            self.found.push(if kind.is_empty() {
                required(&at, detail)
            } else {
                invalid(&at, kind, detail)
            });
        } else if kind.is_empty() && !schema.int_or_string && !schema.preserve_unknown {
            let detail = match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field | Level::Validations | Level::IntOrStringTypes => {
                    "must not be empty for specified object fields"
                }
            };
            self.found.push(required(&at, detail));
        }
        if schema.embedded && schema.additional.is_some() {
            self.found.push(forbidden(
                &path.child("additionalProperties"),
                "must not be used if x-kubernetes-embedded-resource is set",
            ));
        }
        if level == Level::Root && !kind.is_empty() && kind != "object" {
            self.found.push(invalid(&at, kind, "must be object at the root"));
        }
        if schema.embedded && !schema.preserve_unknown && schema.properties.is_empty() {
            self.found.push(required(
                &path.child("properties"),
                "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
            ));
        }
    }

    /// The rules for properties `kind`, `apiVersion` and `metadata`, which may have few keywords.
    fn meta_invariants(&mut self, source: &Map<String, Value>, level: Level, path: &Trail<'_>) {
        let Some(Value::Object(properties)) = source.get("properties") else { return };
        let base = path.child("properties");
        let kind_of = |name: &str| {
            properties.get(name).map(|schema| schema.get("type").and_then(Value::as_str))
        };
        for (name, wanted) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")]
        {
            if let Some(kind) = kind_of(name)
                && kind != Some(wanted)
            {
                self.found.push(invalid(
                    &base.key(name).child("type"),
                    kind.unwrap_or_default(),
                    format!("must be {wanted}"),
                ));
            }
        }
        let Some(Value::Object(metadata)) = properties.get("metadata") else { return };
        let is_allowed = metadata.iter().all(|(name, value)| match (name.as_str(), value) {
            ("type" | "default" | "externalDocs" | "example", _)
            | (_, Value::Null | Value::Bool(false)) => true,
            ("properties", Value::Object(properties)) => {
                properties.keys().all(|name| name == "name" || name == "generateName")
            }
            (_, Value::String(text)) => text.is_empty() && !name.starts_with("x-"),
            _ => false,
        });
        if level == Level::Root && !is_allowed {
            self.found.push(forbidden(
                &base.key("metadata"),
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            ));
        }
    }

    /// The rules for keywords that schemas below `allOf` and the like may not have.
    fn check_forbidden(&mut self, source: &Map<String, Value>, path: &Trail<'_>) {
        const EMPTY: &str = "must be empty to be structural";
        const UNDEFINED: &str = "must be undefined to be structural";
        const FALSE: &str = "must be false to be structural";
        for (name, detail) in [
            ("type", EMPTY),
            ("additionalProperties", UNDEFINED),
            ("default", UNDEFINED),
            ("title", EMPTY),
            ("description", EMPTY),
            ("nullable", FALSE),
            ("x-kubernetes-preserve-unknown-fields", FALSE),
            ("x-kubernetes-embedded-resource", FALSE),
            ("x-kubernetes-int-or-string", FALSE),
            ("x-kubernetes-list-map-keys", EMPTY),
            ("x-kubernetes-list-type", UNDEFINED),
            ("x-kubernetes-map-type", UNDEFINED),
            ("x-kubernetes-validations", EMPTY),
        ] {
            // A pointer in Go counts as set also when it points to a zero value.
            let pointer = detail == UNDEFINED && name != "additionalProperties";
            let set = match source.get(name) {
                None | Some(Value::Null) => false,
                Some(_) if pointer => true,
                Some(Value::Bool(false)) => false,
                Some(Value::String(text)) => !text.is_empty(),
                Some(Value::Array(items)) => !items.is_empty(),
                Some(_) => true,
            };
            if set {
                self.found.push(forbidden(&path.child(name), detail));
            }
        }
        if source.get("properties").is_some_and(|properties| properties.get("metadata").is_some()) {
            let base = path.child("properties");
            let path = base.key("metadata");
            let detail = "must not be specified in a nested context";
            self.found.push(forbidden(&path, detail));
        }
    }

    /// The rules for completeness: each field in a validation must be part of the structure.
    fn complete(
        &mut self,
        rules: Option<&Rules>,
        schema: &Schema,
        path: &Trail<'_>,
        rule_path: &Trail<'_>,
    ) {
        let Some(rules) = rules else { return };
        if let Some(not) = &rules.not {
            self.complete_rule(not, schema, path, &rule_path.child("not"));
        }
        for (name, list) in
            [("allOf", &rules.all_of), ("anyOf", &rules.any_of), ("oneOf", &rules.one_of)]
        {
            for (at, rule) in list.iter().enumerate() {
                self.complete_rule(rule, schema, path, &rule_path.child(name).index(at));
            }
        }
    }

    fn complete_rule(
        &mut self,
        rule: &Schema,
        schema: &Schema,
        path: &Trail<'_>,
        rule_path: &Trail<'_>,
    ) {
        self.complete(rule.rules.as_deref(), schema, path, rule_path);
        if let Some(items) = &rule.items {
            let (at, from) = (path.child("items"), rule_path.child("items"));
            match &schema.items {
                Some(schema) => self.complete_rule(items, schema, &at, &from),
                None => self.found.push(undefined(&at, &from)),
            }
        }
        for (name, property) in &rule.properties {
            let (base, from_base) = (path.child("properties"), rule_path.child("properties"));
            let (at, from) = (base.key(name), from_base.key(name));
            match schema.property(name) {
                Some(schema) => self.complete_rule(property, schema, &at, &from),
                None => self.found.push(undefined(&at, &from)),
            }
        }
    }
}

fn undefined(path: &Trail<'_>, from: &Trail<'_>) -> FieldError {
    required(path, format!("because it is defined in {from}"))
}

fn texts(value: Option<&Value>) -> Vec<Box<str>> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(Into::into).collect()
}

/// Whether this is the only `anyOf` that may have types: integer, then string.
fn is_int_or_string(any_of: Option<&Value>) -> bool {
    any_of.is_some_and(|any_of| {
        *any_of == serde_json::json!([{"type": "integer"}, {"type": "string"}])
    })
}
