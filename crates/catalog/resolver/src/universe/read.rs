//! JSON parser of universes, with errors that name the position, the field and a remedy.

use super::Universe;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;
use std::error::Error;
use std::fmt;

/// Why a universe cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniverseError {
    /// Line in the text, from one; zero if the error has no position.
    pub line: usize,
    /// Column in bytes, from one; zero if the error has no position.
    pub column: usize,
    /// The field, such as `catalogs[0].priority`; empty if the error is about no field.
    pub field: String,
    /// The error.
    pub message: String,
    /// The remedy, as an instruction.
    pub remedy: String,
}

impl fmt::Display for UniverseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}, column {}: ", self.line, self.column)?;
        }
        if !self.field.is_empty() {
            write!(f, "field `{}`: ", self.field)?;
        }
        write!(f, "{} ({})", self.message, self.remedy)
    }
}

impl Error for UniverseError {}

/// Reads a universe: the value itself, or the field `universe` of a value, whose other fields are
/// ignored.
///
/// # Errors
/// If it is not JSON, or not in this format.
pub fn parse(text: &str) -> Result<Universe, UniverseError> {
    #[derive(Deserialize)]
    struct Probe {
        universe: Option<IgnoredAny>,
    }
    #[derive(Deserialize)]
    struct Case {
        universe: Universe,
    }
    if let Some(error) = no_object(text) {
        return Err(error);
    }
    let probe: Probe = serde_json::from_str(text).map_err(|error| json_error(text, &error))?;
    let universe = match probe.universe {
        Some(_) => serde_json::from_str(text).map(|case: Case| case.universe),
        None => serde_json::from_str(text),
    };
    universe.map_err(|error| json_error(text, &error))
}

/// The error of a JSON value that is not an object.
fn no_object(text: &str) -> Option<UniverseError> {
    let at = text.find(|character: char| !character.is_ascii_whitespace())?;
    let what = match text.as_bytes()[at] {
        b'[' => "a list",
        b'"' => "a text",
        b'n' => "null",
        b't' | b'f' => "true or false",
        b'-' | b'0'..=b'9' => "a number",
        // An object, or a syntax error, which the JSON parser reports with its position.
        _ => return None,
    };
    Some(UniverseError {
        line: text[..at].matches('\n').count() + 1,
        column: at - text[..at].rfind('\n').map_or(0, |newline| newline + 1) + 1,
        field: String::new(),
        message: format!("a universe is an object, and this is {what}"),
        remedy:
            "give it what `mainstay resolve --save FILE` wrote, or what docs/resolving.md describes"
                .to_owned(),
    })
}

/// How many characters of a message or of a field name are shown.
const MAX_CHARACTERS: usize = 240;

/// A text, shortened to that many characters.
fn short(text: String) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// A message of serde without the names of Rust types.
fn without_rust_types(message: &str) -> String {
    let Some((before, after)) = message.split_once("expected struct ") else {
        return message.replace("expected a sequence", "expected a list");
    };
    let rest = after.split_once(' ').map_or("", |(_, rest)| rest);
    if rest.starts_with("with ") {
        return "this is a list, expected an object".to_owned();
    }
    format!("{before}expected an object")
}

fn json_error(text: &str, error: &serde_json::Error) -> UniverseError {
    let (line, column) = (error.line(), error.column());
    let offset = offset_of(text, line, column);
    let message = error.to_string();
    let place = format!(" at line {line} column {column}");
    let message = message.strip_suffix(&place).unwrap_or(&message).to_owned();
    let mut field = Fields::default();
    field.advance(text.as_bytes(), offset.saturating_sub(1));
    // A missing field is an error of the object, not of its last field; the message names an
    // unknown field.
    if message.starts_with("missing field") || message.starts_with("unknown field") {
        field.leave();
    }
    let (message, remedy) = match error.classify() {
        Category::Eof => (
            "the text ends in the middle of a value".to_owned(),
            "get the whole file again: it was cut off",
        ),
        Category::Syntax => (format!("not JSON: {message}"), "correct the JSON at that place"),
        Category::Data | Category::Io => (
            without_rust_types(&message),
            "write the field as docs/resolving.md describes the format",
        ),
    };
    let (field, message) = (short(field.to_string()), short(message));
    UniverseError { line, column, field, message, remedy: remedy.to_owned() }
}

