//! Taking fields and elements out of an object.

use super::lists;
use super::path::Step;
use super::set::Set;
use super::types::{ListType, MapType, Shaped, TypeRef};
use serde_json::{Map, Value};

/// Takes the members of a set out of an object, each with everything below it.
///
/// An object or list that has nothing left, and one of which a part would go although it is atomic,
/// becomes null, as does one that was empty: decoding the result drops those nulls.
pub fn remove(object: &mut Value, members: &Set, ty: TypeRef<'_>) {
    match ty.resolve().shape(object) {
        Some(Shaped::Scalar(_)) => {}
        Some(Shaped::List(list)) => match object {
            Value::Array(items) if !list.atomic => {
                remove_items(items, members, &list);
                if items.is_empty() {
                    *object = Value::Null;
                }
            }
            _ => *object = Value::Null,
        },
        Some(Shaped::Map(map)) => match object {
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

fn remove_items(items: &mut Vec<Value>, members: &Set, list: &ListType<'_>) {
    items.retain_mut(|item| {
        let step = lists::step(list, item).unwrap_or(Step::Nameless);
        let (member, below) = members.step(&step);
        if let (false, Some(below)) = (member, below) {
            remove(item, below, list.element);
        }
        !member
    });
}

fn remove_fields(fields: &mut Map<String, Value>, members: &Set, map: &MapType<'_>) {
    fields.retain(|name, field| {
        let (member, below) = members.field(name);
        if let (false, Some(below)) = (member, below) {
            remove(field, below, map.field(name).unwrap_or(map.element));
        }
        !member
    });
}
