//! From JSON to the message that Go would write.

use super::wire::{put_bytes, put_fixed64, put_varint};
use super::{MAGIC, MAX_DEPTH, ProtobufError};
use crate::builtin::{Definition, Field, Shape, Type};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Writes an object of a type as a message. It must have the form that [`crate::strict::decode`]
/// leaves.
///
/// # Errors
/// A value does not have the form of its type.
pub fn encode(
    definition: &Definition,
    fields: &Map<String, Value>,
) -> Result<Vec<u8>, ProtobufError> {
    let mut out = Vec::new();
    message(definition, &[], fields, &mut out, 0)?;
    Ok(out)
}

/// Puts a message into the envelope of a body.
pub fn wrap(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut meta = Vec::new();
    put_bytes(&mut meta, 1, api_version.as_bytes());
    put_bytes(&mut meta, 2, kind.as_bytes());
    let mut out = MAGIC.to_vec();
    put_bytes(&mut out, 1, &meta);
    put_bytes(&mut out, 2, raw);
    put_bytes(&mut out, 3, &[]);
    put_bytes(&mut out, 4, &[]);
    out
}

/// An event of a watch behind its length, about an object in its envelope.
pub fn event(kind: &str, object: &[u8]) -> Vec<u8> {
    let (mut extension, mut event) = (Vec::new(), Vec::new());
    put_bytes(&mut extension, 1, object);
    put_bytes(&mut event, 1, kind.as_bytes());
    put_bytes(&mut event, 2, &extension);
    // Objects have some megabytes at most.
    let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
    let mut out = length.to_be_bytes().to_vec();
    out.append(&mut event);
    out
}

fn message(
    definition: &Definition,
    path: &[u32],
    fields: &Map<String, Value>,
    out: &mut Vec<u8>,
    depth: usize,
) -> Result<(), ProtobufError> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::TooDeep);
    }
    // One entry for each tag of this message: a field, or what is embedded there.
    let mut tags: Vec<(u32, Option<&Field>)> = Vec::with_capacity(definition.fields().len());
    for field in definition.fields() {
        let Some([tag, rest @ ..]) = field.tags.strip_prefix(path) else { continue };
        tags.push((*tag, rest.is_empty().then_some(field)));
    }
    tags.sort_by_key(|(tag, _)| *tag);
    tags.dedup_by_key(|(tag, _)| *tag);
    for (tag, field) in tags {
        let Some(field) = field else {
            let mut inner = Vec::new();
            let below: Vec<u32> = path.iter().copied().chain([tag]).collect();
            message(definition, &below, fields, &mut inner, depth + 1)?;
            put_bytes(out, tag, &inner);
            continue;
        };
        let zero;
        let value = match fields.get(&*field.name).filter(|value| !value.is_null()) {
            Some(value) => value,
            None if field.pointer => continue,
            None => {
                zero = crate::form::zero(&field.ty);
                &zero
            }
        };
        put(&field.ty, tag, value, &field.name, out, depth)?;
    }
    Ok(())
}

/// Writes a value with its tag; lists once for each element, null lists not at all.
fn put(
    ty: &Type,
    tag: u32,
    value: &Value,
    field: &str,
    out: &mut Vec<u8>,
    depth: usize,
) -> Result<(), ProtobufError> {
    let wrong = || ProtobufError::Unencodable(field.to_owned());
    match (ty, value) {
        (Type::List(_) | Type::Map(_) | Type::Bytes, Value::Null) => {}
        (Type::String, Value::String(text)) => put_bytes(out, tag, text.as_bytes()),
        (Type::Bytes, Value::String(text)) => {
            put_bytes(out, tag, &STANDARD.decode(text).map_err(|_| wrong())?);
        }
        (Type::Int32 | Type::Int64, Value::Number(number)) => {
            put_varint(out, tag, number.as_i64().ok_or_else(wrong)?.cast_unsigned());
        }
        (Type::Boolean, Value::Bool(value)) => put_varint(out, tag, (*value).into()),
        (Type::Double, Value::Number(number)) => {
            put_fixed64(out, tag, number.as_f64().ok_or_else(wrong)?.to_bits());
        }
        (Type::List(element), Value::Array(items)) => {
            for item in items {
                put(element, tag, item, field, out, depth)?;
            }
        }
        (Type::Map(element), Value::Object(entries)) => {
            for (key, item) in entries {
                let mut entry = Vec::new();
                put_bytes(&mut entry, 1, key.as_bytes());
                if matches!(**element, Type::List(_)) {
                    // A list cannot be the value of a map: it stands in a message of its own.
                    let mut inner = Vec::new();
                    put(element, 1, item, field, &mut inner, depth)?;
                    put_bytes(&mut entry, 2, &inner);
                } else {
                    put(element, 2, item, field, &mut entry, depth)?;
                }
                put_bytes(out, tag, &entry);
            }
        }
        (Type::Object(_), _) => {
            let definition = ty.definition().ok_or_else(wrong)?;
            put_bytes(out, tag, &object(definition, value, field, depth + 1)?);
        }
        _ => return Err(wrong()),
    }
    Ok(())
}

