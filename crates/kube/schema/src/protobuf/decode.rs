//! From a message to JSON.

use super::wire::{Reader, Wire};
use super::{MAX_DEPTH, ProtobufError};
use crate::builtin::{Definition, Shape, Type};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

/// Reads a message of a type. What the type does not know is skipped; what the message does not say
/// is absent.
///
/// # Errors
/// Bytes that are no message of the type.
pub fn decode(definition: &Definition, data: &[u8]) -> Result<Value, ProtobufError> {
    let mut fields = Map::new();
    message(definition, &mut Vec::new(), data, &mut fields, 0)?;
    Ok(Value::Object(fields))
}

/// Reads the fields of a message into those of an object. `path` are the tags of the messages that
/// the present one is embedded in.
fn message(
    definition: &Definition,
    path: &mut Vec<u32>,
    data: &[u8],
    into: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), ProtobufError> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::TooDeep);
    }
    let mut reader = Reader::new(data, definition.short_name());
    while let Some((tag, wire)) = reader.next()? {
        path.push(tag);
        let field = definition.fields().iter().find(|field| field.tags.starts_with(path));
        let Some(field) = field else {
            wire.skip()?;
            path.pop();
            continue;
        };
        if field.tags.len() == path.len() {
            let slot = into.entry(&*field.name).or_insert(Value::Null);
            value(&field.ty, wire, &field.name, slot, depth)?;
        } else {
            message(definition, path, wire.bytes(&field.name)?, into, depth + 1)?;
        }
        path.pop();
    }
    Ok(())
}

/// Reads a value. What is there already, of a list, a map or a message in several parts, is added to.
fn value(
    ty: &Type,
    wire: Wire<'_>,
    field: &str,
    slot: &mut Value,
    depth: usize,
) -> Result<(), ProtobufError> {
    *slot = match ty {
        Type::String => text(wire.bytes(field)?),
        Type::Bytes => STANDARD.encode(wire.bytes(field)?).into(),
        Type::Int32 | Type::Int64 => integer(ty, wire.varint(field)?),
        Type::Boolean => (wire.varint(field)? != 0).into(),
        Type::Double => double(wire.fixed64(field)?),
        Type::List(element) => {
            let mut items = match slot.take() {
                Value::Array(items) => items,
                _ => Vec::new(),
            };
            if let (Type::Int32 | Type::Int64, Wire::Bytes(packed)) = (&**element, wire) {
                // Numbers may also come packed.
                let mut reader = Reader::new(packed, field);
                while !reader.is_empty() {
                    items.push(integer(element, reader.number()?));
                }
            } else {
                let mut item = Value::Null;
                value(element, wire, field, &mut item, depth)?;
                items.push(item);
            }
            Value::Array(items)
        }
        Type::Map(element) => {
            let mut entries = match slot.take() {
                Value::Object(entries) => entries,
                _ => Map::new(),
            };
            let (key, item) = entry(element, wire.bytes(field)?, field, depth)?;
            entries.insert(key, item);
            Value::Object(entries)
        }
        Type::Object(_) => {
            let data = wire.bytes(field)?;
            let Some(definition) = ty.definition() else { return Ok(()) };
            let before = slot.take();
            object(definition, data, before, depth + 1)?
        }
    };
    Ok(())
}

/// An entry of a map: a message of key and value.
fn entry(
    element: &Type,
    data: &[u8],
    field: &str,
    depth: usize,
) -> Result<(String, Value), ProtobufError> {
    let mut reader = Reader::new(data, field);
    let mut key = String::new();
    let mut item = match element {
        Type::String | Type::Bytes => "".into(),
        Type::Object(_) => crate::form::zero(element),
        _ => Value::Null,
    };
    while let Some((tag, wire)) = reader.next()? {
        match (tag, element) {
            (1, _) => key = String::from_utf8_lossy(wire.bytes(field)?).into_owned(),
            // A list cannot be the value of a map: it stands in a message of its own.
            (2, Type::List(_)) => {
                let mut inner = Reader::new(wire.bytes(field)?, field);
                while let Some((tag, wire)) = inner.next()? {
                    if tag == 1 {
                        value(element, wire, field, &mut item, depth + 1)?;
                    }
                }
            }
            (2, _) => value(element, wire, field, &mut item, depth)?,
            _ => wire.skip()?,
        }
    }
    Ok((key, item))
}

fn text(bytes: &[u8]) -> Value {
    String::from_utf8_lossy(bytes).into()
}

fn integer(ty: &Type, number: u64) -> Value {
    let number = number.cast_signed();
    if matches!(ty, Type::Int32) {
        #[expect(clippy::cast_possible_truncation, reason = "as the original's")]
        return (number as i32).into();
    }
    number.into()
}

fn double(bits: u64) -> Value {
    Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number)
}

