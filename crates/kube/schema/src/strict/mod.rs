//! Strict decoding: unknown fields, duplicate fields and type errors of built-in objects, as in Go.
//!
//! Upstream decodes built-in kinds into Go structs. That drops unknown fields and nulls, rejects values
//! of wrong types, and normalizes times and quantities. [`decode`] does the same to a JSON value, by a
//! [`TypeDefinition`]. It returns the unknown fields, because `fieldValidation` decides whether they
//! are errors, warnings or ignored. Duplicate keys exist only in the text, so [`parse`] collects them.
//!
//! The decoded value has Go's form, see [`crate::form`].
//!
//! ```text
//! bytes ─ parse ─► value + duplicates ─ decode ─► clean value + unknown fields ─► findings ─► message
//! ```

mod error;
mod findings;
mod parse;
mod position;
mod syntax;

pub use error::{Context, JsonError, TimeError, UnmarshalError};
pub use findings::{findings, findings_in_records};
pub use parse::{ParsedJson, parse, parse_merging};

use crate::builtin::{self, FieldType, JsonForm, TypeDefinition};
use crate::form;
use crate::trail::{Step, Trail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_gocompat::Base64Error;
use position::{DecoderKind, Position};
use serde_json::Value;
use std::fmt;
use std::sync::OnceLock;

/// The most findings that are reported, as in upstream.
const MAX_FINDINGS: usize = 100;

/// The error message for findings: `strict decoding error: unknown field "a", duplicate field "b"`.
pub fn message(findings: &[String]) -> String {
    format!("strict decoding error: {}", findings.join(", "))
}

/// The finding for the path of an unknown field.
pub fn unknown_field(path: &str) -> String {
    format!("unknown field {}", quote_path(path))
}

/// A text in quotes, as Go quotes printable text; paths of fields nearly always are printable.
fn quote_path(text: &str) -> String {
    format!("{text:?}").replace("\\'", "'")
}

/// The message of an error that prevents decoding of a body.
pub fn cannot_be_handled(version: &str, kind: &str, why: impl fmt::Display) -> String {
    format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}")
}

/// Decodes a value in place: drops unknown fields and omitted empty ones, adds fields that are always
/// written (see [`crate::form`]), normalizes times and quantities.
///
/// Returns the findings of unknown fields (`unknown field "spec.foo"`), in order of their paths.
///
/// # Errors
/// The first value of a wrong type, with Go's message:
/// `json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`.
pub fn decode(
    definition: &TypeDefinition,
    value: &mut Value,
) -> Result<Vec<String>, UnmarshalError> {
    let paths = decode_below(definition, value, "")?;
    Ok(paths.iter().map(|path| unknown_field(path)).collect())
}

/// As [`decode`], for the result of a strategic merge patch. Upstream decodes it without encoding it
/// first, with other messages: `unrecognized type: int32`. Findings are in order of their texts.
///
/// # Errors
/// The first value of a wrong type.
pub fn decode_merged(
    definition: &TypeDefinition,
    value: &mut Value,
) -> Result<Vec<String>, UnmarshalError> {
    let mut decoder = Decoder::default();
    let trail = Trail::default();
    decoder.object(
        definition,
        value,
        &Position::root(definition, &trail, DecoderKind::Converter),
    )?;
    let mut found: Vec<String> = decoder.unknown.iter().map(|path| unknown_field(path)).collect();
    found.sort();
    Ok(found)
}

/// As [`decode`], only for the metadata of an object.
///
/// # Errors
/// The first value of a wrong type.
pub fn decode_metadata(object: &mut Value) -> Result<Vec<String>, UnmarshalError> {
    let metadata = object.get_mut("metadata").filter(|metadata| !metadata.is_null());
    let (Some(metadata), Some(definition)) =
        (metadata, builtin::definition("apimachinery.pkg.apis.meta.v1.ObjectMeta"))
    else {
        return Ok(Vec::new());
    };
    let paths = decode_below(definition, metadata, "metadata")?;
    Ok(paths.iter().map(|path| unknown_field(path)).collect())
}

