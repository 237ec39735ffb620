//! The set of everything that a configuration says.

use super::lists;
use super::path::Step;
use super::problems::Problems;
use super::set::Set;
use super::types::{ListType, MapType, Shaped, TypeRef};
use serde_json::{Map, Value};

/// The paths of all leaves of a value, elements of lists, fields of maps and empty objects.
///
/// Atomic lists and objects are leaves. An element that a set or list map has twice is one too. Elements
/// that have no name, such as null, are one element.
///
/// # Errors
/// If the value does not have its type.
pub fn set_of(value: &Value, ty: TypeRef<'_>) -> Result<Set, Problems> {
    let mut problems = Problems::default();
    let mut set = Set::new();
    visit(value, ty, &mut set, &mut problems);
    problems.result()?;
    Ok(set)
}

/// Adds what is below a value; whether the value is a leaf itself.
fn visit(value: &Value, ty: TypeRef<'_>, set: &mut Set, problems: &mut Problems) -> bool {
    match ty.resolve().shape(value) {
        None => {
            problems.add("schema error: invalid atom: inlined");
            false
        }
        Some(Shaped::Scalar(_)) => true,
        Some(Shaped::List(list)) if list.atomic => true,
        Some(Shaped::Map(map)) if map.atomic => true,
        Some(Shaped::List(list)) => {
            if let Value::Array(items) = value {
                visit_items(items, &list, set, problems);
            }
            false
        }
        Some(Shaped::Map(map)) => {
            if let Value::Object(fields) = value {
                visit_fields(fields, &map, set, problems);
            }
            false
        }
    }
}

fn visit_items(items: &[Value], list: &ListType<'_>, set: &mut Set, problems: &mut Problems) {
    let mut steps: Vec<(usize, Step<'_>)> = (items.iter().enumerate())
        .map(|(at, item)| (at, lists::step(list, item).unwrap_or(Step::Nameless)))
        .collect();
    steps.sort_by(|left, right| left.1.order(&right.1));
    for group in steps.chunk_by(|left, right| left.1.order(&right.1).is_eq()) {
        let mut below = Set::new();
        if let [(at, step)] = group {
            problems.below(
                || step.to_string(),
                |problems| visit(&items[*at], list.element, &mut below, problems),
            );
        }
        set.add(&group[0].1, true, below);
    }
}

fn visit_fields(
    fields: &Map<String, Value>,
    map: &MapType<'_>,
    set: &mut Set,
    problems: &mut Problems,
) {
    for (name, field) in fields {
        let named = map.field(name);
        let mut below = Set::new();
        let leaf = problems.field(name, |problems| {
            visit(field, named.unwrap_or(map.element), &mut below, problems)
        });
        let empty = field.is_null() || field.as_object().is_some_and(Map::is_empty);
        set.add_field(name, leaf || empty || named.is_none(), below);
    }
}
