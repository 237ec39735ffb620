//! Scalars of YAML where Go expects texts.
//!
//! Upstream's loaders turn YAML into JSON with an eye on the Go type that is filled: where that is a
//! text, a number or a truth value of the YAML becomes one. Types that read themselves are left
//! alone.

use super::declared::DeclaredType;
use crate::builtin::{self, Definition, Type};
use mainstay_gocompat::json::is_same_field;
use mainstay_gocompat::values;
use serde_json::Value;

/// Makes texts of numbers and truth values where a type has texts.
pub fn texts_where_expected(value: &mut Value, ty: &DeclaredType) {
    match (ty, value) {
        (DeclaredType::Text | DeclaredType::Named(_), value) => text(value),
        (DeclaredType::TextMap, Value::Object(fields)) => fields.values_mut().for_each(text),
        (DeclaredType::Struct(declared), Value::Object(fields)) => {
            for (key, value) in fields {
                if let Some((_, ty)) = declared.field(key) {
                    texts_where_expected(value, ty);
                }
            }
        }
        (DeclaredType::List(element), Value::Array(items)) => {
            for item in items {
                texts_where_expected(item, element);
            }
        }
        (DeclaredType::Pointers(declared), Value::Array(items)) => {
            for item in items {
                texts_where_expected(item, &DeclaredType::Struct(declared));
            }
        }
        (DeclaredType::Table(name), value) => {
            if let Some(definition) = builtin::definition(name) {
                object(value, definition);
            }
        }
        _ => {}
    }
}

fn object(value: &mut Value, definition: &'static Definition) {
    let (builtin::Shape::Object, Value::Object(fields)) = (definition.shape(), value) else {
        return;
    };
    for (key, value) in fields {
        let in_any_case =
            || definition.fields().iter().find(|field| is_same_field(key, &field.name));
        if let Some(field) = definition.field(key).or_else(in_any_case) {
            of_type(value, &field.ty);
        }
    }
}

fn of_type(value: &mut Value, ty: &'static Type) {
    match (ty, value) {
        (Type::String, value) => text(value),
        (Type::List(element), Value::Array(items)) => {
            for item in items {
                of_type(item, element);
            }
        }
        (Type::Map(element), Value::Object(fields)) => {
            for item in fields.values_mut() {
                of_type(item, element);
            }
        }
        (Type::Object(reference), value) => {
            if let Some(definition) = reference.definition() {
                object(value, definition);
            }
        }
        _ => {}
    }
}

fn text(value: &mut Value) {
    let words = match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) if number.is_u64() => number.to_string(),
        Value::Number(number) => values::number_as_text(number),
        _ => return,
    };
    *value = Value::String(words);
}