/// As [`decode`], for the part of an object at `path`; returns paths, not findings.
pub(crate) fn decode_below(
    definition: &TypeDefinition,
    value: &mut Value,
    path: &str,
) -> Result<Vec<String>, UnmarshalError> {
    let mut decoder = Decoder::default();
    let trail = Trail::below(path);
    decoder.object(definition, value, &Position::root(definition, &trail, DecoderKind::Json))?;
    Ok(decoder.unknown)
}

/// The findings of unknown fields, without changing the value or checking types.
pub fn unknown_fields(definition: &TypeDefinition, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    find_unknown(definition, value, &Trail::default(), &mut found);
    found
}

fn find_unknown(
    definition: &TypeDefinition,
    value: &Value,
    trail: &Trail<'_>,
    found: &mut Vec<String>,
) {
    let (JsonForm::Object, Value::Object(fields)) = (definition.json_form(), value) else { return };
    for (key, value) in fields {
        let trail = trail.then(Step::Field(key));
        match definition.field(key) {
            Some(field) => find_unknown_in(&field.ty, value, &trail, found),
            None if found.len() < MAX_FINDINGS => found.push(unknown_field(&trail.to_string())),
            None => {}
        }
    }
}

fn find_unknown_in(ty: &FieldType, value: &Value, trail: &Trail<'_>, found: &mut Vec<String>) {
    match (ty, value) {
        (FieldType::Object(_), _) => {
            if let Some(definition) = ty.definition() {
                find_unknown(definition, value, trail, found);
            }
        }
        (FieldType::List(element), Value::Array(items)) => {
            for (at, item) in items.iter().enumerate() {
                find_unknown_in(element, item, &trail.then(Step::Index(at)), found);
            }
        }
        (FieldType::Map(element), Value::Object(entries)) => {
            for (key, entry) in entries {
                find_unknown_in(element, entry, &trail.then(Step::Field(key)), found);
            }
        }
        _ => {}
    }
}

/// The most fields that decoding adds to an object because they are always written. An object that can
/// be stored needs a tenth of it; a hostile list of empty objects would grow to hundreds of times its
/// size.
const MAX_ADDED: usize = 200_000;

#[derive(Default)]
struct Decoder {
    unknown: Vec<String>,
    /// The number of added fields.
    added: usize,
}

impl Decoder {
    fn object(
        &mut self,
        definition: &TypeDefinition,
        value: &mut Value,
        at: &Position<'_>,
    ) -> Result<(), UnmarshalError> {
        match definition.json_form() {
            JsonForm::Object => {}
            JsonForm::Any => return schema_part(definition, value),
            JsonForm::FreeObject => return free(definition, value, at),
            JsonForm::Time => return time(value, at, false),
            JsonForm::MicroTime => return time(value, at, true),
            JsonForm::IntOrString => return int_or_string(value, at),
            JsonForm::Quantity => return quantity(value),
            JsonForm::ParsedText => return parsed_text(definition, value, at),
        }
        let Value::Object(fields) = value else {
            return Err(at.refuse_struct(value, definition));
        };
        // Few fields are removed, so `retain`, which moves the others, would cost more.
        let mut dropped: Vec<String> = Vec::new();
        for (key, value) in fields.iter_mut() {
            let trail = at.trail.then(Step::Field(key));
            let Some(field) = definition.field(key) else {
                if self.unknown.len() < MAX_FINDINGS {
                    self.unknown.push(trail.to_string());
                }
                dropped.push(key.clone());
                continue;
            };
            if value.is_null() {
                dropped.push(key.clone());
                continue;
            }
            let embedded = at.trail.then(Step::Embedded(&field.embedded));
            let trail =
                if field.embedded.is_empty() { trail } else { embedded.then(Step::Field(key)) };
            self.value(&field.ty, value, &at.field_of(definition, field, &trail))?;
            if !form::is_written(field, value)
                && !form::is_significant_empty_list(definition, value)
            {
                dropped.push(key.clone());
            }
        }
        for key in dropped {
            fields.remove(&key);
        }
        self.added += form::add_always_written(definition, fields);
        if self.added > MAX_ADDED {
            return Err(UnmarshalError::TooManyEmptyParts);
        }
        Ok(())
    }

