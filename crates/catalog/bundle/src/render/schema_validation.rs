//! JSON schema validation of configurations, with the messages of operator-controller.
//!
//! Supported is the part of draft 7 that configuration schemas use, in the order of upstream's
//! library. Failures form a tree, which upstream prints as a flat list. A `$ref` that fails for one
//! reason hides that reason.

use super::schema;
use mainstay_gocompat::quote;
use mainstay_schema::strict;
use regex::Regex;
use serde_json::{Map, Value};

/// Upstream's messages for an invalid value, line by line; empty for a valid one.
pub(super) fn check(schema: &Value, value: &Value, own: &str) -> Vec<String> {
    let mut place = Vec::new();
    let mut lines = Vec::new();
    if let Some(failure) = (Evaluation { own }).value(schema, value, &mut place) {
        match failure.kind {
            FailureKind::Group => {
                failure.causes.iter().for_each(|cause| cause.write_messages(&mut lines));
            }
            _ => failure.write_messages(&mut lines),
        }
    }
    lines
}

struct Failure {
    kind: FailureKind,
    /// The path of the value, with dots.
    place: String,
    causes: Vec<Self>,
}

enum FailureKind {
    Type { got: &'static str, want: String },
    Format { text: String, name: String, why: String },
    Reference,
    Group,
    AllOf,
    AnyOf,
    OneOf(Option<(usize, usize)>),
    Required(Vec<String>),
    Additional(Vec<String>),
    MinLength { got: usize, want: u64 },
    MaxLength { got: usize, want: u64 },
    Pattern(String),
    False,
}

impl Failure {
    /// Adds the messages of the failure and of its causes.
    fn write_messages(&self, lines: &mut Vec<String>) {
        lines.push(self.message());
        if !(matches!(self.kind, FailureKind::Reference) && self.causes.len() == 1) {
            self.causes.iter().for_each(|cause| cause.write_messages(lines));
        }
    }

    fn message(&self) -> String {
        let place = &self.place;
        let field = quote(place);
        match &self.kind {
            FailureKind::Required(names) => {
                format!("required field {} is missing", quote_first(names))
            }
            FailureKind::Additional(names) => format!("unknown field {}", quote_first(names)),
            FailureKind::Type { got: "null", .. } if !place.is_empty() => {
                format!("required field {field} is missing")
            }
            FailureKind::Type { got, want } if place.is_empty() => {
                format!("invalid type: got {got}, want {want}")
            }
            FailureKind::Type { got, want } => {
                format!("invalid type for field {field}: got {got}, want {want}")
            }
            FailureKind::Format { text, name, why } => {
                let text = single_quoted(text);
                format!("invalid format for field {field}: {text} is not valid {name}: {why}")
            }
            FailureKind::AnyOf => format!("invalid value for field {field}"),
            FailureKind::MaxLength { got, want } => {
                format!("field {field} must have maximum length of {want} (len={got})")
            }
            FailureKind::MinLength { got, want } => {
                format!("field {field} must have minimum length of {want} (len={got})")
            }
            FailureKind::Pattern(want) => {
                format!("field {field} must match pattern {}", quote(want))
            }
            FailureKind::Reference | FailureKind::Group => "validation failed".to_owned(),
            FailureKind::AllOf => "'allOf' failed".to_owned(),
            FailureKind::OneOf(None) => "'oneOf' failed, none matched".to_owned(),
            FailureKind::OneOf(Some((one, other))) => {
                format!("'oneOf' failed, subschemas {one}, {other} matched")
            }
            FailureKind::False => "false schema".to_owned(),
        }
    }
}

/// The first name in quotes, as upstream cuts it out of the library's message.
fn quote_first(names: &[String]) -> String {
    let text = single_quoted(names.first().map_or("", String::as_str));
    let inner = text[1..].split('\'').next().unwrap_or_default();
    quote(inner)
}

fn single_quoted(text: &str) -> String {
    let text = quote(text).replace("\\\"", "\"").replace('\'', "\\'");
    format!("'{}'", &text[1..text.len() - 1])
}

/// The library's name of a value's type.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_whole(value: &Value) -> bool {
    let Value::Number(number) = value else { return false };
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

struct Evaluation<'a> {
    /// The namespace of the operator; empty means no comparison.
    own: &'a str,
}

