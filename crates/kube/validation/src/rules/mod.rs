//! Rules as data: what a field must be is a row, and one walker checks objects against the rows.
//!
//! A [`Check`] is a field and a [`Rule`]. The order of the rows is the order in which the original
//! looks, because errors are reported in it. Rules that are a shape (needed, one of several, a name,
//! a number within bounds) are data; what remains is a function ([`Rule::With`]).
//!
//! ```text
//! &[("replicas", NotNegative), ("selector", With(…)), ("template", Inside(TEMPLATE)), …]
//!        │
//!        ▼ walk(node, checks, errors)
//! spec.replicas: Invalid value: -1: must be greater than or equal to 0
//! ```

pub(super) mod amounts;
pub(super) mod formats;
pub(super) mod forms;
mod node;
pub(super) mod selectors;

pub(super) use node::{Errors, Node};

use mainstay_object::Object;
use serde_json::{Map, Value};

/// What a number that may not be negative is told.
pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
/// What a number that must be positive is told.
pub(super) const POSITIVE: &str = "must be greater than 0";
/// The same in older words: amounts, and a few numbers of pods.
pub(super) const ABOVE_ZERO: &str = "must be greater than zero";
/// What a field is told that never changes.
pub(super) const IMMUTABLE: &str = "field is immutable";

/// Problems of a text; empty when it is good.
pub(super) type Format = fn(&str) -> Vec<String>;

