//! Objects that were read already, turned into a Go type: the words of Kubernetes' converter, which
//! differ from those of a decoder.

use crate::{
    mismatch::{ConvertError, TypeError},
    shape::{self, Kind},
};
use mainstay_gocompat::values::{json_kind, memory_kind};
use mainstay_schema::builtin::{self, Type};
use serde_json::{Map, Number, Value};

/// Why a value cannot be turned into the kind; none if it can.
pub(crate) fn fault(value: &Value, kind: &Kind) -> Option<ConvertError> {
    match (kind, value) {
        (Kind::Raw, _) | (_, Value::Null) => None,
        (Kind::Text, value) => simple(value, "string", "string"),
        (Kind::Named(name), value) => simple(value, "string", name),
        (Kind::Bool, value) => simple(value, "bool", "bool"),
        (Kind::Int(name), value) => simple(value, "int", name),
        (Kind::TextMap, Value::Object(fields)) => {
            fields.values().find_map(|value| fault(value, &Kind::Text))
        }
        (Kind::TextMap, other) => Some(ConvertError::RestoreMap { found: go_kind(other) }),
        (Kind::One(shape), Value::Object(fields)) => shape
            .fields
            .iter()
            .find_map(|(name, kind)| fields.get(*name).and_then(|value| fault(value, kind))),
        (Kind::One(_), other) => Some(ConvertError::RestoreStruct { found: go_kind(other) }),
        (Kind::Many(element), Value::Array(items)) => {
            items.iter().find_map(|item| fault(item, element))
        }
        (Kind::Pointers(shape), Value::Array(items)) => {
            items.iter().find_map(|item| fault(item, &Kind::One(shape)))
        }
        (Kind::Many(_) | Kind::Pointers(_), other) => {
            Some(ConvertError::RestoreSlice { found: go_kind(other) })
        }
        (Kind::Kube(name), value) => of_kube(value, builtin::definition(name)?),
        (Kind::Own(read), Value::String(text)) => {
            read(text).err().map(|error| TypeError::from(error).into())
        }
        (Kind::Own(_), other) => {
            let (found, expected) = (json_kind(other).to_owned(), "string".to_owned());
            Some(TypeError::WrongValue { found, expected }.into())
        }
    }
}

/// What is filled in of a value of the kind: all of it, or what comes before the first thing that
/// cannot be turned.
pub(crate) fn filled(value: &Value, kind: &Kind) -> Value {
    let mut out = Map::new();
    match (kind, value) {
        (Kind::One(shape), Value::Object(fields)) => {
            for (name, kind) in shape.fields {
                let Some(value) = fields.get(*name) else { continue };
                let failed = fault(value, kind).is_some();
                out.insert((*name).to_owned(), filled(value, kind));
                if failed {
                    break;
                }
            }
        }
        (Kind::Kube(name), Value::Object(fields)) => {
            let definition = builtin::definition(name);
            let sound = |(name, value): &(&String, &Value)| {
                let field = definition.and_then(|it| it.field(name));
                field.is_none_or(|field| of_type(value, &field.ty).is_none())
            };
            let sound = fields.iter().filter(sound);
            out.extend(sound.map(|(name, value)| (name.clone(), value.clone())));
        }
        (kind, value) if fault(value, kind).is_none() => return value.clone(),
        _ => return Value::Null,
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
fn simple(value: &Value, wanted: &'static str, name: &'static str) -> Option<ConvertError> {
    match (wanted, value) {
        (_, Value::Null)
        | ("string", Value::String(_))
        | ("bool", Value::Bool(_))
        | ("float", Value::Number(_)) => None,
        ("string", Value::Number(number)) if whole(number) => {
            Some(ConvertError::ConvertKind { found: "int64", expected: name })
        }
        ("int", Value::Number(number)) => {
            let fraction = number.as_f64().is_some_and(|it| it.fract() != 0.0);
            fraction.then_some(ConvertError::ConvertKind { found: "float64", expected: name })
        }
        ("string" | "bool", _) => Some(ConvertError::UnrecognizedType(wanted)),
        _ => Some(ConvertError::UnrecognizedType(name)),
    }
}

fn of_kube(value: &Value, definition: &'static builtin::Definition) -> Option<ConvertError> {
    use builtin::Shape as Form;
    match (definition.shape(), value) {
        (_, Value::Null) | (Form::FreeObject, _) => None,
        (Form::Object, Value::Object(fields)) => definition
            .fields()
            .iter()
            .find_map(|field| fields.get(&*field.name).and_then(|value| of_type(value, &field.ty))),
        (Form::Object, other) => Some(ConvertError::RestoreStruct { found: go_kind(other) }),
        // Types that read themselves: what a decoder says.
        _ => shape::check_object(value, definition).err().map(|mismatch| mismatch.reason.into()),
    }
}

fn of_type(value: &Value, ty: &'static Type) -> Option<ConvertError> {
    match (ty, value) {
        (_, Value::Null) | (Type::Bytes, Value::String(_)) => None,
        (Type::String, value) => simple(value, "string", "string"),
        (Type::Boolean, value) => simple(value, "bool", "bool"),
        (Type::Int32, value) => simple(value, "int", "int32"),
        (Type::Int64, value) => simple(value, "int", "int64"),
        (Type::Double, value) => simple(value, "float", "float64"),
        (Type::List(element), Value::Array(items)) => {
            items.iter().find_map(|item| of_type(item, element))
        }
        (Type::List(_) | Type::Bytes, other) => {
            Some(ConvertError::RestoreSlice { found: go_kind(other) })
        }
        (Type::Map(element), Value::Object(fields)) => {
            fields.values().find_map(|item| of_type(item, element))
        }
        (Type::Map(_), other) => Some(ConvertError::RestoreMap { found: go_kind(other) }),
        (Type::Object(reference), value) => of_kube(value, reference.definition()?),
    }
}
