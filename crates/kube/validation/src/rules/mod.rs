//! Validation rules as data: tables of fields and rules, and a walker that checks objects against them.
//!
//! A [`FieldRule`] is a field and a [`Rule`]. The rows have the order in which Kubernetes validates,
//! because errors are reported in that order. Common rules (required, one of several, a format, a
//! range) are data; every other rule is a function ([`Rule::Custom`]).
//!
//! ```text
//! &[("replicas", NotNegative), ("selector", Custom(…)), ("template", Fields(TEMPLATE)), …]
//!        │
//!        ▼ walk(node, rules, errors)
//! spec.replicas: Invalid value: -1: must be greater than or equal to 0
//! ```

pub(super) mod formats;
pub(super) mod go_structs;
mod node;
pub(super) mod quantities;
pub(super) mod selectors;

pub(super) use node::{Errors, Node};

use mainstay_object::Object;
use serde_json::{Map, Value};

/// The error of a negative number.
pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
/// The error of a number that is not positive.
pub(super) const POSITIVE: &str = "must be greater than 0";
/// The older text of the same error: for quantities and a few numbers of pods.
pub(super) const ABOVE_ZERO: &str = "must be greater than zero";
/// The error of a changed immutable field.
pub(super) const IMMUTABLE: &str = "field is immutable";

/// Returns the problems of a string; empty for a valid one.
pub(super) type Format = fn(&str) -> Vec<String>;

