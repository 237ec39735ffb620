//! Objects that were read already, turned into a Go type: the words of Kubernetes' converter, which
//! differ from those of a decoder.

use crate::mismatch::ConvertError;
use mainstay_gocompat::values::memory_kind;
use mainstay_schema::builtin::{self, FieldDefinition, FieldType, TypeDefinition};
use mainstay_schema::gojson;
use serde_json::{Map, Number, Value};

/// What is filled in of a value of a type: all of it, or what comes before the first thing that
/// cannot be turned.
pub(crate) fn filled(value: &Value, definition: &'static TypeDefinition) -> Value {
    let (builtin::JsonForm::Object, Value::Object(fields)) = (definition.json_form(), value) else {
        return if fault(value, definition).is_none() { value.clone() } else { Value::Null };
    };
    let mut out = Map::new();
    for field in definition.declared_fields() {
        let Some(value) = fields.get(&*field.name) else { continue };
        let failed = of_field(value, field, definition).is_some();
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

/// What Go calls that which holds a value, where nothing holds a null and numbers are whole as far as
/// they have no sign.
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
) -> Option<ConvertError> {
    match (wanted, value) {
        (_, Value::Null)
        | ("string", Value::String(_))
        | ("bool", Value::Bool(_))
        | ("float", Value::Number(_)) => None,
        ("string", Value::Number(number)) if whole(number) => {
            Some(ConvertError::ConvertKind { found: "int64", expected: name() })
        }
        ("int", Value::Number(number)) => {
            let fraction = number.as_f64().is_some_and(|float| float.fract() != 0.0);
            fraction.then_some(ConvertError::ConvertKind { found: "float64", expected: name() })
        }
        ("string" | "bool", _) => Some(ConvertError::UnrecognizedType(wanted.to_owned())),
        _ => Some(ConvertError::UnrecognizedType(name())),
    }
}

/// Why a value cannot be turned into a type; none if it can.
pub(crate) fn fault(value: &Value, definition: &'static TypeDefinition) -> Option<ConvertError> {
    use builtin::JsonForm as Form;
    match (definition.json_form(), value) {
        (_, Value::Null) | (Form::FreeObject, _) => None,
        (Form::Object, Value::Object(fields)) => definition.declared_fields().find_map(|field| {
            fields.get(&*field.name).and_then(|value| of_field(value, field, definition))
        }),
        (Form::Object, other) => Some(ConvertError::RestoreStruct { found: go_kind(other) }),
        // Types that read themselves: what a decoder says.
        _ => gojson::check_object(value, definition).err().map(|mismatch| mismatch.reason.into()),
    }
}

fn of_field(
    value: &Value,
    field: &'static FieldDefinition,
    owner: &'static TypeDefinition,
) -> Option<ConvertError> {
    of_type(value, &field.ty, field.type_name.as_deref(), owner)
}

/// `name` is that of the scalar in the type of a field of `owner`, where it has one.
fn of_type(
    value: &Value,
    ty: &'static FieldType,
    name: Option<&str>,
    owner: &'static TypeDefinition,
) -> Option<ConvertError> {
    let named = || builtin::go_type_name(ty, name, owner);
    match (ty, value) {
        (_, Value::Null) | (FieldType::Bytes, Value::String(_)) => None,
        (FieldType::String, value) => simple(value, "string", named),
        (FieldType::Boolean, value) => simple(value, "bool", named),
        (FieldType::Int32 | FieldType::Int64, value) => simple(value, "int", named),
        (FieldType::Double, value) => simple(value, "float", named),
        (FieldType::List(element), Value::Array(items)) => {
            items.iter().find_map(|item| of_type(item, element, name, owner))
        }
        (FieldType::List(_) | FieldType::Bytes, other) => {
            Some(ConvertError::RestoreSlice { found: go_kind(other) })
        }
        (FieldType::Map(element), Value::Object(fields)) => {
            fields.values().find_map(|item| of_type(item, element, name, owner))
        }
        (FieldType::Map(_), other) => Some(ConvertError::RestoreMap { found: go_kind(other) }),
        (FieldType::Object(reference), value) => fault(value, reference.definition()?),
    }
}
