//! JSON streams: consecutive JSON values in one text.

use crate::{
    DuplicateKeys, NodeFault, Options, YamlError, YamlFault, error::check_length, fast,
    scalar::go_json_number, text::position,
};
use memchr::memchr_iter;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Deserializer, Map, Number, Value};
use std::{cell::RefCell, fmt, ops::Range};

/// A value, the line of its beginning, and its range in the text.
type JsonValue = (Value, usize, Range<usize>);

/// A reader of consecutive JSON values.
pub(crate) struct JsonStream<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    values: usize,
}

impl<'a> JsonStream<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, line: 1, values: 0 }
    }

    /// A reader of a later part of a stream, which begins on `line`. Values before it have proved
    /// that the stream is JSON.
    pub(crate) fn continued(text: &'a str, line: usize) -> Self {
        Self { text, at: 0, line, values: 2 }
    }

    /// The number of values read.
    pub(crate) fn values(&self) -> usize {
        self.values
    }

    /// The offset and line of the value that failed or comes next.
    pub(crate) fn position(&self) -> (usize, usize) {
        (self.at, self.line)
    }

    /// Reads the next value; `None` at the end.
    pub(crate) fn next(&mut self, options: &Options) -> Option<Result<JsonValue, YamlError>> {
        let rest = &self.text[self.at..];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        self.advance(blanks);
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return None;
        }
        if let Some((value, end)) = fast::json::value(self.text, self.at, options) {
            return Some(Ok(self.advance_past(value, end - self.at)));
        }
        let mut reader = Deserializer::from_str(rest);
        // [`ValueSeed`] checks the depth.
        reader.disable_recursion_limit();
        let limit_error = RefCell::new(None);
        match (ValueSeed { options, depth: 0, limit_error: &limit_error }).deserialize(&mut reader)
        {
            Ok(value) => {
                // The reader stops directly after the value.
                let length = reader.into_iter::<serde::de::IgnoredAny>().byte_offset();
                Some(Ok(self.advance_past(value, length)))
            }
            Err(error) => {
                let suffix = format!(" at line {} column {}", error.line(), error.column());
                let message = error.to_string();
                let (line, column) = position(&text_until(self.text, self.at, &error));
                let message = message.strip_suffix(&suffix).unwrap_or(&message).to_owned();
                let fault = match limit_error.into_inner() {
                    Some(fault) => YamlFault::Node(fault),
                    None => YamlFault::Json { message, ends_early: error.is_eof() },
                };
                Some(Err(YamlError { line, column, fault }))
            }
        }
    }

    /// Moves past a value of `length` bytes.
    fn advance_past(&mut self, value: Value, length: usize) -> JsonValue {
        let (start, line) = (self.at, self.line);
        self.advance(length);
        self.values += 1;
        (value, line, start..self.at)
    }

    fn advance(&mut self, bytes: usize) {
        let skipped = &self.text.as_bytes()[self.at..self.at + bytes];
        self.line += memchr_iter(b'\n', skipped).count();
        self.at += bytes;
    }
}

/// The text up to the character of an error. `serde_json` counts lines from the start of the value,
/// and columns in bytes up to and including that character.
fn text_until(text: &str, start: usize, error: &serde_json::Error) -> String {
    let rest = &text.as_bytes()[start..];
    let line = match error.line() {
        0 | 1 => 0,
        line => {
            let breaks = rest.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
            breaks.map(|(at, _)| at + 1).nth(line - 2).unwrap_or(rest.len())
        }
    };
    let end = (start + line + error.column().saturating_sub(1)).min(text.len());
    String::from_utf8_lossy(&text.as_bytes()[..end]).into_owned()
}

/// Builds a [`Value`] within the limits of the options.
#[derive(Clone, Copy)]
struct ValueSeed<'o> {
    options: &'o Options,
    /// The number of collections around the value.
    depth: usize,
    /// The error of a limit; `serde_json`'s errors carry only text.
    limit_error: &'o RefCell<Option<NodeFault>>,
}

impl ValueSeed<'_> {
    /// The seed for children of this value.
    fn inner<E: Error>(self) -> Result<Self, E> {
        let depth = self.depth + 1;
        if depth > self.options.max_depth {
            return Err(self.refuse(NodeFault::TooDeep { limit: self.options.max_depth }));
        }
        Ok(Self { depth, ..self })
    }

    /// Records an error of a limit and stops reading.
    fn refuse<E: Error>(self, fault: NodeFault) -> E {
        let error = E::custom(&fault);
        *self.limit_error.borrow_mut() = Some(fault);
        error
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        json_number(number, self.options)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        check_length(text.len(), self.options).map_err(|fault| self.refuse(fault))?;
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut map = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if self.options.duplicate_keys == DuplicateKeys::Refuse && map.contains_key(&name) {
                return Err(self.refuse(NodeFault::RepeatedKey { key: name }));
            }
            let value = fields.next_value_seed(inner)?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

/// The JSON number of a float.
pub(crate) fn json_number(number: f64, options: &Options) -> Option<Number> {
    if number == 0.0 && number.is_sign_negative() && options.signed_zero {
        return Number::from_f64(number);
    }
    go_json_number(number)
}
