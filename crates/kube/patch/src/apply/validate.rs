//! Validation of a value against its type, as far as server-side apply needs it.

use super::path::Step;
use super::problems::TypeProblems;
use super::types::{ListType, MapType, ScalarType, TypeRef, TypeShape};
use super::{lists, scalar};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Whether duplicate elements of sets and list maps are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// As in stored objects.
    Allowed,
    /// As in applied configurations.
    Rejected,
}

/// Validates a value: the kinds of values, undeclared fields, and the elements of sets and list
/// maps.
///
/// # Errors
/// All problems, with the text of structured-merge-diff.
pub fn validate(
    value: &Value,
    ty: TypeRef<'_>,
    duplicates: Duplicates,
) -> Result<(), TypeProblems> {
    let mut problems = TypeProblems::default();
    visit(value, ty, duplicates, &mut problems);
    problems.result()
}

fn visit(value: &Value, ty: TypeRef<'_>, duplicates: Duplicates, problems: &mut TypeProblems) {
    match ty.resolve().shape(value) {
        None => problems.add("schema error: invalid atom: inlined"),
        Some(TypeShape::Scalar(scalar)) => {
            if let Some(problem) = scalar_problem(scalar, value) {
                problems.add(problem);
            }
        }
        Some(TypeShape::List(list)) => match value {
            Value::Array(items) => visit_items(items, &list, duplicates, problems),
            Value::Null => {}
            other => problems.add(format!("expected list, got {}", go_pointer(other))),
        },
        Some(TypeShape::Map(map)) => match value {
            Value::Object(_) => visit_fields(value, &map, duplicates, problems),
            Value::Null => {}
            other => problems.add(format!("expected map, got {}", go_pointer(other))),
        },
    }
}

/// A path element with the order of field sets.
struct OrderedStep<'a>(Step<'a>);

impl PartialEq for OrderedStep<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OrderedStep<'_> {}

impl PartialOrd for OrderedStep<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrderedStep<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.order(&other.0)
    }
}

fn visit_items(
    items: &[Value],
    list: &ListType<'_>,
    duplicates: Duplicates,
    problems: &mut TypeProblems,
) {
    if list.atomic {
        for (index, item) in items.iter().enumerate() {
            problems.below(
                || format!("[{index}]"),
                |problems| visit(item, list.element, duplicates, problems),
            );
        }
        return;
    }
    let mut visited: BTreeSet<OrderedStep<'_>> = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let step = match lists::step(list, item) {
            Ok(step) => step,
            Err(error) => {
                problems.add(format!("element {index}: {error}"));
                return;
            }
        };
        let step = OrderedStep(step);
        if let Some(same) = visited.get(&step) {
            if duplicates == Duplicates::Rejected {
                problems.add(format!("duplicate entries for key {}", same.0));
            }
        } else {
            visited.insert(step);
        }
        problems.below(
            || lists::step(list, item).map(|step| step.to_string()).unwrap_or_default(),
            |problems| visit(item, list.element, duplicates, problems),
        );
    }
}

fn visit_fields(
    value: &Value,
    map: &MapType<'_>,
    duplicates: Duplicates,
    problems: &mut TypeProblems,
) {
    for (name, field) in value.as_object().into_iter().flatten() {
        let ty = map.field(name).unwrap_or(map.element);
        if ty.is_nothing() {
            problems.field(name, |problems| problems.add("field not declared in schema"));
            return;
        }
        problems.field(name, |problems| visit(field, ty, duplicates, problems));
    }
}

/// The problem of a scalar; none for null.
pub(super) fn scalar_problem(scalar: ScalarType, value: &Value) -> Option<String> {
    match (scalar, value) {
        (_, Value::Null)
        | (ScalarType::Numeric | ScalarType::Any, Value::Number(_))
        | (ScalarType::String | ScalarType::Any, Value::String(_))
        | (ScalarType::Boolean | ScalarType::Any, Value::Bool(_)) => None,
        (ScalarType::Numeric, other) => {
            Some(format!("expected numeric (int or float), got {}", scalar::go_type(other)))
        }
        (ScalarType::String, other) => {
            let mut text = "expected string, got &value.valueUnstructured{Value:".to_owned();
            scalar::write_go_syntax(&mut text, other);
            text.push('}');
            Some(text)
        }
        (ScalarType::Boolean, other) => {
            Some(format!("expected boolean, got {}", go_pointer(other)))
        }
        (ScalarType::Any, other) => Some(format!("expected any scalar, got {}", go_pointer(other))),
    }
}

/// A value as Go prints a pointer to its wrapper.
fn go_pointer(value: &Value) -> String {
    let mut text = "&{".to_owned();
    scalar::write_go_value(&mut text, value);
    text.push('}');
    text
}