    fn value(
        &mut self,
        ty: &FieldType,
        value: &mut Value,
        at: &Position<'_>,
    ) -> Result<(), UnmarshalError> {
        let fits = match (ty, &mut *value) {
            (FieldType::Object(_), _) => {
                return match ty.definition() {
                    Some(definition) => self.object(definition, value, at),
                    None => Ok(()),
                };
            }
            (FieldType::List(element), Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let trail = at.trail.then(Step::Index(index));
                    self.element(element, item, &at.inside(&trail))?;
                }
                return Ok(());
            }
            (FieldType::Map(element), Value::Object(entries)) => {
                for (key, entry) in entries.iter_mut() {
                    let trail = at.trail.then(Step::Entry(key));
                    self.element(element, entry, &at.inside(&trail))?;
                }
                return Ok(());
            }
            (FieldType::Bytes, Value::Array(_)) => return byte_list(value, at),
            (FieldType::Bytes, Value::String(text)) => {
                return bytes(text).map_err(|error| at.refuse_bytes(error));
            }
            (FieldType::String, Value::String(_))
            | (FieldType::Boolean, Value::Bool(_))
            | (FieldType::Double, Value::Number(_)) => true,
            (FieldType::Int64, Value::Number(number)) => number.is_i64(),
            (FieldType::Int32, Value::Number(number)) => {
                number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
            }
            _ => false,
        };
        if fits { Ok(()) } else { Err(at.refuse_value(value, ty)) }
    }

    /// An element of a list or map: Go decodes null there as the zero value. The zero of bytes is the
    /// empty text, because that is how bytes return from the store.
    fn element(
        &mut self,
        ty: &FieldType,
        value: &mut Value,
        at: &Position<'_>,
    ) -> Result<(), UnmarshalError> {
        if value.is_null() {
            *value = if matches!(ty, FieldType::Bytes) { "".into() } else { form::zero(ty) };
            return Ok(());
        }
        self.value(ty, value, at)
    }
}

/// The parts of a CRD's schema with alternative types. Upstream decodes them separately, so unknown
/// fields inside are dropped without a finding.
fn schema_part(definition: &TypeDefinition, value: &mut Value) -> Result<(), UnmarshalError> {
    let name = definition.short_name();
    let Some(package) = definition.name().strip_suffix(name) else { return Ok(()) };
    let schema = |value: &mut Value| match schema_of(package) {
        Some(definition) => decode(definition, value).map(drop),
        None => Ok(()),
    };
    match (name, &mut *value) {
        ("JSON" | "RawMessage", _) | ("JSONSchemaPropsOrBool", Value::Bool(_)) => Ok(()),
        (_, Value::Object(_)) => schema(value),
        ("JSONSchemaPropsOrBool", _) => Err(UnmarshalError::NoSchema),
        ("JSONSchemaPropsOrArray", Value::Array(items)) if !items.is_empty() => {
            items.iter_mut().try_for_each(schema)
        }
        ("JSONSchemaPropsOrStringArray", Value::Array(items)) if !items.is_empty() => Ok(()),
        _ => {
            *value = Value::Null;
            Ok(())
        }
    }
}

/// The type of schemas of a package; that of the common package is cached.
fn schema_of(package: &str) -> Option<&'static TypeDefinition> {
    const COMMON: &str = "apiextensions-apiserver.pkg.apis.apiextensions.v1.";
    static CACHED: OnceLock<Option<&'static TypeDefinition>> = OnceLock::new();
    let find = || builtin::definition(&format!("{package}JSONSchemaProps"));
    if package == COMMON { *CACHED.get_or_init(find) } else { find() }
}

/// Bytes as a list of numbers, which Go accepts too.
fn byte_list(value: &mut Value, at: &Position<'_>) -> Result<(), UnmarshalError> {
    let Value::Array(items) = value else { return Ok(()) };
    let mut bytes = Vec::with_capacity(items.len());
    for item in &*items {
        let byte = if item.is_null() { Some(0) } else { item.as_u64() };
        let byte = byte.and_then(|byte| u8::try_from(byte).ok());
        bytes.push(byte.ok_or_else(|| at.refuse(item, "uint8"))?);
    }
    *value = STANDARD.encode(bytes).into();
    Ok(())
}