/// The position of a field, as line and column; none if the text does not have the field.
///
/// The field is written as in [`UniverseError::field`], also if the universe is inside another
/// value.
pub fn locate(text: &str, field: &str) -> Option<(usize, usize)> {
    let mut fields = Fields::default();
    let inside = format!("universe.{field}");
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let before = at;
        at = fields.step(bytes, at);
        if bytes[before] == b'"' {
            let here = fields.to_string();
            if here == field || here == inside {
                let line = text[..before].matches('\n').count() + 1;
                let start = text[..before].rfind('\n').map_or(0, |newline| newline + 1);
                return Some((line, before - start + 1));
            }
        }
    }
    None
}

/// The byte offset of a position that counts from one.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (start + column).min(text.len())
}

/// The path of fields at a position of a JSON text. The text need not be valid.
#[derive(Default)]
struct Fields {
    frames: Vec<Frame>,
}

enum Frame {
    Object { key: String, expects_key: bool },
    Array { index: usize },
}

impl Fields {
    fn advance(&mut self, bytes: &[u8], end: usize) {
        let mut at = 0;
        while at < end.min(bytes.len()) {
            at = self.step(bytes, at);
        }
    }

    /// Scans one byte, or one string; gives the offset of the next one.
    fn step(&mut self, bytes: &[u8], at: usize) -> usize {
        match bytes[at] {
            b'"' => {
                let mut end = at + 1;
                while end < bytes.len() && bytes[end] != b'"' {
                    end += if bytes[end] == b'\\' { 2 } else { 1 };
                }
                let end = end.min(bytes.len());
                if let Some(Frame::Object { key, expects_key: true }) = self.frames.last_mut() {
                    *key = String::from_utf8_lossy(&bytes[at + 1..end]).into_owned();
                }
                return end + 1;
            }
            b'{' => self.frames.push(Frame::Object { key: String::new(), expects_key: true }),
            b'[' => self.frames.push(Frame::Array { index: 0 }),
            b'}' | b']' => {
                self.frames.pop();
            }
            b':' => self.expect(false),
            b',' => match self.frames.last_mut() {
                Some(Frame::Array { index }) => *index += 1,
                _ => self.expect(true),
            },
            _ => {}
        }
        at + 1
    }

    fn expect(&mut self, value: bool) {
        if let Some(Frame::Object { expects_key, .. }) = self.frames.last_mut() {
            *expects_key = value;
        }
    }

