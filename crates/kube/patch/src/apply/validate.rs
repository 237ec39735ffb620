//! Whether a value has its type, as far as apply needs it.

use super::path::Step;
use super::problems::Problems;
use super::types::{ListType, MapType, Scalar, Shaped, TypeRef};
use super::{lists, scalar};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// What to think of elements of sets and list maps that are there twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// Stored objects may have them.
    Allowed,
    /// Applied configurations may not.
    Refused,
}

/// Checks that a value has its type: kinds of values, fields that the type does not name, and
/// elements of sets and list maps.
///
/// # Errors
/// All problems, in the words of the original.
pub fn validate(value: &Value, ty: TypeRef<'_>, duplicates: Duplicates) -> Result<(), Problems> {
    let mut problems = Problems::default();
    visit(value, ty, duplicates, &mut problems);
    problems.result()
}

fn visit(value: &Value, ty: TypeRef<'_>, duplicates: Duplicates, problems: &mut Problems) {
    match ty.resolve().shape(value) {
        None => problems.add("schema error: invalid atom: inlined"),
        Some(Shaped::Scalar(scalar)) => {
            if let Some(found) = wrong_scalar(scalar, value) {
                problems.add(found);
            }
        }
        Some(Shaped::List(list)) => match value {
            Value::Array(items) => visit_items(items, &list, duplicates, problems),
            Value::Null => {}
            other => problems.add(format!("expected list, got {}", shown(other))),
        },
        Some(Shaped::Map(map)) => match value {
            Value::Object(_) => visit_fields(value, &map, duplicates, problems),
            Value::Null => {}
            other => problems.add(format!("expected map, got {}", shown(other))),
        },
    }
}

/// A step in the order of sets.
struct InOrder<'a>(Step<'a>);

impl PartialEq for InOrder<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for InOrder<'_> {}

impl PartialOrd for InOrder<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for InOrder<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.order(&other.0)
    }
}

fn visit_items(
    items: &[Value],
    list: &ListType<'_>,
    duplicates: Duplicates,
    problems: &mut Problems,
) {
    if list.atomic {
        for (at, item) in items.iter().enumerate() {
            problems.below(
                || format!("[{at}]"),
                |problems| visit(item, list.element, duplicates, problems),
            );
        }
        return;
    }
    let mut seen: BTreeSet<InOrder<'_>> = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let step = match lists::step(list, item) {
            Ok(step) => step,
            Err(found) => {
                problems.add(format!("element {at}: {found}"));
                return;
            }
        };
        let step = InOrder(step);
        if let Some(same) = seen.get(&step) {
            if duplicates == Duplicates::Refused {
                problems.add(format!("duplicate entries for key {}", same.0));
            }
        } else {
            seen.insert(step);
        }
        problems.below(
            || lists::step(list, item).map(|step| step.to_string()).unwrap_or_default(),
            |problems| visit(item, list.element, duplicates, problems),
        );
    }
}

fn visit_fields(value: &Value, map: &MapType<'_>, duplicates: Duplicates, problems: &mut Problems) {
    for (name, field) in value.as_object().into_iter().flatten() {
        let ty = map.field(name).unwrap_or(map.element);
        if ty.is_nothing() {
            problems.field(name, |problems| problems.add("field not declared in schema"));
            return;
        }
        problems.field(name, |problems| visit(field, ty, duplicates, problems));
    }
}

/// What is wrong with a scalar; nothing with null.
pub(super) fn wrong_scalar(scalar: Scalar, value: &Value) -> Option<String> {
    match (scalar, value) {
        (_, Value::Null)
        | (Scalar::Numeric | Scalar::Any, Value::Number(_))
        | (Scalar::String | Scalar::Any, Value::String(_))
        | (Scalar::Boolean | Scalar::Any, Value::Bool(_)) => None,
        (Scalar::Numeric, other) => {
            Some(format!("expected numeric (int or float), got {}", scalar::go_type(other)))
        }
        (Scalar::String, other) => {
            let mut text = "expected string, got &value.valueUnstructured{Value:".to_owned();
            scalar::write_syntax(&mut text, other);
            text.push('}');
            Some(text)
        }
        (Scalar::Boolean, other) => Some(format!("expected boolean, got {}", shown(other))),
        (Scalar::Any, other) => Some(format!("expected any scalar, got {}", shown(other))),
    }
}

/// A value as the original's messages show it.
fn shown(value: &Value) -> String {
    let mut text = "&{".to_owned();
    scalar::write_plain(&mut text, value);
    text.push('}');
    text
}
