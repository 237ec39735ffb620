//! Parsing of a JSON body: its value and its duplicate keys.

use super::{JsonError, MAX_FINDINGS, quote_path, syntax};
use crate::trail::{Step, Trail};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

/// A parsed body and its duplicate keys.
#[derive(Debug)]
pub struct ParsedJson {
    /// The value; the last one of a duplicate key.
    pub value: Value,
    /// Findings such as `duplicate field "spec.replicas"`, in the order of the body.
    pub duplicates: Vec<String>,
}

/// As [`parse`], for a type with known fields: Go merges the objects of a duplicate key.
pub fn parse_merging(bytes: &[u8]) -> Result<ParsedJson, JsonError> {
    read_json(bytes, true)
}

/// Parses JSON and collects duplicate keys. Bytes that are not UTF-8 become the replacement character,
/// as in Go. `serde_json` limits nesting to 128 levels.
///
/// # Errors
/// If the text is malformed.
pub fn parse(bytes: &[u8]) -> Result<ParsedJson, JsonError> {
    read_json(bytes, false)
}

fn read_json(bytes: &[u8], merges: bool) -> Result<ParsedJson, JsonError> {
    let text = repair_unicode(bytes);
    let read = |text: &[u8]| {
        let duplicates = RefCell::new(Vec::new());
        let mut reader = serde_json::Deserializer::from_slice(text);
        let value = ValueReader { trail: Trail::default(), duplicates: &duplicates, merges }
            .deserialize(&mut reader)?;
        reader.end()?;
        Ok(ParsedJson { value, duplicates: duplicates.into_inner() })
    };
    read(&text).map_err(|error: serde_json::Error| {
        syntax::error(&text).unwrap_or_else(|| {
            // Go accepts the text; the Rust parser does not.
            let (message, line, column) = (error.to_string(), error.line(), error.column());
            if message.starts_with("recursion limit exceeded") {
                JsonError::TooDeep
            } else {
                JsonError::Unreadable { message, line, column }
            }
        })
    })
}

/// Replaces what is not Unicode by replacement characters: bytes that are not UTF-8, and unpaired
/// surrogates.
pub(super) fn repair_unicode(bytes: &[u8]) -> Cow<'_, [u8]> {
    let text = match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    let escape = |text: &[u8], at: usize| -> Option<u32> {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut lone = Vec::new();
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.iter().position(|b| *b == b'\\')) {
        at += found;
        match (escape(&text, at), escape(&text, at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at += 12,
            (Some(0xd800..=0xdfff), _) => {
                lone.push(at);
                at += 6;
            }
            _ => at += 2,
        }
    }
    if lone.is_empty() {
        return text;
    }
    let mut text = text.into_owned();
    for at in lone {
        text[at..at + 6].copy_from_slice(b"\\ufffd");
    }
    Cow::Owned(text)
}

/// Reads a value, with its path.
struct ValueReader<'a> {
    trail: Trail<'a>,
    duplicates: &'a RefCell<Vec<String>>,
    /// Whether the objects of a duplicate key are merged.
    merges: bool,
}

impl<'de> DeserializeSeed<'de> for ValueReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueReader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(ValueReader {
            trail: self.trail.then(Step::Index(items.len())),
            duplicates: self.duplicates,
            merges: self.merges,
        })? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let trail = self.trail.then(Step::Field(&key));
            if fields.contains_key(&key) {
                let mut found = self.duplicates.borrow_mut();
                if found.len() < MAX_FINDINGS {
                    let finding = format!("duplicate field {}", quote_path(&trail.to_string()));
                    if !found.contains(&finding) {
                        found.push(finding);
                    }
                }
            }
            let value = access.next_value_seed(ValueReader { trail, ..self })?;
            match (fields.get_mut(&key), value) {
                (Some(Value::Object(before)), Value::Object(after)) if self.merges => {
                    merge(before, after);
                }
                (_, value) => drop(fields.insert(key, value)),
            }
        }
        Ok(Value::Object(fields))
    }
}

fn merge(before: &mut Map<String, Value>, after: Map<String, Value>) {
    for (key, value) in after {
        match (before.get_mut(&key), value) {
            (Some(Value::Object(before)), Value::Object(after)) => merge(before, after),
            (_, value) => drop(before.insert(key, value)),
        }
    }
}
