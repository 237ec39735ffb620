//! Errors of libyaml, in upstream's words.
//!
//! Tools written in Go read YAML with a descendant of libyaml, and people search the web for its
//! messages. Our parser finds the same errors in the same order. This module adds two checks that
//! upstream makes while it parses: undefined anchors, and invalid characters. Upstream checks
//! characters in windows, so an invalid one is an error only when the parser needs its window.
//!
//! Only the first document is checked, because Go's `Unmarshal` ignores the others.

use crate::parser::{self, Event, Parser};
use std::collections::HashSet;

/// The length of upstream's read window in bytes.
const WINDOW: usize = 512;

/// An error of libyaml.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibyamlError {
    /// The line as upstream counts it, which depends on the stage that found the error; 0 if the
    /// message has none.
    pub line: usize,
    /// The message.
    pub message: String,
}

impl std::fmt::Display for LibyamlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        f.write_str(&self.message)
    }
}

impl From<parser::Fault> for LibyamlError {
    /// Upstream counts lines from 1 in the scanner and from 0 in the parser, and omits the lines 0
    /// and 1.
    fn from(fault: parser::Fault) -> Self {
        let line = match fault.mark.line {
            0 => 0,
            line => line + usize::from(fault.scanning),
        };
        Self { line, message: fault.message.into_owned() }
    }
}

/// Finds the first error of the first document of a text, as Go's YAML decoder reports it. The text
/// is one section: the lines between two document separators.
pub fn find_error(text: &[u8]) -> Option<LibyamlError> {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let (valid, invalid) = valid_prefix(text);
    let found = syntax(valid, invalid.as_ref().map(|(window, _)| *window));
    match found {
        Ok(()) => None,
        Err(Some(error)) => Some(error),
        Err(None) => {
            invalid.map(|(_, message)| LibyamlError { line: 0, message: message.to_owned() })
        }
    }
}

/// Parses a text. `Err(None)` says that the parser reached `window`, the window of an invalid
/// character, before it found another error.
fn syntax(text: &str, window: Option<usize>) -> Result<(), Option<LibyamlError>> {
    let mut anchors = HashSet::new();
    let mut parser = Parser::new(text);
    while let Some(event) = parser.next() {
        if window.is_some_and(|window| parser.reached() >= window) {
            return Err(None);
        }
        let properties = match event.map_err(|fault| Some(fault.into()))?.0 {
            Event::DocumentEnd => return Ok(()),
            Event::Alias(name) if !anchors.contains(&name) => {
                let message = format!("unknown anchor '{name}' referenced");
                return Err(Some(LibyamlError { line: 0, message }));
            }
            Event::Scalar(_, _, properties)
            | Event::SequenceStart(properties)
            | Event::MappingStart(properties) => properties,
            _ => continue,
        };
        anchors.extend(properties.anchor);
    }
    if window.is_some() { Err(None) } else { Ok(()) }
}

/// The valid beginning of a text; for the invalid character after it, the start of its window and
/// the message.
fn valid_prefix(bytes: &[u8]) -> (&str, Option<(usize, &'static str)>) {
    let (mut at, mut window, mut end) = (0, 0, WINDOW);
    while at < bytes.len() {
        match first_character(&bytes[at..bytes.len().min(at + 4)]) {
            Ok(width) if at + width <= end => at += width,
            // The end of the window splits the character, so it is checked with the next window.
            Ok(_) => (window, end) = (at, at + WINDOW),
            Err(message) => {
                let valid = str::from_utf8(&bytes[..at]).unwrap_or_default();
                // Upstream reads another window for the rest of an incomplete character.
                let window = if message == INCOMPLETE { at } else { window };
                return (valid, Some((window, message)));
            }
        }
        if at == end {
            (window, end) = (at, at + WINDOW);
        }
    }
    (str::from_utf8(bytes).unwrap_or_default(), None)
}

const INCOMPLETE: &str = "incomplete UTF-8 octet sequence";

/// The length of the first character in bytes, or the error.
fn first_character(bytes: &[u8]) -> Result<usize, &'static str> {
    let first = bytes[0];
    let (width, start) = match first {
        0..0x80 => (1, u32::from(first)),
        0xc0..0xe0 => (2, u32::from(first & 0x1f)),
        0xe0..0xf0 => (3, u32::from(first & 0x0f)),
        0xf0..0xf8 => (4, u32::from(first & 0x07)),
        _ => return Err("invalid leading UTF-8 octet"),
    };
    let more = bytes.get(1..width).ok_or(INCOMPLETE)?;
    let mut value = start;
    for byte in more {
        if byte & 0xc0 != 0x80 {
            return Err("invalid trailing UTF-8 octet");
        }
        value = value << 6 | u32::from(byte & 0x3f);
    }
    if value < [0, 0, 0x80, 0x800, 0x1_0000][width] {
        return Err("invalid length of a UTF-8 sequence");
    }
    if (0xd800..0xe000).contains(&value) || value > 0x10_ffff {
        return Err("invalid Unicode character");
    }
    let allowed = matches!(value, 0x9 | 0xa | 0xd | 0x20..=0x7e | 0x85)
        || (0xa0..=0xfffd).contains(&value)
        || value >= 0x1_0000;
    if allowed { Ok(width) } else { Err("control characters are not allowed") }
}

