//! The checks of one property: its old and its new schema in, texts of problems out.
//!
//! Each check looks at its own fields and takes them out of the comparison. What still differs then
//! is an `unhandled` change.

use crate::config::{Check, Configuration, Policy};
use crate::go::{Addresses, Schema, Value, View, dump_schema, field};
use crate::godiff;
use mainstay_gocompat::quote;
use mainstay_gocompat::values::float;
use std::collections::BTreeSet;

/// A problem that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) check: Check,
    pub(crate) text: String,
}

/// What precedes the dump of a difference.
pub(crate) const UNHANDLED_PREFIX: &str = "unhandled changes found";

/// The checks of bounds, with their fields.
pub(crate) const BOUNDS: [(Check, usize, Bound); 8] = [
    (Check::MaxItems, field::MAX_ITEMS, Bound::Upper),
    (Check::MaxLength, field::MAX_LENGTH, Bound::Upper),
    (Check::MaxProperties, field::MAX_PROPERTIES, Bound::Upper),
    (Check::Maximum, field::MAXIMUM, Bound::Upper),
    (Check::MinItems, field::MIN_ITEMS, Bound::Lower),
    (Check::MinLength, field::MIN_LENGTH, Bound::Lower),
    (Check::MinProperties, field::MIN_PROPERTIES, Bound::Lower),
    (Check::Minimum, field::MINIMUM, Bound::Lower),
];

/// On which side a bound is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Upper,
    Lower,
}

/// The fields that have a check of their own, beside bounds.
const HANDLED: [usize; 8] = [
    field::DEFAULT,
    field::DESCRIPTION,
    field::ENUM,
    field::NULLABLE,
    field::ONE_OF,
    field::PATTERN,
    field::REQUIRED,
    field::TYPE,
];

/// Compares a property, in the order of the names of checks.
pub(crate) fn compare_property(
    old: &Schema,
    new: &Schema,
    configuration: &Configuration,
) -> Vec<Problem> {
    let (before, after) = (old.view(), new.view());
    let mut found = Vec::new();
    let mut add = |check, text: Option<String>| {
        found.extend(text.map(|text| Problem { check, text }));
    };
    add(Check::Default, default(before, after));
    add(Check::Description, changed("description changed", field::DESCRIPTION, before, after));
    add(Check::Enum, enumeration(before, after, configuration));
    for (check, index, bound) in BOUNDS {
        add(check, bound_text(before.target(index), after.target(index), bound));
    }
    add(Check::Nullable, nullable(before, after, configuration));
    add(Check::OneOf, one_of(before, after, configuration));
    add(Check::Pattern, pattern(before, after, configuration));
    add(Check::Required, required(before, after));
    add(Check::Type, changed("type changed", field::TYPE, before, after));
    add(Check::Unhandled, unhandled(old, new));
    found
}

/// A field of the kind string that changed.
fn changed(what: &str, index: usize, old: View<'_>, new: View<'_>) -> Option<String> {
    let (old, new) = (old.text(index), new.text(index));
    (old != new).then(|| format!("{what} : {} -> {}", quote(old), quote(new)))
}

fn default(old: View<'_>, new: View<'_>) -> Option<String> {
    match (old.raw(field::DEFAULT), new.raw(field::DEFAULT)) {
        (None, Some(new)) => {
            Some(format!("default added when there was none previously : {}", quote(&new)))
        }
        (Some(old), None) => Some(format!("default value removed : {}", quote(&old))),
        (Some(old), Some(new)) if old != new => {
            Some(format!("default value changed : {} -> {}", quote(&old), quote(&new)))
        }
        _ => None,
    }
}

fn enumeration(old: View<'_>, new: View<'_>, configuration: &Configuration) -> Option<String> {
    let (old, new) = (old.enum_texts().collect(), new.enum_texts().collect());
    let (removed, added) = set_changes(&old, &new);
    let list = |values: &[&String]| {
        let values: Vec<&str> = values.iter().map(|value| value.as_str()).collect();
        format!("[{}]", values.join(" "))
    };
    if old.is_empty() && !new.is_empty() {
        let list = list(&added);
        return Some(format!("enum constraint added when there was none previously : {list}"));
    }
    if !removed.is_empty() {
        return Some(format!("allowed enum values removed : {}", list(&removed)));
    }
    let is_allowed = configuration.settings(Check::Enum).addition == Policy::Allow;
    (!added.is_empty() && !is_allowed)
        .then(|| format!("allowed enum values added : {}", list(&added)))
}

/// What only the old and what only the new set has.
pub(crate) fn set_changes<'s, T: Ord>(
    old: &'s BTreeSet<T>,
    new: &'s BTreeSet<T>,
) -> (Vec<&'s T>, Vec<&'s T>) {
    (old.difference(new).collect(), new.difference(old).collect())
}