fn object(
    definition: &Definition,
    data: &[u8],
    before: Value,
    depth: usize,
) -> Result<Value, ProtobufError> {
    match definition.shape() {
        Shape::Object => {
            let mut fields = match before {
                Value::Object(fields) => fields,
                _ => Map::new(),
            };
            message(definition, &mut Vec::new(), data, &mut fields, depth)?;
            Ok(Value::Object(fields))
        }
        Shape::Time | Shape::MicroTime => time(data, definition.shape() == Shape::MicroTime),
        Shape::IntOrString => int_or_string(data),
        Shape::Quantity => Ok(single(data, definition)?.map_or_else(|| "0".into(), text)),
        Shape::ParsedText => Ok(single(data, definition)?.map_or(Value::Null, text)),
        Shape::FreeObject if definition.short_name() == "CustomResourceSubresourceStatus" => {
            Ok(Value::Object(Map::new()))
        }
        Shape::FreeObject => raw(data, definition),
        Shape::Any => schema_part(definition, data, depth),
    }
}

/// The bytes of a message that has one field of them.
fn single<'a>(
    data: &'a [u8],
    definition: &'a Definition,
) -> Result<Option<&'a [u8]>, ProtobufError> {
    let mut found = None;
    let mut reader = Reader::new(data, definition.short_name());
    while let Some((tag, wire)) = reader.next()? {
        if tag == 1 {
            found = Some(wire.bytes("Raw")?);
        }
    }
    Ok(found)
}

/// JSON inside of protobuf.
fn raw(data: &[u8], definition: &Definition) -> Result<Value, ProtobufError> {
    match single(data, definition)? {
        None | Some([]) => Ok(Value::Null),
        Some(json) => {
            serde_json::from_slice(json).map_err(|error| ProtobufError::NotJson(error.to_string()))
        }
    }
}

fn time(data: &[u8], micro: bool) -> Result<Value, ProtobufError> {
    if data.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(data, "Timestamp");
    while let Some((tag, wire)) = reader.next()? {
        match tag {
            1 => seconds = wire.varint("Seconds")?.cast_signed(),
            #[expect(clippy::cast_possible_truncation, reason = "as the original's")]
            2 => nanos = wire.varint("Nanos")?.cast_signed() as i32,
            _ => wire.skip()?,
        }
    }
    let time = jiff::Timestamp::new(seconds, nanos).map_err(|_| ProtobufError::TimeRange)?;
    let form = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(time.to_zoned(jiff::tz::TimeZone::UTC).strftime(form).to_string().into())
}

fn int_or_string(data: &[u8]) -> Result<Value, ProtobufError> {
    let (mut is_text, mut number, mut words) = (false, Value::from(0), Value::from(""));
    let mut reader = Reader::new(data, "IntOrString");
    while let Some((tag, wire)) = reader.next()? {
        match tag {
            1 => is_text = wire.varint("Type")? == 1,
            2 => number = integer(&Type::Int32, wire.varint("IntVal")?),
            3 => words = text(wire.bytes("StrVal")?),
            _ => wire.skip()?,
        }
    }
    Ok(if is_text { words } else { number })
}

/// The parts of a definition's schema that may be one thing or another.
fn schema_part(definition: &Definition, data: &[u8], depth: usize) -> Result<Value, ProtobufError> {
    let name = definition.short_name();
    if name == "JSON" {
        return raw(data, definition);
    }
    let schema_tag = if name == "JSONSchemaPropsOrBool" { 2 } else { 1 };
    let mut schema = None;
    let mut other = (name == "JSONSchemaPropsOrBool").then_some(Value::Bool(false));
    let mut reader = Reader::new(data, name);
    while let Some((tag, wire)) = reader.next()? {
        if tag == schema_tag {
            schema = Some(props(definition, wire.bytes("Schema")?, depth)?);
        } else if name == "JSONSchemaPropsOrBool" && tag == 1 {
            other = Some((wire.varint("Allows")? != 0).into());
        } else if tag == 2 {
            let bytes = wire.bytes("JSONSchemas")?;
            let item = match name {
                "JSONSchemaPropsOrStringArray" => text(bytes),
                _ => props(definition, bytes, depth)?,
            };
            if let Value::Array(items) = other.get_or_insert_with(|| Value::Array(Vec::new())) {
                items.push(item);
            }
        }
    }
    Ok(schema.or(other).unwrap_or_default())
}

/// A schema, of the version that the part belongs to.
fn props(part: &Definition, data: &[u8], depth: usize) -> Result<Value, ProtobufError> {
    let package = part.name().rsplit_once('.').map_or("", |parts| parts.0);
    match crate::builtin::definition(&format!("{package}.JSONSchemaProps")) {
        Some(definition) => object(definition, data, Value::Null, depth + 1),
        None => Ok(Value::Null),
    }
}