#[cfg(test)]
mod tests {
    use super::find_error;

    #[test]
    fn errors_are_those_of_go_yaml() {
        let table: &[(&str, Option<&str>)] = &[
            ("a: 1\n", None),
            ("a: b: c\n", Some("mapping values are not allowed in this context")),
            ("x: 1\na: b: c\n", Some("line 2: mapping values are not allowed in this context")),
            ("a: 1\n b: 2\n", Some("line 2: mapping values are not allowed in this context")),
            ("a:\n  b: 1\n c: 2\n", Some("line 2: did not find expected key")),
            ("  a: 1\nb: 2\n", None),
            ("a: 1\n...\n{\n", None),
            ("a: 1\nb\n", Some("line 3: could not find expected ':'")),
            ("a: [1, 2\nb: 3\n", Some("line 1: did not find expected ',' or ']'")),
            ("a: {b: 1\n", Some("line 1: did not find expected ',' or '}'")),
            ("a: \"b\n", Some("line 2: found unexpected end of stream")),
            ("a: \"\\q\"\n", Some("found unknown escape character")),
            ("a: *b\n", Some("unknown anchor 'b' referenced")),
            ("a: &b 1\nc: *b\n", None),
            ("a: @b\n", Some("found character that cannot start any token")),
            ("\ta: 1\n", Some("found character that cannot start any token")),
            (
                "a: |\n\tb\n",
                Some("line 2: found a tab character where an indentation space is expected"),
            ),
            ("- a\nb: 1\n", Some("line 1: did not find expected '-' indicator")),
            ("a: !x!y z\n", Some("found undefined tag handle")),
            ("%YAML 1.2\n---\na: 1\n", Some("found incompatible YAML document")),
            ("%FOO\n---\n", Some("found unknown directive name")),
            ("a: - b\n", Some("block sequence entries are not allowed in this context")),
            ("a\u{1}\n", Some("control characters are not allowed")),
            ("[]: x\n", None),
            ("? a\n: b\n", None),
            ("a\u{85}b: 1\n", Some("line 2: mapping values are not allowed in this context")),
            ("-\ta: 1\n", Some("found character that cannot start any token")),
            ("-\ta\n", Some("found character that cannot start any token")),
        ];
        for (text, expected) in table {
            let found = find_error(text.as_bytes()).map(|error| error.to_string());
            assert_eq!(found.as_deref(), *expected, "{text:?}");
        }
    }

    #[test]
    fn nesting_is_limited_and_length_is_not() {
        let deep = "[".repeat(20_000);
        assert_eq!(find_error(deep.as_bytes()).unwrap().message, "exceeded max depth of 10000");
        assert_eq!(
            find_error("- ".repeat(20_000).as_bytes()).unwrap().message,
            "exceeded max depth of 10000"
        );
        let wide = format!("a: [{}]\n", "{b: c}, ".repeat(20_000));
        assert_eq!(find_error(wide.as_bytes()), None);
    }
}
