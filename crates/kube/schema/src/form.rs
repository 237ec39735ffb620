//! Go's JSON form of built-in objects: the empty values that a response contains.
//!
//! Upstream stores Go structs, not JSON. The tags of a struct field decide whether its empty value is
//! written, whatever a client sent: an `omitempty` string disappears, an unset status is `{}`, a list
//! without `omitempty` is null. Decoding ([`crate::strict::decode`]) gives objects this form, and
//! [`complete`] restores it after the server changed them.
//!
//! A stored empty list without `omitempty` becomes null ([`nullify_empty_lists`]), because protobuf
//! loses the difference. CRDs and APIServices are stored as JSON, and reviews are not stored, so
//! theirs stay. Before it is stored, a list stays as sent: the sender of an empty list owns it.

use crate::builtin::{FieldDefinition, FieldType, JsonForm, OmitRule, TypeDefinition};
use serde_json::{Map, Value};

/// Gives the fields of a built-in object Go's form: drops empty values that Go omits, adds fields that
/// Go always writes. Types are not checked; a value of a wrong type stays.
pub fn complete(definition: &TypeDefinition, fields: &mut Map<String, Value>) {
    if definition.json_form() != JsonForm::Object {
        return;
    }
    fields.retain(|name, value| {
        let Some(field) = definition.field(name) else { return true };
        if value.is_null() {
            return false;
        }
        complete_value(&field.ty, value);
        is_written(field, value)
    });
    add_always_written(definition, fields);
}

fn complete_value(ty: &FieldType, value: &mut Value) {
    match (ty, value) {
        (FieldType::Object(_), Value::Object(fields)) => {
            if let Some(definition) = ty.definition() {
                complete(definition, fields);
            }
        }
        (FieldType::List(element), Value::Array(items)) if holds_objects(element) => {
            for item in items {
                complete_value(element, item);
            }
        }
        (FieldType::Map(element), Value::Object(entries)) if holds_objects(element) => {
            for entry in entries.values_mut() {
                complete_value(element, entry);
            }
        }
        _ => {}
    }
}

fn holds_objects(element: &FieldType) -> bool {
    matches!(element, FieldType::Object(_) | FieldType::List(_) | FieldType::Map(_))
}

/// Replaces the empty lists of a built-in object in Go's form by null, if its kind is stored as
/// protobuf.
pub fn nullify_empty_lists(definition: &TypeDefinition, fields: &mut Map<String, Value>) {
    if definition.json_form() != JsonForm::Object || keeps_empty_lists(definition) {
        return;
    }
    for (name, value) in fields {
        if let Some(field) = definition.field(name) {
            nullify_in_value(&field.ty, value);
        }
    }
}

fn nullify_in_value(ty: &FieldType, value: &mut Value) {
    match (ty, value) {
        (FieldType::Object(_), Value::Object(fields)) => {
            if let Some(definition) = ty.definition() {
                nullify_empty_lists(definition, fields);
            }
        }
        (FieldType::List(_), list @ Value::Array(_))
            if list.as_array().is_some_and(Vec::is_empty) =>
        {
            *list = Value::Null;
        }
        (FieldType::List(element), Value::Array(items)) if holds_objects(element) => {
            for item in items {
                nullify_in_value(element, item);
            }
        }
        (FieldType::Map(element), Value::Object(entries))
            if matches!(**element, FieldType::Object(_)) =>
        {
            for entry in entries.values_mut() {
                nullify_in_value(element, entry);
            }
        }
        _ => {}
    }
}

/// Whether Go writes a value that is not null.
pub(crate) fn is_written(field: &FieldDefinition, value: &Value) -> bool {
    let is_empty = match (&field.ty, value) {
        (FieldType::List(_), Value::Array(items)) => items.is_empty(),
        (FieldType::Map(_), Value::Object(entries)) => entries.is_empty(),
        _ if field.pointer => false,
        (FieldType::String | FieldType::Bytes, Value::String(text)) => text.is_empty(),
        (FieldType::Int32 | FieldType::Int64 | FieldType::Double, Value::Number(number)) => {
            number.as_f64() == Some(0.0)
        }
        (FieldType::Boolean, Value::Bool(value)) => !*value,
        _ => false,
    };
    !is_empty || field.omit == OmitRule::Never
}

/// Whether objects of the type's package are not stored as protobuf, so that empty lists stay.
fn keeps_empty_lists(owner: &TypeDefinition) -> bool {
    let packages = [
        "apiextensions-apiserver.",
        "kube-aggregator.",
        "api.authentication.",
        "api.authorization.",
    ];
    packages.iter().any(|package| owner.name().starts_with(package))
}

/// Whether a decoded value is an empty list that must stay until [`complete`]: defaulting of
/// autoscalers and generations of NetworkPolicies distinguish it from an absent one.
pub(crate) fn is_significant_empty_list(owner: &TypeDefinition, value: &Value) -> bool {
    let owners = [
        ".HPAScalingRules",
        ".NetworkPolicyEgressRule",
        ".NetworkPolicyIngressRule",
        ".NetworkPolicySpec",
    ];
    let is_empty = value.as_array().is_some_and(Vec::is_empty);
    is_empty && owners.iter().any(|name| owner.name().ends_with(name))
}

/// Adds the missing fields that Go always writes; returns their number.
pub(crate) fn add_always_written(
    definition: &TypeDefinition,
    fields: &mut Map<String, Value>,
) -> usize {
    let mut added = 0;
    for field in definition.always_written() {
        if !fields.contains_key(&*field.name) {
            let value = if field.pointer { Value::Null } else { zero(&field.ty) };
            fields.insert(field.name.to_string(), value);
            added += 1;
        }
    }
    added
}

/// The JSON of the zero value of a type.
pub(crate) fn zero(ty: &FieldType) -> Value {
    match ty {
        FieldType::String => "".into(),
        FieldType::Int32 | FieldType::Int64 | FieldType::Double => 0.into(),
        FieldType::Boolean => false.into(),
        FieldType::Bytes | FieldType::List(_) | FieldType::Map(_) => Value::Null,
        FieldType::Object(_) => {
            let Some(definition) = ty.definition() else { return Value::Null };
            match definition.json_form() {
                JsonForm::Object => {
                    let mut fields = Map::new();
                    add_always_written(definition, &mut fields);
                    Value::Object(fields)
                }
                JsonForm::Quantity => "0".into(),
                JsonForm::IntOrString => 0.into(),
                JsonForm::ParsedText => definition.zero_text().into(),
                JsonForm::FreeObject | JsonForm::Any | JsonForm::Time | JsonForm::MicroTime => {
                    Value::Null
                }
            }
        }
    }
}
