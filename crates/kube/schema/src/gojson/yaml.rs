//! Conversion of YAML scalars to strings where the Go type is a string.
//!
//! Upstream's loaders convert YAML to JSON by the Go type: a number or boolean becomes a string if the
//! type is a string. Types that decode themselves are not converted.

use super::declared::DeclaredType;
use crate::builtin::{self, FieldType, TypeDefinition};
use mainstay_gocompat::json::is_same_field;
use mainstay_gocompat::values;
use serde_json::Value;

/// Converts numbers and booleans to strings where a type has strings.
pub fn convert_scalars_to_text(value: &mut Value, ty: &DeclaredType) {
    match (ty, value) {
        (DeclaredType::Text | DeclaredType::Named(_), value) => scalar_to_text(value),
        (DeclaredType::TextMap, Value::Object(fields)) => {
            fields.values_mut().for_each(scalar_to_text);
        }
        (DeclaredType::Struct(declared), Value::Object(fields)) => {
            for (key, value) in fields {
                if let Some((_, ty)) = declared.field(key) {
                    convert_scalars_to_text(value, ty);
                }
            }
        }
        (DeclaredType::List(element), Value::Array(items)) => {
            for item in items {
                convert_scalars_to_text(item, element);
            }
        }
        (DeclaredType::Pointers(declared), Value::Array(items)) => {
            for item in items {
                convert_scalars_to_text(item, &DeclaredType::Struct(declared));
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

fn object(value: &mut Value, definition: &'static TypeDefinition) {
    let (builtin::JsonForm::Object, Value::Object(fields)) = (definition.json_form(), value) else {
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

fn of_type(value: &mut Value, ty: &'static FieldType) {
    match (ty, value) {
        (FieldType::String, value) => scalar_to_text(value),
        (FieldType::List(element), Value::Array(items)) => {
            for item in items {
                of_type(item, element);
            }
        }
        (FieldType::Map(element), Value::Object(fields)) => {
            for item in fields.values_mut() {
                of_type(item, element);
            }
        }
        (FieldType::Object(reference), value) => {
            if let Some(definition) = reference.definition() {
                object(value, definition);
            }
        }
        _ => {}
    }
}

fn scalar_to_text(value: &mut Value) {
    let text = match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) if number.is_u64() => number.to_string(),
        Value::Number(number) => values::number_as_text(number),
        _ => return,
    };
    *value = Value::String(text);
}
