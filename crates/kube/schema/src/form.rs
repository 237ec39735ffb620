//! The form in which Go writes objects of built-in kinds: which empty values an answer shows.
//!
//! The original keeps structs, not JSON. What is empty in a struct is written or not by what its
//! field says, whoever sent what: an empty text that may be left out is gone, a status that nobody
//! set is `{}`, a list that must be said is null. Objects have this form from the moment they are
//! decoded ([`crate::strict::decode`]) and get it again after the server changed them ([`complete`]).
//!
//! Empty lists that must be said are null once they are stored ([`store`]), because protobuf loses
//! the difference; definitions and API services are stored as JSON and reviews not at all, so that
//! theirs stay. Until then they are what was sent: who sends an empty list owns it.

use crate::builtin::{Definition, Field, Shape, Type, Written};
use serde_json::{Map, Value};

/// Gives the fields of an object of a built-in kind Go's form: drops what is empty and may be left
/// out, adds what is always written. Types are not looked at; what does not fit stays.
pub fn complete(definition: &Definition, fields: &mut Map<String, Value>) {
    if definition.shape() != Shape::Object {
        return;
    }
    fields.retain(|name, value| {
        let Some(field) = definition.field(name) else { return true };
        if value.is_null() {
            return false;
        }
        complete_value(&field.ty, value);
        settle(field, value)
    });
    fill(definition, fields);
}

fn complete_value(ty: &Type, value: &mut Value) {
    match (ty, value) {
        (Type::Object(_), Value::Object(fields)) => {
            if let Some(definition) = ty.definition() {
                complete(definition, fields);
            }
        }
        (Type::List(element), Value::Array(items)) if holds_objects(element) => {
            for item in items {
                complete_value(element, item);
            }
        }
        (Type::Map(element), Value::Object(entries)) if holds_objects(element) => {
            for entry in entries.values_mut() {
                complete_value(element, entry);
            }
        }
        _ => {}
    }
}

fn holds_objects(element: &Type) -> bool {
    matches!(element, Type::Object(_) | Type::List(_) | Type::Map(_))
}

/// Makes null of the empty lists of an object of a built-in kind in Go's form that do not stay empty
/// lists when they are stored.
pub fn store(definition: &Definition, fields: &mut Map<String, Value>) {
    if definition.shape() != Shape::Object || keeps_empty_lists(definition) {
        return;
    }
    for (name, value) in fields {
        if let Some(field) = definition.field(name) {
            store_value(&field.ty, value);
        }
    }
}

fn store_value(ty: &Type, value: &mut Value) {
    match (ty, value) {
        (Type::Object(_), Value::Object(fields)) => {
            if let Some(definition) = ty.definition() {
                store(definition, fields);
            }
        }
        (Type::List(_), list @ Value::Array(_)) if list.as_array().is_some_and(Vec::is_empty) => {
            *list = Value::Null;
        }
        (Type::List(element), Value::Array(items)) if holds_objects(element) => {
            for item in items {
                store_value(element, item);
            }
        }
        (Type::Map(element), Value::Object(entries)) if matches!(**element, Type::Object(_)) => {
            for entry in entries.values_mut() {
                store_value(element, entry);
            }
        }
        _ => {}
    }
}

/// Whether a value that is not null is written.
pub(crate) fn settle(field: &Field, value: &Value) -> bool {
    let empty = match (&field.ty, value) {
        (Type::List(_), Value::Array(items)) => items.is_empty(),
        (Type::Map(_), Value::Object(entries)) => entries.is_empty(),
        _ if field.pointer => false,
        (Type::String | Type::Bytes, Value::String(text)) => text.is_empty(),
        (Type::Int32 | Type::Int64 | Type::Double, Value::Number(number)) => {
            number.as_f64() == Some(0.0)
        }
        (Type::Boolean, Value::Bool(value)) => !*value,
        _ => false,
    };
    !empty || field.written == Written::Always
}

/// Whether objects of the type's package are not stored as protobuf.
fn keeps_empty_lists(owner: &Definition) -> bool {
    let packages = [
        "apiextensions-apiserver.",
        "kube-aggregator.",
        "api.authentication.",
        "api.authorization.",
    ];
    packages.iter().any(|package| owner.name().starts_with(package))
}

/// Whether a decoded value is an empty list that differs from an absent one until [`complete`]:
/// defaults of autoscalers and generations of network policies look at what was sent.
pub(crate) fn tells_empty(owner: &Definition, value: &Value) -> bool {
    let owners = [
        ".HPAScalingRules",
        ".NetworkPolicyEgressRule",
        ".NetworkPolicyIngressRule",
        ".NetworkPolicySpec",
    ];
    let is_empty = value.as_array().is_some_and(Vec::is_empty);
    is_empty && owners.iter().any(|name| owner.name().ends_with(name))
}

/// Adds the fields that are always written; returns how many were not there.
pub(crate) fn fill(definition: &Definition, fields: &mut Map<String, Value>) -> usize {
    let mut added = 0;
    for field in definition.always_there() {
        if !fields.contains_key(&*field.name) {
            let value = if field.pointer { Value::Null } else { zero(&field.ty) };
            fields.insert(field.name.to_string(), value);
            added += 1;
        }
    }
    added
}

/// What Go writes for the zero value of a type.
pub(crate) fn zero(ty: &Type) -> Value {
    match ty {
        Type::String => "".into(),
        Type::Int32 | Type::Int64 | Type::Double => 0.into(),
        Type::Boolean => false.into(),
        Type::Bytes | Type::List(_) | Type::Map(_) => Value::Null,
        Type::Object(_) => {
            let Some(definition) = ty.definition() else { return Value::Null };
            match definition.shape() {
                Shape::Object => {
                    let mut fields = Map::new();
                    fill(definition, &mut fields);
                    Value::Object(fields)
                }
                Shape::Quantity => "0".into(),
                Shape::IntOrString => 0.into(),
                Shape::ParsedText => definition.text_of_none().into(),
                Shape::FreeObject | Shape::Any | Shape::Time | Shape::MicroTime => Value::Null,
            }
        }
    }
}
