//! Decoding as Go would: what the API says of fields it does not know, says twice, or cannot hold.
//!
//! The original decodes built-in kinds into Go structs, which drops unknown fields and nulls,
//! refuses values of wrong types, and writes times and quantities in one form. [`decode`] does the
//! same to a JSON value, along a [`Definition`]. What is unknown is returned, because
//! `fieldValidation` decides whether that is an error, a warning or nothing. Repeated keys are
//! visible only while the bytes are read, so [`parse`] notes them.
//!
//! What it leaves has the form in which Go writes it, see [`crate::form`].
//!
//! ```text
//! bytes ─ parse ─► value + duplicates ─ decode ─► clean value + unknown fields ─► findings ─► message
//! ```

mod error;
mod findings;
mod parse;
mod place;
mod syntax;

pub use error::{Context, DecodeError, JsonError, TimeError};
pub use findings::{findings, findings_in_records};
pub use parse::{Parsed, parse, parse_merging};

use crate::builtin::{self, Definition, Shape, Type};
use crate::form;
use crate::trail::{Step, Trail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_gocompat::Base64Error;
use place::{Place, Words};
use serde_json::Value;
use std::fmt;
use std::sync::OnceLock;

/// More findings than this are not reported, as in the original.
const MOST_FINDINGS: usize = 100;

/// The text of a refusal: `strict decoding error: unknown field "a", duplicate field "b"`.
pub fn message(findings: &[String]) -> String {
    format!("strict decoding error: {}", findings.join(", "))
}

/// A finding of an unknown field, for a path that pruning returned.
pub fn unknown_field(path: &str) -> String {
    format!("unknown field {}", go_quoted(path))
}

/// A text in quotes, as Go quotes what is plain; paths of fields nearly always are.
fn go_quoted(text: &str) -> String {
    format!("{text:?}").replace("\\'", "'")
}

/// The text around every refusal to decode a body.
pub fn cannot_be_handled(version: &str, kind: &str, why: impl fmt::Display) -> String {
    format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}")
}

/// Decodes a value in place: unknown fields and what is empty go, what is always written comes (see
/// [`crate::form`]), times and quantities get their one form.
///
/// Returns the findings of unknown fields (`unknown field "spec.foo"`), in order of their paths.
///
/// # Errors
/// The first value of a wrong type, in Go's words:
/// `json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`.
pub fn decode(definition: &Definition, value: &mut Value) -> Result<Vec<String>, DecodeError> {
    let paths = decode_below(definition, value, "")?;
    Ok(paths.iter().map(|path| unknown_field(path)).collect())
}

/// As [`decode`], for what a strategic merge patch made: the original takes that apart without making
/// it text first, and refuses in other words: `unrecognized type: int32`. Findings are in order of
/// their texts.
///
/// # Errors
/// The first value of a wrong type.
pub fn decode_merged(
    definition: &Definition,
    value: &mut Value,
) -> Result<Vec<String>, DecodeError> {
    let mut decoder = Decoder::default();
    let trail = Trail::default();
    decoder.object(definition, value, &Place::root(definition, &trail, Words::Converter))?;
    let mut found: Vec<String> = decoder.unknown.iter().map(|path| unknown_field(path)).collect();
    found.sort();
    Ok(found)
}

/// As [`decode`], for the metadata of an object of which nothing else is known.
///
/// # Errors
/// The first value of a wrong type.
pub fn decode_metadata(object: &mut Value) -> Result<Vec<String>, DecodeError> {
    let metadata = object.get_mut("metadata").filter(|metadata| !metadata.is_null());
    let (Some(metadata), Some(definition)) =
        (metadata, builtin::definition("apimachinery.pkg.apis.meta.v1.ObjectMeta"))
    else {
        return Ok(Vec::new());
    };
    let paths = decode_below(definition, metadata, "metadata")?;
    Ok(paths.iter().map(|path| unknown_field(path)).collect())
}

/// As [`decode`], for a part of an object that stands at `path`; returns bare paths.
pub(crate) fn decode_below(
    definition: &Definition,
    value: &mut Value,
    path: &str,
) -> Result<Vec<String>, DecodeError> {
    let mut decoder = Decoder::default();
    let trail = Trail::below(path);
    decoder.object(definition, value, &Place::root(definition, &trail, Words::Json))?;
    Ok(decoder.unknown)
}

