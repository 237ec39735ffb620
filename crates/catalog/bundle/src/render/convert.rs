//! From values to upstream's types, as its converter of values in memory does it.
//!
//! It differs from the decoder of JSON texts (`shape.rs`): it stops at the first value that does not
//! fit, says no place, and takes names of fields in one case only.

use crate::{shape::Kind, types};
use mainstay_gocompat::values::{json_kind, memory_kind};
use mainstay_schema::{builtin, strict};
use serde_json::{Map, Value};

/// Gives a ClusterServiceVersion the form of its type. Fields that are unknown stay.
///
/// # Errors
/// The first value that does not fit, in the order of the type's fields.
pub(super) fn csv(value: &mut Value) -> Result<(), String> {
    kind(value, &Kind::One(&types::CLUSTER_SERVICE_VERSION))
}

/// Gives a custom resource definition the form of its type, which is that of `v1` for all.
///
/// # Errors
/// The first value that does not fit.
pub(super) fn definition(value: &mut Value) -> Result<(), String> {
    kube(value, "apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition")
}

fn kube(value: &mut Value, name: &str) -> Result<(), String> {
    match builtin::definition(name) {
        Some(definition) => strict::decode_merged(definition, value).map(drop),
        None => Ok(()),
    }
}

fn kind(value: &mut Value, wanted: &Kind) -> Result<(), String> {
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
        (Kind::Text | Kind::Named(_), _) => Err("unrecognized type: string".to_owned()),
        (Kind::Bool, _) => Err("unrecognized type: bool".to_owned()),
        (Kind::Int(name), _) => Err(format!("unrecognized type: {name}")),
        (Kind::TextMap, Value::Object(fields)) => {
            fields.values_mut().try_for_each(|value| item(value, &Kind::Text))
        }
        (Kind::TextMap, other) => Err(format!("cannot restore map from {}", memory_kind(other))),
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
        (Kind::One(_), other) => Err(format!("cannot restore struct from: {}", memory_kind(other))),
        (Kind::Many(element), Value::Array(items)) => {
            items.iter_mut().try_for_each(|value| item(value, element))
        }
        (Kind::Pointers(shape), Value::Array(items)) => {
            items.iter_mut().try_for_each(|value| item(value, &Kind::One(shape)))
        }
        (Kind::Many(_) | Kind::Pointers(_), other) => {
            Err(format!("cannot restore slice from {}", memory_kind(other)))
        }
        (Kind::Kube(name), value) => kube(value, name),
        (Kind::Own(read), Value::String(text)) => read(text),
        (Kind::Own(_), other) => {
            Err(format!("json: cannot unmarshal {} into Go value of type string", json_kind(other)))
        }
    }
}

/// An element of a list or mapping; a null there is the zero value.
fn item(value: &mut Value, wanted: &Kind) -> Result<(), String> {
    if value.is_null() {
        *value = match wanted {
            Kind::Text | Kind::Named(_) => "".into(),
            Kind::One(_) | Kind::Kube(_) => Value::Object(Map::new()),
            _ => return Ok(()),
        };
    }
    kind(value, wanted)
}

fn cannot_convert(value: &Value, to: &str) -> String {
    format!("cannot convert {} to {to}", memory_kind(value))
}
