//! From values to upstream's types, as its converter of values in memory does it.
//!
//! It differs from the decoder of JSON texts (`shape.rs`): it stops at the first value that does not
//! fit, says no place, and takes names of fields in one case only.

use crate::{
    mismatch::{ConvertError, TypeError},
    shape::Kind,
    types,
};
use mainstay_gocompat::values::{json_kind, memory_kind};
use mainstay_schema::{builtin, strict};
use serde_json::{Map, Value};

/// Gives a ClusterServiceVersion the form of its type. Fields that are unknown stay.
///
/// # Errors
/// The first value that does not fit, in the order of the type's fields.
pub(super) fn csv(value: &mut Value) -> Result<(), ConvertError> {
    kind(value, &Kind::One(&types::CLUSTER_SERVICE_VERSION))
}

/// Gives a custom resource definition the form of its type, which is that of `v1` for all.
///
/// # Errors
/// The first value that does not fit.
pub(super) fn definition(value: &mut Value) -> Result<(), ConvertError> {
    kube(value, "apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition")
}

fn kube(value: &mut Value, name: &str) -> Result<(), ConvertError> {
    match builtin::definition(name) {
        Some(definition) => strict::decode_merged(definition, value)
            .map(drop)
            .map_err(ConvertError::DecodeKubernetes),
        None => Ok(()),
    }
}

fn kind(value: &mut Value, wanted: &Kind) -> Result<(), ConvertError> {
    match (wanted, &mut *value) {
        (Kind::Raw, _)
        | (Kind::Text | Kind::Named(_), Value::String(_))
        | (Kind::Bool, Value::Bool(_)) => Ok(()),
        (Kind::Int(name), Value::Number(number)) => {
            let fits = number
                .as_i64()
                .is_some_and(|whole| *name != "int32" || i32::try_from(whole).is_ok());
            if fits { Ok(()) } else { Err(cannot_convert(value, name)) }
        }
        (Kind::Text, Value::Number(number)) if number.is_i64() => {
            Err(cannot_convert(value, "string"))
        }
        (Kind::Named(name), Value::Number(number)) if number.is_i64() => {
            Err(cannot_convert(value, name))
        }
        (Kind::Text | Kind::Named(_), _) => Err(ConvertError::UnrecognizedType("string")),
        (Kind::Bool, _) => Err(ConvertError::UnrecognizedType("bool")),
        (Kind::Int(name), _) => Err(ConvertError::UnrecognizedType(name)),
        (Kind::TextMap, Value::Object(fields)) => {
            fields.values_mut().try_for_each(|value| item(value, &Kind::Text))
        }
        (Kind::TextMap, other) => Err(ConvertError::RestoreMap { found: memory_kind(other) }),
        (Kind::One(shape), Value::Object(fields)) => {
            for (name, wanted) in shape.fields {
                match fields.get_mut(*name) {
                    None => {}
                    Some(Value::Null) => drop(fields.remove(*name)),
                    Some(value) => kind(value, wanted)?,
                }
            }
            Ok(())
        }
        (Kind::One(_), other) => Err(ConvertError::RestoreStruct { found: memory_kind(other) }),
        (Kind::Many(element), Value::Array(items)) => {
            items.iter_mut().try_for_each(|value| item(value, element))
        }
        (Kind::Pointers(shape), Value::Array(items)) => {
            items.iter_mut().try_for_each(|value| item(value, &Kind::One(shape)))
        }
        (Kind::Many(_) | Kind::Pointers(_), other) => {
            Err(ConvertError::RestoreSlice { found: memory_kind(other) })
        }
        (Kind::Kube(name), value) => kube(value, name),
        (Kind::Own(read), Value::String(text)) => Ok(read(text).map_err(TypeError::from)?),
        (Kind::Own(_), other) => {
            let (found, expected) = (json_kind(other).to_owned(), "string".to_owned());
            Err(TypeError::WrongValue { found, expected }.into())
        }
    }
}

/// An element of a list or mapping; a null there is the zero value.
fn item(value: &mut Value, wanted: &Kind) -> Result<(), ConvertError> {
    if value.is_null() {
        *value = match wanted {
            Kind::Text | Kind::Named(_) => "".into(),
            Kind::One(_) | Kind::Kube(_) => Value::Object(Map::new()),
            _ => return Ok(()),
        };
    }
    kind(value, wanted)
}

fn cannot_convert(value: &Value, expected: &'static str) -> ConvertError {
    ConvertError::ConvertKind { found: memory_kind(value), expected }
}