fn bound_text(old: Option<&Value>, new: Option<&Value>, bound: Bound) -> Option<String> {
    let (name, moved) = match bound {
        Bound::Upper => ("maximum", "decreased"),
        Bound::Lower => ("minimum", "increased"),
    };
    match (old, new) {
        (None, Some(new)) => {
            let new = number_text(new);
            Some(format!("{name} constraint added when there was none previously : {new}"))
        }
        (Some(old), Some(new)) if is_narrower(old, new, bound) => {
            Some(format!("{name} {moved} : {} -> {}", number_text(old), number_text(new)))
        }
        _ => None,
    }
}

fn is_narrower(old: &Value, new: &Value, bound: Bound) -> bool {
    let order = match (old, new) {
        (Value::Int(old), Value::Int(new)) => Some(new.cmp(old)),
        (Value::Float(old), Value::Float(new)) => new.partial_cmp(old),
        _ => None,
    };
    match bound {
        Bound::Upper => order.is_some_and(std::cmp::Ordering::is_lt),
        Bound::Lower => order.is_some_and(std::cmp::Ordering::is_gt),
    }
}

fn number_text(number: &Value) -> String {
    match number {
        Value::Int(number) => number.to_string(),
        Value::Float(number) => float(*number),
        _ => String::new(),
    }
}

fn nullable(old: View<'_>, new: View<'_>, configuration: &Configuration) -> Option<String> {
    let settings = configuration.settings(Check::Nullable);
    match (old.is_set(field::NULLABLE), new.is_set(field::NULLABLE)) {
        (false, true) if settings.addition != Policy::Allow => {
            Some("nullable added : false -> true".to_owned())
        }
        (true, false) if settings.removal != Policy::Allow => {
            Some("nullable removed : true -> false".to_owned())
        }
        _ => None,
    }
}

fn one_of(old: View<'_>, new: View<'_>, configuration: &Configuration) -> Option<String> {
    let settings = configuration.settings(Check::OneOf);
    let mut addresses = Addresses::default();
    let mut dumps = |view: View<'_>| -> BTreeSet<String> {
        let dump = |branch| dump_schema(&without_words(branch), &mut addresses);
        view.schemas(field::ONE_OF).map(dump).collect()
    };
    let (before, after) = (dumps(old), dumps(new));
    let (removed, added) = set_changes(&before, &after);
    let list = |schemas: &[&String]| {
        let schemas: Vec<&str> = schemas.iter().map(|schema| schema.as_str()).collect();
        format!("[{}]", schemas.join(" "))
    };
    if before.is_empty() && !after.is_empty() {
        let all = list(&added);
        if settings.addition != Policy::Allow {
            return Some(format!("oneOf constraint added when there was none previously: {all}"));
        }
        let mut whole = without_words(old);
        whole.reset(field::ONE_OF);
        return (!after.contains(&dump_schema(&whole, &mut addresses))).then(|| {
            format!(
                "oneOf constraint added and pre-existing property schema is not preserved in the new \
                 oneOf entries: {all}"
            )
        });
    }
    if !removed.is_empty() && settings.removal != Policy::Allow {
        return Some(format!("allowed oneOf schemas removed: {}", list(&removed)));
    }
    (!added.is_empty() && settings.addition != Policy::Allow)
        .then(|| format!("allowed oneOf schemas added: {}", list(&added)))
}

/// A schema without what only documents it.
pub(crate) fn without_words(view: View<'_>) -> Schema {
    view.copy_without(&[field::DESCRIPTION, field::TITLE, field::EXAMPLE, field::EXTERNAL_DOCS])
}

fn pattern(old: View<'_>, new: View<'_>, configuration: &Configuration) -> Option<String> {
    let (old, new) = (old.text(field::PATTERN), new.text(field::PATTERN));
    let what = match (old, new) {
        (old, new) if old == new => return None,
        ("", _) => "added",
        (_, "") if configuration.settings(Check::Pattern).removal == Policy::Allow => return None,
        (_, "") => "removed",
        _ => "changed",
    };
    Some(format!("pattern {what} : {} -> {}", quote(old), quote(new)))
}

fn required(old: View<'_>, new: View<'_>) -> Option<String> {
    let (old, new) = (old.texts(field::REQUIRED).collect(), new.texts(field::REQUIRED).collect());
    let (_, added) = set_changes::<&str>(&old, &new);
    let added: Vec<&str> = added.into_iter().copied().collect();
    (!added.is_empty()).then(|| format!("new required fields: [{}]", added.join(" ")))
}

fn unhandled(old: &Schema, new: &Schema) -> Option<String> {
    let (old, new) = (unhandled_part(old), unhandled_part(new));
    let is_same =
        (0..crate::go::SCHEMA.fields.len()).all(|index| old.view().has_same(new.view(), index));
    (!is_same).then(|| format!("{UNHANDLED_PREFIX} :\n{}", godiff::difference(&old, &new)))
}

/// A schema without the fields that have a check of their own.
fn unhandled_part(schema: &Schema) -> Schema {
    let mut part = schema.clone();
    for index in HANDLED.into_iter().chain(BOUNDS.map(|(_, index, _)| index)) {
        part.reset(index);
    }
    part
}