/// The findings of unknown fields, without changing the value or looking at types.
pub fn unknown_fields(definition: &Definition, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    find_unknown(definition, value, &Trail::default(), &mut found);
    found
}

fn find_unknown(
    definition: &Definition,
    value: &Value,
    trail: &Trail<'_>,
    found: &mut Vec<String>,
) {
    let (Shape::Object, Value::Object(fields)) = (definition.shape(), value) else { return };
    for (key, value) in fields {
        let trail = trail.then(Step::Field(key));
        match definition.field(key) {
            Some(field) => find_unknown_in(&field.ty, value, &trail, found),
            None if found.len() < MOST_FINDINGS => found.push(unknown_field(&trail.to_string())),
            None => {}
        }
    }
}

fn find_unknown_in(ty: &Type, value: &Value, trail: &Trail<'_>, found: &mut Vec<String>) {
    match (ty, value) {
        (Type::Object(_), _) => {
            if let Some(definition) = ty.definition() {
                find_unknown(definition, value, trail, found);
            }
        }
        (Type::List(element), Value::Array(items)) => {
            for (at, item) in items.iter().enumerate() {
                find_unknown_in(element, item, &trail.then(Step::Index(at)), found);
            }
        }
        (Type::Map(element), Value::Object(entries)) => {
            for (key, entry) in entries {
                find_unknown_in(element, entry, &trail.then(Step::Field(key)), found);
            }
        }
        _ => {}
    }
}

/// The most fields that may be added to an object because they are always written. An object that
/// can be stored needs a tenth of it; a hostile list of empty objects would grow to hundreds of times
/// its size.
const MOST_ADDED: usize = 200_000;

#[derive(Default)]
struct Decoder {
    unknown: Vec<String>,
    /// Fields that were added because they are always written.
    added: usize,
}

impl Decoder {
    fn object(
        &mut self,
        definition: &Definition,
        value: &mut Value,
        at: &Place<'_>,
    ) -> Result<(), DecodeError> {
        match definition.shape() {
            Shape::Object => {}
            Shape::Any => return schema_part(definition, value),
            Shape::FreeObject => return free(definition, value, at),
            Shape::Time => return time(value, at, false),
            Shape::MicroTime => return time(value, at, true),
            Shape::IntOrString => return int_or_string(value, at),
            Shape::Quantity => return amount(value),
            Shape::ParsedText => return parsed_text(definition, value, at),
        }
        let Value::Object(fields) = value else {
            return Err(at.refuse_struct(value, definition));
        };
        // Few fields go, so that the others are not moved about for it.
        let mut gone: Vec<String> = Vec::new();
        for (key, value) in fields.iter_mut() {
            let trail = at.trail.then(Step::Field(key));
            let Some(field) = definition.field(key) else {
                if self.unknown.len() < MOST_FINDINGS {
                    self.unknown.push(trail.to_string());
                }
                gone.push(key.clone());
                continue;
            };
            if value.is_null() {
                gone.push(key.clone());
                continue;
            }
            let embedded = at.trail.then(Step::Embedded(&field.embedded));
            let trail =
                if field.embedded.is_empty() { trail } else { embedded.then(Step::Field(key)) };
            self.value(&field.ty, value, &at.field_of(definition, field, &trail))?;
            if !form::settle(field, value) && !form::tells_empty(definition, value) {
                gone.push(key.clone());
            }
        }
        for key in gone {
            fields.remove(&key);
        }
        self.added += form::fill(definition, fields);
        if self.added > MOST_ADDED {
            return Err(DecodeError::TooManyEmptyParts);
        }
        Ok(())
    }