/// A field and what it must be. The empty name is the value itself.
pub(super) type Check = (&'static str, Rule);

/// What a value must be.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// There must be something: not null, not empty. The text is the error's detail.
    Needed(&'static str),
    /// A text, if there is one, has a format.
    Format(Format),
    /// There must be a text, and it has a format.
    Named(Format),
    /// The text has a format, even the empty one.
    Always(Format),
    /// A text, if it is set, is one of these.
    OneOf(&'static [&'static str]),
    /// There must be a text, and it is one of these.
    Choice(&'static [&'static str]),
    /// A number, if there is one, is not negative.
    NotNegative,
    /// A number, if there is one, is positive.
    Positive,
    /// A number, if there is one, is within these bounds; the text says so.
    Within(i64, i64, &'static str),
    /// A number, zero if there is none, is within these bounds; the text says so.
    Between(i64, i64, &'static str),
    /// A port: from 1 to 65535, also if there is none.
    Port,
    /// A port by number or by name.
    PortOrName,
    /// The fields of an object, if there is one.
    Inside(&'static [Check]),
    /// The same for every element of a list.
    Each(&'static [Check]),
    /// The value may not be set; the text says why.
    Absent(&'static str),
    /// Whatever else.
    With(fn(&Node<'_, '_>, &mut Errors)),
}

/// What is wrong with a value, in the order of the rows.
pub(super) fn walk(node: &Node<'_, '_>, checks: &[Check], errors: &mut Errors) {
    for (field, rule) in checks {
        if field.is_empty() {
            apply(node, rule, errors);
        } else {
            apply(&node.get(field), rule, errors);
        }
    }
}

/// The same of an object, from its top.
pub(super) fn walk_object(object: &Object, checks: &[Check], errors: &mut Errors) {
    for (field, rule) in checks {
        apply(&Node::top(view(object, field), field), rule, errors);
    }
}

/// A field of an object; null if it is absent.
pub(super) fn view<'a>(object: &'a Object, field: &str) -> &'a Value {
    static NULL: Value = Value::Null;
    object.fields().get(field).unwrap_or(&NULL)
}

fn apply(node: &Node<'_, '_>, rule: &Rule, errors: &mut Errors) {
    match rule {
        Rule::Needed(detail) => needed(node, detail, errors),
        Rule::Format(format) if !node.text().is_empty() => {
            errors.each(node, node.text(), format(node.text()));
        }
        Rule::Named(_) | Rule::Choice(_) if node.text().is_empty() => errors.required(node, ""),
        Rule::Named(format) | Rule::Always(format) => {
            errors.each(node, node.text(), format(node.text()));
        }
        Rule::OneOf(allowed) if node.is_set() => one_of(node, allowed, errors),
        Rule::Choice(allowed) => one_of(node, allowed, errors),
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
        Rule::Within(least, most, detail) if node.is_set() => {
            between(node, *least, *most, detail, errors);
        }
        Rule::Between(least, most, detail) => between(node, *least, *most, detail, errors),
        Rule::Port => between(node, 1, 65535, formats::PORT_RANGE, errors),
        Rule::PortOrName => port_or_name(node, errors),
        Rule::Inside(checks) if node.is_set() => walk(node, checks, errors),
        Rule::Each(checks) => node.items().for_each(|item| walk(&item, checks, errors)),
        Rule::Absent(detail) if node.is_set() => errors.forbidden(node, *detail),
        Rule::With(check) => check(node, errors),
        Rule::Format(_) | Rule::OneOf(_) | Rule::Within(..) | Rule::Inside(_) | Rule::Absent(_) => {
        }
    }
}

fn needed(node: &Node<'_, '_>, detail: &str, errors: &mut Errors) {
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

/// A text must be one of several; the empty text is none of them unless it is listed.
pub(super) fn one_of(node: &Node<'_, '_>, allowed: &[&str], errors: &mut Errors) {
    if !allowed.contains(&node.text()) {
        errors.unsupported(node, node.text(), allowed);
    }
}

fn between(node: &Node<'_, '_>, least: i64, most: i64, detail: &str, errors: &mut Errors) {
    let number = node.number().unwrap_or_default();
    if !(least..=most).contains(&number) {
        errors.invalid(node, number, detail);
    }
}

/// A port by number, or by name; nothing is the number zero.
pub(super) fn port_or_name(node: &Node<'_, '_>, errors: &mut Errors) {
    match node.value().as_str() {
        Some(name) => errors.each(node, name, formats::port_name(name)),
        None => between(node, 1, 65535, formats::PORT_RANGE, errors),
    }
}

/// A field that may not change; nothing, null and what is empty are the same.
pub(super) fn immutable(node: &Node<'_, '_>, old: &Value, errors: &mut Errors) {
    if !same(node.value(), old) {
        errors.wrong(node, IMMUTABLE);
    }
}

/// Whether two values mean the same: what is absent, null or empty does not differ.
pub(super) fn same(new: &Value, old: &Value) -> bool {
    let nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    if nothing(new) || nothing(old) {
        return nothing(new) && nothing(old);
    }
    match (new, old) {
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| same_inside(new, old))
        }
        (Value::Object(new), Value::Object(old)) => {
            let of =
                |map: &Map<String, Value>, key: &str| map.get(key).cloned().unwrap_or_default();
            new.iter().all(|(key, value)| match old.get(key) {
                Some(old) => same_inside(value, old),
                None => same_inside(value, &Value::Null),
            }) && old
                .keys()
                .filter(|key| !new.contains_key(*key))
                .all(|key| same_inside(&Value::Null, &of(old, key)))
        }
        _ => new == old,
    }
}

/// As [`same`], but an empty object is something: a pointer to a struct without anything in it.
fn same_inside(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(one), Value::Null) | (Value::Null, Value::Object(one)) => {
            // A map of nothing is no map; which of the two it is cannot be told here.
            one.is_empty()
        }
        _ => same(new, old),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_rule_says_what_it_wants() {
        const CHECKS: &[Check] = &[
            ("needed", Rule::Needed("why")),
            ("format", Rule::Format(formats::port_name)),
            ("named", Rule::Named(formats::port_name)),
            ("one", Rule::OneOf(&["a"])),
            ("choice", Rule::Choice(&["a"])),
            ("natural", Rule::NotNegative),
            ("positive", Rule::Positive),
            ("within", Rule::Within(1, 2, "1 or 2")),
            ("port", Rule::Port),
            ("target", Rule::PortOrName),
            ("list", Rule::Each(&[("x", Rule::Needed(""))])),
            ("inside", Rule::Inside(&[("x", Rule::Needed(""))])),
            ("absent", Rule::Absent("no")),
        ];
        let found = |value: Value| {
            let mut errors = Errors::default();
            walk(&Node::root(&value), CHECKS, &mut errors);
            errors.into_vec().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let good = json!({"needed": [1], "named": "a", "choice": "a", "port": 1, "target": "web"});
        assert_eq!(found(good), Vec::<String>::new());
        let bad = json!({
            "format": "A", "one": "b", "choice": "b", "natural": -1, "positive": 0, "within": 3,
            "target": 0, "list": [{}], "inside": {}, "absent": true,
        });
        assert_eq!(
            found(bad),
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
    fn what_is_empty_does_not_differ_from_what_is_absent() {
        assert!(same(&json!({"a": [], "b": 1}), &json!({"b": 1})));
        assert!(same(&json!(null), &json!({})));
        assert!(!same(&json!({"a": 1}), &json!({})));
        assert!(!same(&json!([1]), &json!([1, 2])));
    }
}