fn object(
    definition: &Definition,
    value: &Value,
    field: &str,
    depth: usize,
) -> Result<Vec<u8>, ProtobufError> {
    let wrong = || ProtobufError::Unencodable(field.to_owned());
    let mut out = Vec::new();
    match (definition.shape(), value) {
        (Shape::Object, Value::Object(fields)) => {
            message(definition, &[], fields, &mut out, depth)?;
        }
        (Shape::Time | Shape::MicroTime | Shape::FreeObject, Value::Null) => {}
        (Shape::Time | Shape::MicroTime, Value::String(text)) => {
            let time: jiff::Timestamp = text.parse().map_err(|_| wrong())?;
            put_varint(&mut out, 1, time.as_second().cast_unsigned());
            put_varint(&mut out, 2, i64::from(time.subsec_nanosecond()).cast_unsigned());
        }
        (Shape::IntOrString, value) => {
            let text = value.as_str();
            put_varint(&mut out, 1, text.is_some().into());
            put_varint(&mut out, 2, value.as_i64().unwrap_or_default().cast_unsigned());
            put_bytes(&mut out, 3, text.unwrap_or_default().as_bytes());
        }
        (Shape::Quantity, Value::String(text)) => put_bytes(&mut out, 1, text.as_bytes()),
        (Shape::FreeObject, _) if definition.short_name() == "CustomResourceSubresourceStatus" => {}
        (Shape::FreeObject, value) => put_bytes(&mut out, 1, value.to_string().as_bytes()),
        (Shape::Any, value) => schema_part(definition, value, field, &mut out, depth)?,
        _ => return Err(wrong()),
    }
    Ok(out)
}

/// The parts of a definition's schema that may be one thing or another.
fn schema_part(
    definition: &Definition,
    value: &Value,
    field: &str,
    out: &mut Vec<u8>,
    depth: usize,
) -> Result<(), ProtobufError> {
    let wrong = || ProtobufError::Unencodable(field.to_owned());
    let name = definition.short_name();
    let package = definition.name().rsplit_once('.').map_or("", |parts| parts.0);
    let props = crate::builtin::definition(&format!("{package}.JSONSchemaProps"));
    let schema = |value: &Value| match props {
        Some(definition) => object(definition, value, field, depth + 1),
        None => Err(wrong()),
    };
    match (name, value) {
        ("JSON", value) => put_bytes(out, 1, value.to_string().as_bytes()),
        ("JSONSchemaPropsOrBool", Value::Bool(allows)) => put_varint(out, 1, (*allows).into()),
        ("JSONSchemaPropsOrBool", value) => {
            put_varint(out, 1, 1);
            put_bytes(out, 2, &schema(value)?);
        }
        ("JSONSchemaPropsOrStringArray", Value::Array(items)) => {
            for item in items {
                put_bytes(out, 2, item.as_str().ok_or_else(wrong)?.as_bytes());
            }
        }
        (_, Value::Array(items)) => {
            for item in items {
                put_bytes(out, 2, &schema(item)?);
            }
        }
        (_, value) => put_bytes(out, 1, &schema(value)?),
    }
    Ok(())
}