/// A field and its rule. An empty name stands for the value itself.
pub(super) type FieldRule = (&'static str, Rule);

/// A rule for a value.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// The value is neither null nor empty. The text is the detail of the error.
    Required(&'static str),
    /// A string that is not empty has a format.
    Format(Format),
    /// A string is required and has a format.
    RequiredFormat(Format),
    /// The string has a format, even if it is empty.
    AlwaysFormat(Format),
    /// A string that is set is one of these.
    OneOf(&'static [&'static str]),
    /// A string is required and is one of these.
    RequiredOneOf(&'static [&'static str]),
    /// A number that is set is not negative.
    NotNegative,
    /// A number that is set is positive.
    Positive,
    /// A number that is set is in this range; the text is the error.
    Range(i64, i64, &'static str),
    /// A number, zero if it is not set, is in this range; the text is the error.
    RangeOrZero(i64, i64, &'static str),
    /// A port number from 1 to 65535; required.
    Port,
    /// A port number or name.
    PortOrName,
    /// Rules for the fields of an object that is set.
    Fields(&'static [FieldRule]),
    /// Rules for the fields of each element of a list.
    Elements(&'static [FieldRule]),
    /// The value may not be set; the text is the error.
    Forbidden(&'static str),
    /// A function.
    Custom(fn(&Node<'_, '_>, &mut Errors)),
}

/// Checks a value against rules, in their order.
pub(super) fn walk(node: &Node<'_, '_>, rules: &[FieldRule], errors: &mut Errors) {
    for (field, rule) in rules {
        if field.is_empty() {
            apply(node, rule, errors);
        } else {
            apply(&node.get(field), rule, errors);
        }
    }
}

/// Checks the top-level fields of an object against rules.
pub(super) fn walk_object(object: &Object, rules: &[FieldRule], errors: &mut Errors) {
    for (field, rule) in rules {
        apply(&Node::top_level(object_field(object, field), field), rule, errors);
    }
}

/// A field of an object; null if it is absent.
pub(super) fn object_field<'a>(object: &'a Object, field: &str) -> &'a Value {
    static NULL: Value = Value::Null;
    object.fields().get(field).unwrap_or(&NULL)
}

fn apply(node: &Node<'_, '_>, rule: &Rule, errors: &mut Errors) {
    match rule {
        Rule::Required(detail) => required(node, detail, errors),
        Rule::Format(format) if !node.text().is_empty() => {
            errors.add_problems(node, node.text(), format(node.text()));
        }
        Rule::RequiredFormat(_) | Rule::RequiredOneOf(_) if node.text().is_empty() => {
            errors.required(node, "");
        }
        Rule::RequiredFormat(format) | Rule::AlwaysFormat(format) => {
            errors.add_problems(node, node.text(), format(node.text()));
        }
        Rule::OneOf(allowed) if node.is_set() => one_of(node, allowed, errors),
        Rule::RequiredOneOf(allowed) => one_of(node, allowed, errors),
        Rule::NotNegative => {
            if let Some(number) = node.number().filter(|number| *number < 0) {
                errors.invalid(node, number, NOT_NEGATIVE);
            }
        }
        Rule::Positive => {
            if let Some(number) = node.number().filter(|number| *number <= 0) {
                errors.invalid(node, number, POSITIVE);
            }
        }
        Rule::Range(min, max, detail) if node.is_set() => {
            range(node, *min, *max, detail, errors);
        }
        Rule::RangeOrZero(min, max, detail) => range(node, *min, *max, detail, errors),
        Rule::Port => range(node, 1, 65535, formats::PORT_RANGE, errors),
        Rule::PortOrName => port_or_name(node, errors),
        Rule::Fields(rules) if node.is_set() => walk(node, rules, errors),
        Rule::Elements(rules) => node.items().for_each(|item| walk(&item, rules, errors)),
        Rule::Forbidden(detail) if node.is_set() => errors.forbidden(node, *detail),
        Rule::Custom(check) => check(node, errors),
        Rule::Format(_)
        | Rule::OneOf(_)
        | Rule::Range(..)
        | Rule::Fields(_)
        | Rule::Forbidden(_) => {}
    }
}

fn required(node: &Node<'_, '_>, detail: &str, errors: &mut Errors) {
    let missing = match node.value() {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(_) | Value::Object(_) => node.len() == 0,
        Value::Bool(_) | Value::Number(_) => false,
    };
    if missing {
        errors.required(node, detail);
    }
}

/// A string must be one of several; an empty string is invalid unless it is listed.
pub(super) fn one_of(node: &Node<'_, '_>, allowed: &[&str], errors: &mut Errors) {
    if !allowed.contains(&node.text()) {
        errors.unsupported(node, node.text(), allowed);
    }
}

fn range(node: &Node<'_, '_>, min: i64, max: i64, detail: &str, errors: &mut Errors) {
    let number = node.number().unwrap_or_default();
    if !(min..=max).contains(&number) {
        errors.invalid(node, number, detail);
    }
}

/// A port number or name; an absent value is the number zero.
pub(super) fn port_or_name(node: &Node<'_, '_>, errors: &mut Errors) {
    match node.value().as_str() {
        Some(name) => errors.add_problems(node, name, formats::port_name(name)),
        None => range(node, 1, 65535, formats::PORT_RANGE, errors),
    }
}

/// Checks that a field is unchanged; absent, null and empty values are equal.
pub(super) fn immutable(node: &Node<'_, '_>, old: &Value, errors: &mut Errors) {
    if !semantically_equal(node.value(), old) {
        errors.invalid_value(node, IMMUTABLE);
    }
}

/// Whether two values are semantically equal: absent, null and empty values are equal.
pub(super) fn semantically_equal(new: &Value, old: &Value) -> bool {
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    if is_nothing(new) || is_nothing(old) {
        return is_nothing(new) && is_nothing(old);
    }
    match (new, old) {
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len()
                && new.iter().zip(old).all(|(new, old)| semantically_equal_inside(new, old))
        }
        (Value::Object(new), Value::Object(old)) => {
            let get =
                |map: &Map<String, Value>, key: &str| map.get(key).cloned().unwrap_or_default();
            new.iter().all(|(key, value)| match old.get(key) {
                Some(old) => semantically_equal_inside(value, old),
                None => semantically_equal_inside(value, &Value::Null),
            }) && old
                .keys()
                .filter(|key| !new.contains_key(*key))
                .all(|key| semantically_equal_inside(&Value::Null, &get(old, key)))
        }
        _ => new == old,
    }
}

/// As [`semantically_equal`], for values inside of others.
fn semantically_equal_inside(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(object), Value::Null) | (Value::Null, Value::Object(object)) => {
            // An empty map equals an absent one. A pointer to an empty struct would differ, but JSON
            // does not distinguish the two.
            object.is_empty()
        }
        _ => semantically_equal(new, old),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_rule_reports_its_error() {
        const RULES: &[FieldRule] = &[
            ("needed", Rule::Required("why")),
            ("format", Rule::Format(formats::port_name)),
            ("named", Rule::RequiredFormat(formats::port_name)),
            ("one", Rule::OneOf(&["a"])),
            ("choice", Rule::RequiredOneOf(&["a"])),
            ("natural", Rule::NotNegative),
            ("positive", Rule::Positive),
            ("within", Rule::Range(1, 2, "1 or 2")),
            ("port", Rule::Port),
            ("target", Rule::PortOrName),
            ("list", Rule::Elements(&[("x", Rule::Required(""))])),
            ("inside", Rule::Fields(&[("x", Rule::Required(""))])),
            ("absent", Rule::Forbidden("no")),
        ];
        let found = |value: Value| {
            let mut errors = Errors::default();
            walk(&Node::root(&value), RULES, &mut errors);
            errors.into_vec().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let valid = json!({"needed": [1], "named": "a", "choice": "a", "port": 1, "target": "web"});
        assert_eq!(found(valid), Vec::<String>::new());
        let invalid = json!({
            "format": "A", "one": "b", "choice": "b", "natural": -1, "positive": 0, "within": 3,
            "target": 0, "list": [{}], "inside": {}, "absent": true,
        });
        assert_eq!(
            found(invalid),
            [
                "needed: Required value: why",
                "format: Invalid value: \"A\": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "format: Invalid value: \"A\": must contain at least one letter (a-z)",
                "named: Required value",
                "one: Unsupported value: \"b\": supported values: \"a\"",
                "choice: Unsupported value: \"b\": supported values: \"a\"",
                "natural: Invalid value: -1: must be greater than or equal to 0",
                "positive: Invalid value: 0: must be greater than 0",
                "within: Invalid value: 3: 1 or 2",
                "port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "target: Invalid value: 0: must be between 1 and 65535, inclusive",
                "list[0].x: Required value",
                "inside.x: Required value",
                "absent: Forbidden: no",
            ]
        );
    }

    #[test]
    fn empty_values_equal_absent_values() {
        assert!(semantically_equal(&json!({"a": [], "b": 1}), &json!({"b": 1})));
        assert!(semantically_equal(&json!(null), &json!({})));
        assert!(!semantically_equal(&json!({"a": 1}), &json!({})));
        assert!(!semantically_equal(&json!([1]), &json!([1, 2])));
    }
}
