//! Objects that were read already, turned into a Go type: the words of Kubernetes' converter, which
//! differ from those of a decoder.

use crate::decode_error::FromUnstructuredError;
use mainstay_gocompat::values::memory_kind;
use mainstay_schema::builtin::{self, Definition, Field, Type};
use mainstay_schema::gojson;
use serde_json::{Map, Number, Value};

/// What is filled in of a value of a type: all of it, or what comes before the first thing that
/// cannot be turned.
pub(crate) fn filled(value: &Value, definition: &'static Definition) -> Value {
    let (builtin::Shape::Object, Value::Object(fields)) = (definition.shape(), value) else {
        return if fault(value, definition).is_none() { value.clone() } else { Value::Null };
    };
    let mut out = Map::new();
    for field in definition.declared_fields() {
        let Some(value) = fields.get(&*field.name) else { continue };
        let failed = with_field(value, field, definition).is_some();
        let filled = match field.ty.definition() {
            Some(definition) => filled(value, definition),
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

/// What Go calls that which holds a value, where nothing holds a null and numbers are whole as far
/// as they have no sign.
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

/// Why a value is no text, number or truth value. Where Go could convert the one into the other and
/// Kubernetes does not, both are named.
fn simple(
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

/// Why a value cannot be turned into a type; none if it can.
pub(crate) fn fault(
    value: &Value,
    definition: &'static Definition,
) -> Option<FromUnstructuredError> {
    use builtin::Shape as Form;
    match (definition.shape(), value) {
        (_, Value::Null) | (Form::FreeObject, _) => None,
        (Form::Object, Value::Object(fields)) => definition.declared_fields().find_map(|field| {
            fields.get(&*field.name).and_then(|value| with_field(value, field, definition))
        }),
        (Form::Object, other) => {
            Some(FromUnstructuredError::RestoreStruct { found: go_kind(other) })
        }
        // Types that read themselves: what a decoder says.
        _ => gojson::check_object(value, definition).err().map(|mismatch| mismatch.reason.into()),
    }
}

fn with_field(
    value: &Value,
    field: &'static Field,
    owner: &'static Definition,
) -> Option<FromUnstructuredError> {
    of_type(value, &field.ty, field.type_name.as_deref(), owner)
}

/// `name` is that of the scalar in the type of a field of `owner`, where it has one.
fn of_type(
    value: &Value,
    ty: &'static Type,
    name: Option<&str>,
    owner: &'static Definition,
) -> Option<FromUnstructuredError> {
    let named = || builtin::spelled_type(ty, name, owner);
    match (ty, value) {
        (_, Value::Null) | (Type::Bytes, Value::String(_)) => None,
        (Type::String, value) => simple(value, "string", named),
        (Type::Boolean, value) => simple(value, "bool", named),
        (Type::Int32 | Type::Int64, value) => simple(value, "int", named),
        (Type::Double, value) => simple(value, "float", named),
        (Type::List(element), Value::Array(items)) => {
            items.iter().find_map(|item| of_type(item, element, name, owner))
        }
        (Type::List(_) | Type::Bytes, other) => {
            Some(FromUnstructuredError::RestoreSlice { found: go_kind(other) })
        }
        (Type::Map(element), Value::Object(fields)) => {
            fields.values().find_map(|item| of_type(item, element, name, owner))
        }
        (Type::Map(_), other) => Some(FromUnstructuredError::RestoreMap { found: go_kind(other) }),
        (Type::Object(reference), value) => fault(value, reference.definition()?),
    }
}