impl Evaluation<'_> {
    fn value(&self, schema: &Value, value: &Value, place: &mut Vec<String>) -> Option<Failure> {
        let here = |kind: FailureKind, causes: Vec<Failure>, place: &[String]| {
            Some(Failure { kind, place: place.join("."), causes })
        };
        let Value::Object(rules) = schema else {
            return if schema == &Value::Bool(false) {
                here(FailureKind::False, Vec::new(), place)
            } else {
                None
            };
        };
        let got = type_of(value);
        if let Some(want) = rules.get("type").and_then(Value::as_str)
            && got != want
            && !(want == "integer" && is_whole(value))
        {
            return here(FailureKind::Type { got, want: want.to_owned() }, Vec::new(), place);
        }
        if let (Some(name), Value::String(text)) = (rules.get("format"), value)
            && let Some(name) = name.as_str()
            && let Some(why) = self.format_error(name, text)
        {
            let (text, name) = (text.clone(), name.to_owned());
            return here(FailureKind::Format { text, name, why }, Vec::new(), place);
        }
        if let Some(reference) = rules.get("$ref").and_then(Value::as_str) {
            let failure = self.value(&schema::target(reference), value, place)?;
            let causes = match failure.kind {
                FailureKind::Group => failure.causes,
                _ => vec![failure],
            };
            return here(FailureKind::Reference, causes, place);
        }
        let mut failures = Vec::new();
        match value {
            Value::Object(fields) => self.object(rules, fields, place, &mut failures),
            Value::Array(items) => {
                if let Some(schema) = rules.get("items") {
                    for (at, item) in items.iter().enumerate() {
                        failures.extend(self.below(schema, item, at.to_string(), place));
                    }
                }
            }
            Value::String(text) => lengths(rules, text, place, &mut failures),
            _ => {}
        }
        self.combined(rules, value, place, &mut failures);
        match failures.len() {
            0 => None,
            1 => failures.pop(),
            _ => here(FailureKind::Group, failures, place),
        }
    }

    fn below(
        &self,
        schema: &Value,
        value: &Value,
        step: String,
        place: &mut Vec<String>,
    ) -> Option<Failure> {
        place.push(step);
        let found = self.value(schema, value, place);
        place.pop();
        found
    }

    fn object(
        &self,
        rules: &Map<String, Value>,
        fields: &Map<String, Value>,
        place: &mut Vec<String>,
        failures: &mut Vec<Failure>,
    ) {
        let fail = |kind: FailureKind, place: &[String]| Failure {
            kind,
            place: place.join("."),
            causes: Vec::new(),
        };
        let required = rules.get("required").and_then(Value::as_array).into_iter().flatten();
        let missing: Vec<String> = required
            .filter_map(Value::as_str)
            .filter(|name| !fields.contains_key(*name))
            .map(str::to_owned)
            .collect();
        if !missing.is_empty() {
            failures.push(fail(FailureKind::Required(missing), place));
        }
        let properties = rules.get("properties").and_then(Value::as_object);
        let mut unknown = Vec::new();
        for (name, value) in fields {
            let schema = properties.and_then(|properties| properties.get(name));
            // A JSON pointer escapes tilde and slash.
            let step = name.replace('~', "~0").replace('/', "~1");
            match (schema, rules.get("additionalProperties")) {
                (Some(schema), _) | (None, Some(schema @ Value::Object(_))) => {
                    failures.extend(self.below(schema, value, step, place));
                }
                (None, Some(Value::Bool(false))) => unknown.push(name.clone()),
                (None, _) => {}
            }
        }
        if !unknown.is_empty() {
            failures.push(fail(FailureKind::Additional(unknown), place));
        }
    }

    fn combined(
        &self,
        rules: &Map<String, Value>,
        value: &Value,
        place: &mut Vec<String>,
        failures: &mut Vec<Failure>,
    ) {
        for (name, kind) in [("allOf", FailureKind::AllOf), ("anyOf", FailureKind::AnyOf)] {
            let Some(Value::Array(schemas)) = rules.get(name) else { continue };
            let causes: Vec<Failure> =
                schemas.iter().filter_map(|schema| self.value(schema, value, place)).collect();
            let fails = match kind {
                FailureKind::AllOf => !causes.is_empty(),
                _ => causes.len() == schemas.len(),
            };
            if fails {
                failures.push(Failure { kind, place: place.join("."), causes });
            }
        }
        let Some(Value::Array(schemas)) = rules.get("oneOf") else { return };
        let mut causes = Vec::new();
        let mut matching = Vec::new();
        for (at, schema) in schemas.iter().enumerate() {
            match self.value(schema, value, place) {
                None => matching.push(at),
                Some(failure) => causes.push(failure),
            }
        }
        let place = place.join(".");
        match matching[..] {
            [] => failures.push(Failure { kind: FailureKind::OneOf(None), place, causes }),
            [_] => {}
            [one, other, ..] => {
                let kind = FailureKind::OneOf(Some((one, other)));
                failures.push(Failure { kind, place, causes: Vec::new() });
            }
        }
    }

    /// Why a text does not have a format; an unknown format accepts each text.
    fn format_error(&self, name: &str, text: &str) -> Option<String> {
        let (own, given) = (quote(self.own), quote(text));
        match name {
            "date-time" => strict::parse_rfc3339(text).err().map(|error| error.to_string()),
            schema::OWN_FORMAT if !self.own.is_empty() && text != self.own => Some(format!(
                "invalid value {given}: must be {own} (the namespace where the operator is installed) \
                 because this operator only supports OwnNamespace install mode"
            )),
            schema::SINGLE_FORMAT if !self.own.is_empty() && text == self.own => Some(format!(
                "invalid value {given}: must be different from {own} (the install namespace) because \
                 this operator uses SingleNamespace install mode to watch a different namespace"
            )),
            _ => None,
        }
    }
}

fn lengths(rules: &Map<String, Value>, text: &str, place: &[String], failures: &mut Vec<Failure>) {
    let mut fail = |kind: FailureKind| {
        failures.push(Failure { kind, place: place.join("."), causes: Vec::new() });
    };
    let got = text.chars().count();
    let length = u64::try_from(got).unwrap_or(u64::MAX);
    let limit = |name: &str| rules.get(name).and_then(Value::as_u64);
    if let Some(want) = limit("minLength").filter(|want| length < *want) {
        fail(FailureKind::MinLength { got, want });
    }
    if let Some(want) = limit("maxLength").filter(|want| length > *want) {
        fail(FailureKind::MaxLength { got, want });
    }
    if let Some(want) = rules.get("pattern").and_then(Value::as_str)
        && Regex::new(want).is_ok_and(|pattern| !pattern.is_match(text))
    {
        fail(FailureKind::Pattern(want.to_owned()));
    }
}