    fn value(&mut self, ty: &Type, value: &mut Value, at: &Place<'_>) -> Result<(), DecodeError> {
        let fits = match (ty, &mut *value) {
            (Type::Object(_), _) => {
                return match ty.definition() {
                    Some(definition) => self.object(definition, value, at),
                    None => Ok(()),
                };
            }
            (Type::List(element), Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let trail = at.trail.then(Step::Index(index));
                    self.element(element, item, &at.inside(&trail))?;
                }
                return Ok(());
            }
            (Type::Map(element), Value::Object(entries)) => {
                for (key, entry) in entries.iter_mut() {
                    let trail = at.trail.then(Step::Entry(key));
                    self.element(element, entry, &at.inside(&trail))?;
                }
                return Ok(());
            }
            (Type::Bytes, Value::Array(_)) => return numbers(value, at),
            (Type::Bytes, Value::String(text)) => {
                return bytes(text).map_err(|error| at.refuse_bytes(error));
            }
            (Type::String, Value::String(_))
            | (Type::Boolean, Value::Bool(_))
            | (Type::Double, Value::Number(_)) => true,
            (Type::Int64, Value::Number(number)) => number.is_i64(),
            (Type::Int32, Value::Number(number)) => {
                number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
            }
            _ => false,
        };
        if fits { Ok(()) } else { Err(at.refuse_value(value, ty)) }
    }

    /// An element of a list or map: Go makes a null there the zero value; bytes come back from the
    /// store as none rather than null.
    fn element(&mut self, ty: &Type, value: &mut Value, at: &Place<'_>) -> Result<(), DecodeError> {
        if value.is_null() {
            *value = if matches!(ty, Type::Bytes) { "".into() } else { form::zero(ty) };
            return Ok(());
        }
        self.value(ty, value, at)
    }
}

/// The parts of a definition's schema that are one thing or another. The original reads them apart,
/// so that what is unknown inside is dropped without a word.
fn schema_part(definition: &Definition, value: &mut Value) -> Result<(), DecodeError> {
    let name = definition.short_name();
    let Some(package) = definition.name().strip_suffix(name) else { return Ok(()) };
    let schema = |value: &mut Value| match schema_of(package) {
        Some(definition) => decode(definition, value).map(drop),
        None => Ok(()),
    };
    match (name, &mut *value) {
        ("JSON" | "RawMessage", _) | ("JSONSchemaPropsOrBool", Value::Bool(_)) => Ok(()),
        (_, Value::Object(_)) => schema(value),
        ("JSONSchemaPropsOrBool", _) => Err(DecodeError::NoSchema),
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

/// The type of schemas of a package; that of the one nearly everybody uses is looked up once.
fn schema_of(package: &str) -> Option<&'static Definition> {
    const USUAL: &str = "apiextensions-apiserver.pkg.apis.apiextensions.v1.";
    static FOUND: OnceLock<Option<&'static Definition>> = OnceLock::new();
    let find = || builtin::definition(&format!("{package}JSONSchemaProps"));
    if package == USUAL { *FOUND.get_or_init(find) } else { find() }
}

/// Bytes that are written as a list of numbers, which Go reads as well.
fn numbers(value: &mut Value, at: &Place<'_>) -> Result<(), DecodeError> {
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

/// Bytes as base64. Go skips line ends and bits that are to spare, and writes neither again.
fn bytes(text: &mut String) -> Result<(), Base64Error> {
    if STANDARD.decode(&*text).is_err() {
        *text = STANDARD.encode(mainstay_gocompat::decode_base64(text)?);
    }
    Ok(())
}

fn time(value: &mut Value, at: &Place<'_>, micro: bool) -> Result<(), DecodeError> {
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

/// Reads an RFC 3339 time; the words of the refusal are those of Go's `time` package.
///
/// # Errors
/// The refusal of a text that is no time.
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
    // Go walks the layout part by part and names the part at which it stops.
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

/// What the original keeps as text: any JSON, or an object without known fields.
fn free(definition: &Definition, value: &Value, at: &Place<'_>) -> Result<(), DecodeError> {
    let any = matches!(definition.short_name(), "RawExtension" | "FieldsV1");
    if any || value.is_object() {
        return Ok(());
    }
    Err(at.refuse(value, &definition.go_name()))
}

fn int_or_string(value: &Value, at: &Place<'_>) -> Result<(), DecodeError> {
    match value {
        Value::String(_) => Ok(()),
        Value::Number(number) if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => {
            Ok(())
        }
        other => Err(at.refuse(other, "int32")),
    }
}

/// A type that parses itself is given nulls too.
fn parsed_text(definition: &Definition, value: &Value, at: &Place<'_>) -> Result<(), DecodeError> {
    let text = if value.is_null() { Some("") } else { value.as_str() };
    let text = text.ok_or_else(|| at.refuse(value, "string"))?;
    Ok(builtin::parse_text(definition, text)?)
}

fn amount(value: &mut Value) -> Result<(), DecodeError> {
    let text = match &*value {
        Value::String(text) => mainstay_quantity::canonical(text.trim()),
        Value::Number(number) => mainstay_quantity::canonical(&number.to_string()),
        other => mainstay_quantity::canonical(&other.to_string()),
    };
    *value = text?.into();
    Ok(())
}
