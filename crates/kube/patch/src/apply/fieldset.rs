//! The field set of a value: all paths that it contains.

use super::lists;
use super::path::Step;
use super::problems::TypeProblems;
use super::set::FieldSet;
use super::types::{ListType, MapType, TypeRef, TypeShape};
use serde_json::{Map, Value};

/// The paths of all leaves of a value, and of its list elements, map fields and empty objects.
///
/// Atomic lists and objects are leaves, and so is an element that a set or list map has twice. All
/// elements without a path element of their own, such as null, are one element.
///
/// # Errors
/// The value does not have its type.
pub fn field_set(value: &Value, ty: TypeRef<'_>) -> Result<FieldSet, TypeProblems> {
    let mut problems = TypeProblems::default();
    let mut set = FieldSet::new();
    visit(value, ty, &mut set, &mut problems);
    problems.result()?;
    Ok(set)
}

/// Adds the paths below a value and returns whether the value is a leaf.
fn visit(value: &Value, ty: TypeRef<'_>, set: &mut FieldSet, problems: &mut TypeProblems) -> bool {
    match ty.resolve().shape(value) {
        None => {
            problems.add("schema error: invalid atom: inlined");
            false
        }
        Some(TypeShape::Scalar(_)) => true,
        Some(TypeShape::List(list)) if list.atomic => true,
        Some(TypeShape::Map(map)) if map.atomic => true,
        Some(TypeShape::List(list)) => {
            if let Value::Array(items) = value {
                visit_items(items, &list, set, problems);
            }
            false
        }
        Some(TypeShape::Map(map)) => {
            if let Value::Object(fields) = value {
                visit_fields(fields, &map, set, problems);
            }
            false
        }
    }
}

fn visit_items(
    items: &[Value],
    list: &ListType<'_>,
    set: &mut FieldSet,
    problems: &mut TypeProblems,
) {
    let mut steps: Vec<(usize, Step<'_>)> = (items.iter().enumerate())
        .map(|(index, item)| (index, lists::step(list, item).unwrap_or(Step::Nameless)))
        .collect();
    steps.sort_by(|left, right| left.1.order(&right.1));
    for group in steps.chunk_by(|left, right| left.1.order(&right.1).is_eq()) {
        let mut below = FieldSet::new();
        if let [(index, step)] = group {
            problems.below(
                || step.to_string(),
                |problems| visit(&items[*index], list.element, &mut below, problems),
            );
        }
        set.add(&group[0].1, true, below);
    }
}

fn visit_fields(
    fields: &Map<String, Value>,
    map: &MapType<'_>,
    set: &mut FieldSet,
    problems: &mut TypeProblems,
) {
    for (name, field) in fields {
        let declared = map.field(name);
        let mut below = FieldSet::new();
        let leaf = problems.field(name, |problems| {
            visit(field, declared.unwrap_or(map.element), &mut below, problems)
        });
        let empty = field.is_null() || field.as_object().is_some_and(Map::is_empty);
        set.add_field(name, leaf || empty || declared.is_none(), below);
    }
}