    /// Goes from the field to its object.
    fn leave(&mut self) {
        if let Some(Frame::Object { key, .. }) = self.frames.last_mut() {
            key.clear();
        }
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for frame in &self.frames {
            match frame {
                Frame::Object { key, .. } if key.is_empty() => {}
                Frame::Object { key, .. } => {
                    write!(f, "{}{key}", if first { "" } else { "." })?;
                    first = false;
                }
                Frame::Array { index } => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn universe_is_read_alone_or_inside_a_case() {
        let bare = r#"{"namespace": "a", "globalNamespace": "b"}"#;
        let case = format!(r#"{{"id": "x", "universe": {bare}, "outcomes": [], "new": 1}}"#);
        for text in [bare, &case] {
            assert_eq!(parse(text).unwrap().global_namespace, "b");
        }
    }

    #[test]
    fn universe_error_has_position_field_and_remedy() {
        let document = "write the field as docs/resolving.md describes the format";
        for (text, expected) in [
            ("", "line 1, column 0: the text ends in the middle of a value (get the whole file again: it was cut off)".to_owned()),
            (
                "{\"namespace\": \"a\",\n \"catalogs\": [{\"name\": \"c\",",
                "line 2, column 27: field `catalogs[0].name`: the text ends in the middle of a value (get the whole file again: it was cut off)".to_owned(),
            ),
            ("{\"namespace\": }", "line 1, column 15: field `namespace`: not JSON: expected value (correct the JSON at that place)".to_owned()),
            (
                "{\"namespace\": \"a\",\n \"globalNamespace\": \"b\", \"catalogs\": [{\"name\": \"c\", \"namespace\": \"b\"},\n  {\"name\": \"d\", \"namespace\": \"b\", \"priority\": \"high\"}]}",
                format!("line 3, column 52: field `catalogs[1].priority`: invalid type: string \"high\", expected i64 ({document})"),
            ),
            (
                "{\"universe\": {\"namespace\": \"a\", \"globalNamespace\": \"b\", \"subscriptions\": [{\"name\": \"s\"}]}}",
                format!("line 1, column 87: field `universe.subscriptions[0]`: missing field `package` ({document})"),
            ),
            ("{\"namespace\": \"a\"}", format!("line 1, column 18: missing field `globalNamespace` ({document})")),
            (
                "{\"namespace\": \"a\", \"globalNamespace\": \"b\", \"demands\": [{\"package\": \"p\", \"range\": \"oops\"}]}",
                format!("line 1, column 88: field `demands[0].range`: invalid range \"oops\": Could not get version from string: \"oops\" ({document})"),
            ),
        ] {
            assert_eq!(refusal(text), expected, "{text}");
        }
        let state = refusal(
            "{\"namespace\": \"a\", \"globalNamespace\": \"b\", \"catalogs\": [{\"name\": \"c\", \"namespace\": \"b\", \"state\": \"no\"}]}",
        );
        assert!(
            state.contains(
                "field `catalogs[0].state`: unknown state \"no\", expected none, `noClient`"
            ),
            "{state}"
        );
        let unknown =
            refusal("{\"namespace\": \"a\", \"globalNamespace\": \"b\", \"catalog\": []}");
        assert!(unknown.contains("unknown field `catalog`, expected one of"), "{unknown}");
    }

    #[test]
    fn non_object_error_names_the_json_type() {
        let object = "give it what `mainstay resolve --save FILE` wrote, or what docs/resolving.md describes";
        for (text, expected) in [
            (
                "[]",
                format!("line 1, column 1: a universe is an object, and this is a list ({object})"),
            ),
            (
                "\n \"x\"",
                format!("line 2, column 2: a universe is an object, and this is a text ({object})"),
            ),
            (
                "null",
                format!("line 1, column 1: a universe is an object, and this is null ({object})"),
            ),
            (
                "-7",
                format!(
                    "line 1, column 1: a universe is an object, and this is a number ({object})"
                ),
            ),
        ] {
            assert_eq!(refusal(text), expected, "{text}");
        }
        for (catalogs, expected) in [
            ("5", "invalid type: integer `5`, expected a list"),
            ("[5]", "invalid type: integer `5`, expected an object"),
            ("[[]]", "this is a list, expected an object"),
        ] {
            let error_text = refusal(&format!(
                "{{\"namespace\": \"a\", \"globalNamespace\": \"b\", \"catalogs\": {catalogs}}}"
            ));
            assert!(error_text.contains(expected), "{catalogs}: {error_text}");
            assert!(!error_text.contains("struct"), "{error_text}");
        }
    }

    #[test]
    fn universe_error_messages_are_short() {
        for text in [
            format!("{{\"namespace\": {}", "[".repeat(100_000)),
            "[".repeat(100_000),
            format!("{{\"{}\": 1}}", "x".repeat(100_000)),
            format!(
                "{{\"namespace\": \"a\", \"globalNamespace\": \"b\", \"{}\": 1}}",
                "é".repeat(100_000)
            ),
        ] {
            let error_text = refusal(&text);
            assert!(error_text.chars().count() < 700, "{} signs", error_text.len());
        }
    }

    #[test]
    fn parser_never_panics() {
        for text in [
            "[",
            "{",
            "\"",
            "\"\\",
            "[[[[",
            "{\"a\":{\"b\":[1,2,",
            "é",
            "{\"é\": \"\\u00",
            "null",
            "7",
            "[]",
        ] {
            let _ = parse(text);
            let _ = locate(text, "a.b[1]");
        }
        let deep = format!("{{\"namespace\": {}", "[".repeat(100_000));
        assert!(parse(&deep).is_err());
    }

    #[test]
    fn locate_finds_each_field() {
        let text = "{\"id\": 1,\n \"universe\": {\"catalogs\": [{\"name\": \"a\"},\n {\"realData\": \"x\"}]}}";
        assert_eq!(locate(text, "catalogs[1].realData"), Some((3, 3)));
        assert_eq!(locate(text, "catalogs[2].realData"), None);
    }
}