/// Bytes as base64. Go ignores line breaks and spare bits, and does not write them.
fn bytes(text: &mut String) -> Result<(), Base64Error> {
    if STANDARD.decode(&*text).is_err() {
        *text = STANDARD.encode(mainstay_gocompat::decode_base64(text)?);
    }
    Ok(())
}

fn time(value: &mut Value, at: &Position<'_>, micro: bool) -> Result<(), UnmarshalError> {
    let Value::String(text) = value else { return Err(at.refuse(value, "string")) };
    let parsed = parse_time(text, micro)?;
    let parsed = parsed.to_zoned(jiff::tz::TimeZone::UTC);
    *text = if micro {
        parsed.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
    } else {
        parsed.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    };
    Ok(())
}

/// Parses an RFC 3339 time.
///
/// # Errors
/// The error of Go's `time` package.
pub fn parse_rfc3339(text: &str) -> Result<jiff::Timestamp, TimeError> {
    parse_time(text, false)
}

fn parse_time(text: &str, micro: bool) -> Result<jiff::Timestamp, TimeError> {
    let layout =
        if micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    let refuse = |rest: &str, part| {
        let (text, rest) = (text.to_owned(), rest.to_owned());
        Err(TimeError::Layout { text, layout, rest, part })
    };
    // Go compares the text with the parts of the layout and names the first that does not fit.
    let parts = ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"];
    let mut rest = text;
    for part in parts {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        let fits = match rest.get(..part.len()) {
            Some(head) if digits => head.bytes().all(|byte| byte.is_ascii_digit()),
            Some(head) => head == part,
            None => false,
        };
        if !fits {
            return refuse(rest, part);
        }
        rest = &rest[part.len()..];
    }
    if micro {
        // Exactly six digits.
        let digits = rest.strip_prefix('.').and_then(|rest| rest.get(..6));
        if !digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())) {
            return refuse(rest, ".000000");
        }
        rest = &rest[7..];
    }
    match text.parse() {
        Ok(time) if !rest.is_empty() => Ok(time),
        _ if rest.is_empty() || !rest.starts_with(['Z', '+', '-', '.']) => refuse(rest, "Z07:00"),
        _ => Err(TimeError::OutOfRange { text: text.to_owned(), part: out_of_range(text) }),
    }
}

/// The first part of a well-formed time that no clock or calendar has.
fn out_of_range(text: &str) -> &'static str {
    let part = |from: usize| {
        text.get(from..from + 2).and_then(|digits| digits.parse().ok()).unwrap_or(0_u8)
    };
    match (part(5), part(11), part(14), part(17)) {
        (0 | 13.., ..) => "month",
        (_, 24.., ..) => "hour",
        (_, _, 60.., _) => "minute",
        (_, _, _, 60..) => "second",
        _ => "day",
    }
}

/// Values that upstream keeps as raw JSON: any JSON, or an object without known fields.
fn free(
    definition: &TypeDefinition,
    value: &Value,
    at: &Position<'_>,
) -> Result<(), UnmarshalError> {
    let any = matches!(definition.short_name(), "RawExtension" | "FieldsV1");
    if any || value.is_object() {
        return Ok(());
    }
    Err(at.refuse(value, &definition.go_name()))
}

fn int_or_string(value: &Value, at: &Position<'_>) -> Result<(), UnmarshalError> {
    match value {
        Value::String(_) => Ok(()),
        Value::Number(number) if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => {
            Ok(())
        }
        other => Err(at.refuse(other, "int32")),
    }
}

/// A type that parses its own text. It gets nulls too.
fn parsed_text(
    definition: &TypeDefinition,
    value: &Value,
    at: &Position<'_>,
) -> Result<(), UnmarshalError> {
    let text = if value.is_null() { Some("") } else { value.as_str() };
    let text = text.ok_or_else(|| at.refuse(value, "string"))?;
    Ok(builtin::parse_text(definition, text)?)
}

fn quantity(value: &mut Value) -> Result<(), UnmarshalError> {
    let text = match &*value {
        Value::String(text) => mainstay_quantity::canonical(text.trim()),
        Value::Number(number) => mainstay_quantity::canonical(&number.to_string()),
        other => mainstay_quantity::canonical(&other.to_string()),
    };
    *value = text?.into();
    Ok(())
}
