//! Conversion of decoded objects to a Go type, with the messages of Kubernetes' unstructured
//! converter. They differ from those of a decoder.

use crate::decode_error::FromUnstructuredError;
use mainstay_gocompat::values::memory_kind;
use mainstay_schema::builtin::{self, FieldDefinition, FieldType, TypeDefinition};
use mainstay_schema::gojson;
use serde_json::{Map, Number, Value};

/// The converted value: all fields, or those before the first field that cannot be converted.
pub(crate) fn convert_prefix(value: &Value, definition: &'static TypeDefinition) -> Value {
    let (builtin::JsonForm::Object, Value::Object(fields)) = (definition.json_form(), value) else {
        return if convert_error(value, definition).is_none() {
            value.clone()
        } else {
            Value::Null
        };
    };
    let mut out = Map::new();
    for field in definition.declared_fields() {
        let Some(value) = fields.get(&*field.name) else { continue };
        let failed = with_field(value, field, definition).is_some();
        let filled = match field.ty.definition() {
            Some(definition) => convert_prefix(value, definition),
            None if failed => Value::Null,
            None => value.clone(),
        };
        out.insert(field.name.to_string(), filled);
        if failed {
            break;
        }
    }
    Value::Object(out)
}

/// Go's name for the kind of a value: null is `invalid`, and each integer is `int64`.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Number(number) if whole(number) => "int64",
        other => memory_kind(other),
    }
}

fn whole(number: &Number) -> bool {
    number.is_i64() || number.is_u64()
}

/// Why a value cannot be converted to a scalar type. If Go could convert it and Kubernetes does
/// not, the error names both kinds.
fn scalar_error(
    value: &Value,
    wanted: &'static str,
    name: impl FnOnce() -> String,
) -> Option<FromUnstructuredError> {
    match (wanted, value) {
        (_, Value::Null)
        | ("string", Value::String(_))
        | ("bool", Value::Bool(_))
        | ("float", Value::Number(_)) => None,
        ("string", Value::Number(number)) if whole(number) => {
            Some(FromUnstructuredError::ConvertKind { found: "int64", expected: name() })
        }
        ("int", Value::Number(number)) => {
            let fraction = number.as_f64().is_some_and(|float| float.fract() != 0.0);
            fraction.then_some(FromUnstructuredError::ConvertKind {
                found: "float64",
                expected: name(),
            })
        }
        ("string" | "bool", _) => Some(FromUnstructuredError::UnrecognizedType(wanted.to_owned())),
        _ => Some(FromUnstructuredError::UnrecognizedType(name())),
    }
}

/// Why a value cannot be converted to a type; none if it can.
pub(crate) fn convert_error(
    value: &Value,
    definition: &'static TypeDefinition,
) -> Option<FromUnstructuredError> {
    use builtin::JsonForm as Form;
    match (definition.json_form(), value) {
        (_, Value::Null) | (Form::FreeObject, _) => None,
        (Form::Object, Value::Object(fields)) => definition.declared_fields().find_map(|field| {
            fields.get(&*field.name).and_then(|value| with_field(value, field, definition))
        }),
        (Form::Object, other) => {
            Some(FromUnstructuredError::RestoreStruct { found: go_kind(other) })
        }
        // Types with their own decoder have the decoder's errors.
        _ => gojson::check_object(value, definition).err().map(|mismatch| mismatch.reason.into()),
    }
}

fn with_field(
    value: &Value,
    field: &'static FieldDefinition,
    owner: &'static TypeDefinition,
) -> Option<FromUnstructuredError> {
    type_error(value, &field.ty, field.type_name.as_deref(), owner)
}

/// `name` is the named scalar type of a field of `owner`, if it has one.
fn type_error(
    value: &Value,
    ty: &'static FieldType,
    name: Option<&str>,
    owner: &'static TypeDefinition,
) -> Option<FromUnstructuredError> {
    let named = || builtin::go_type_name(ty, name, owner);
    match (ty, value) {
        (_, Value::Null) | (FieldType::Bytes, Value::String(_)) => None,
        (FieldType::String, value) => scalar_error(value, "string", named),
        (FieldType::Boolean, value) => scalar_error(value, "bool", named),
        (FieldType::Int32 | FieldType::Int64, value) => scalar_error(value, "int", named),
        (FieldType::Double, value) => scalar_error(value, "float", named),
        (FieldType::List(element), Value::Array(items)) => {
            items.iter().find_map(|item| type_error(item, element, name, owner))
        }
        (FieldType::List(_) | FieldType::Bytes, other) => {
            Some(FromUnstructuredError::RestoreSlice { found: go_kind(other) })
        }
        (FieldType::Map(element), Value::Object(fields)) => {
            fields.values().find_map(|item| type_error(item, element, name, owner))
        }
        (FieldType::Map(_), other) => {
            Some(FromUnstructuredError::RestoreMap { found: go_kind(other) })
        }
        (FieldType::Object(reference), value) => convert_error(value, reference.definition()?),
    }
}
