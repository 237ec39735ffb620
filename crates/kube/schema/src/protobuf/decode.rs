//! Decoder from a protobuf message to JSON.

use super::wire::{Reader, Wire};
use super::{MAX_DEPTH, ProtobufError};
use crate::builtin::{FieldType, JsonForm, TypeDefinition};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

/// Decodes a message of a type. Unknown fields are skipped; fields that the message does not have are
/// absent.
///
/// # Errors
/// If the bytes are no message of the type.
pub fn decode(definition: &TypeDefinition, data: &[u8]) -> Result<Value, ProtobufError> {
    let mut fields = Map::new();
    message(definition, &mut Vec::new(), data, &mut fields, 0)?;
    Ok(Value::Object(fields))
}

/// Decodes the fields of a message into those of an object. `path` are the tags of the embedding
/// messages.
fn message(
    definition: &TypeDefinition,
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

/// Decodes a value. A list, map or message in several parts is merged with the value in `slot`.
fn value(
    ty: &FieldType,
    wire: Wire<'_>,
    field: &str,
    slot: &mut Value,
    depth: usize,
) -> Result<(), ProtobufError> {
    *slot = match ty {
        FieldType::String => text(wire.bytes(field)?),
        FieldType::Bytes => STANDARD.encode(wire.bytes(field)?).into(),
        FieldType::Int32 | FieldType::Int64 => integer(ty, wire.varint(field)?),
        FieldType::Boolean => (wire.varint(field)? != 0).into(),
        FieldType::Double => double(wire.fixed64(field)?),
        FieldType::List(element) => {
            let mut items = match slot.take() {
                Value::Array(items) => items,
                _ => Vec::new(),
            };
            if let (FieldType::Int32 | FieldType::Int64, Wire::Bytes(packed)) = (&**element, wire) {
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
        FieldType::Map(element) => {
            let mut entries = match slot.take() {
                Value::Object(entries) => entries,
                _ => Map::new(),
            };
            let (key, item) = entry(element, wire.bytes(field)?, field, depth)?;
            entries.insert(key, item);
            Value::Object(entries)
        }
        FieldType::Object(_) => {
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
    element: &FieldType,
    data: &[u8],
    field: &str,
    depth: usize,
) -> Result<(String, Value), ProtobufError> {
    let mut reader = Reader::new(data, field);
    let mut key = String::new();
    let mut item = match element {
        FieldType::String | FieldType::Bytes => "".into(),
        FieldType::Object(_) => crate::form::zero(element),
        _ => Value::Null,
    };
    while let Some((tag, wire)) = reader.next()? {
        match (tag, element) {
            (1, _) => key = String::from_utf8_lossy(wire.bytes(field)?).into_owned(),
            // The value of a map cannot be a list, so the list is in a message.
            (2, FieldType::List(_)) => {
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

fn integer(ty: &FieldType, number: u64) -> Value {
    let number = number.cast_signed();
    if matches!(ty, FieldType::Int32) {
        #[expect(clippy::cast_possible_truncation, reason = "as in Go")]
        return (number as i32).into();
    }
    number.into()
}

fn double(bits: u64) -> Value {
    Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number)
}

fn object(
    definition: &TypeDefinition,
    data: &[u8],
    before: Value,
    depth: usize,
) -> Result<Value, ProtobufError> {
    match definition.json_form() {
        JsonForm::Object => {
            let mut fields = match before {
                Value::Object(fields) => fields,
                _ => Map::new(),
            };
            message(definition, &mut Vec::new(), data, &mut fields, depth)?;
            Ok(Value::Object(fields))
        }
        JsonForm::Time | JsonForm::MicroTime => {
            time(data, definition.json_form() == JsonForm::MicroTime)
        }
        JsonForm::IntOrString => int_or_string(data),
        JsonForm::Quantity => Ok(single(data, definition)?.map_or_else(|| "0".into(), text)),
        JsonForm::ParsedText => Ok(single(data, definition)?.map_or(Value::Null, text)),
        JsonForm::FreeObject if definition.short_name() == "CustomResourceSubresourceStatus" => {
            Ok(Value::Object(Map::new()))
        }
        JsonForm::FreeObject => raw(data, definition),
        JsonForm::Any => schema_part(definition, data, depth),
    }
}

/// The bytes of a message with one bytes field.
fn single<'a>(
    data: &'a [u8],
    definition: &'a TypeDefinition,
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

/// Raw JSON inside protobuf.
fn raw(data: &[u8], definition: &TypeDefinition) -> Result<Value, ProtobufError> {
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
            #[expect(clippy::cast_possible_truncation, reason = "as in Go")]
            2 => nanos = wire.varint("Nanos")?.cast_signed() as i32,
            _ => wire.skip()?,
        }
    }
    let time = jiff::Timestamp::new(seconds, nanos).map_err(|_| ProtobufError::TimeRange)?;
    let form = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(time.to_zoned(jiff::tz::TimeZone::UTC).strftime(form).to_string().into())
}

fn int_or_string(data: &[u8]) -> Result<Value, ProtobufError> {
    let (mut is_text, mut number, mut string) = (false, Value::from(0), Value::from(""));
    let mut reader = Reader::new(data, "IntOrString");
    while let Some((tag, wire)) = reader.next()? {
        match tag {
            1 => is_text = wire.varint("Type")? == 1,
            2 => number = integer(&FieldType::Int32, wire.varint("IntVal")?),
            3 => string = text(wire.bytes("StrVal")?),
            _ => wire.skip()?,
        }
    }
    Ok(if is_text { string } else { number })
}

/// A part of a CRD's schema with alternative types.
fn schema_part(
    definition: &TypeDefinition,
    data: &[u8],
    depth: usize,
) -> Result<Value, ProtobufError> {
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

/// A schema of the same API version as the part.
fn props(part: &TypeDefinition, data: &[u8], depth: usize) -> Result<Value, ProtobufError> {
    let package = part.name().rsplit_once('.').map_or("", |parts| parts.0);
    match crate::builtin::definition(&format!("{package}.JSONSchemaProps")) {
        Some(definition) => object(definition, data, Value::Null, depth + 1),
        None => Ok(Value::Null),
    }
}
