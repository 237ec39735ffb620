//! Removing fields and list elements from an object.

use super::lists;
use super::path::Step;
use super::set::FieldSet;
use super::types::{ListType, MapType, TypeRef, TypeShape};
use serde_json::{Map, Value};

/// Removes the members of a set from an object, each with all fields below it.
///
/// An object or list becomes null if it is empty afterwards, or if it is atomic and a part would be
/// removed. Decoding the result drops those nulls.
pub fn remove(object: &mut Value, members: &FieldSet, ty: TypeRef<'_>) {
    match ty.resolve().shape(object) {
        Some(TypeShape::Scalar(_)) => {}
        Some(TypeShape::List(list)) => match object {
            Value::Array(items) if !list.atomic => {
                remove_items(items, members, &list);
                if items.is_empty() {
                    *object = Value::Null;
                }
            }
            _ => *object = Value::Null,
        },
        Some(TypeShape::Map(map)) => match object {
            Value::Object(fields) if !map.atomic => {
                remove_fields(fields, members, &map);
                if fields.is_empty() {
                    *object = Value::Null;
                }
            }
            _ => *object = Value::Null,
        },
        None => *object = Value::Null,
    }
}

fn remove_items(items: &mut Vec<Value>, members: &FieldSet, list: &ListType<'_>) {
    items.retain_mut(|item| {
        let step = lists::step(list, item).unwrap_or(Step::Nameless);
        let (member, below) = members.step(&step);
        if let (false, Some(below)) = (member, below) {
            remove(item, below, list.element);
        }
        !member
    });
}

fn remove_fields(fields: &mut Map<String, Value>, members: &FieldSet, map: &MapType<'_>) {
    fields.retain(|name, field| {
        let (member, below) = members.field(name);
        if let (false, Some(below)) = (member, below) {
            remove(field, below, map.field(name).unwrap_or(map.element));
        }
        !member
    });
}
