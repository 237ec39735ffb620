//! What upstream's parser says to a text that it refuses.
//!
//! Tools written in Go read YAML with a descendant of libyaml, and people search the web for its
//! words. Our parser refuses for the same reasons in the same order; this adds what else upstream
//! has an eye on while it parses: characters, which it looks at in windows, so that what is no
//! character is noticed when its window is needed and not before, and names of anchors.
//!
//! Only the first document is looked at, as Go's `Unmarshal` does: what follows it is lost there.

use crate::parser::{self, Event, Parser};
use std::collections::HashSet;

/// How many bytes upstream looks at in one go.
const WINDOW: usize = 512;

/// What upstream refuses, in its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line as upstream counts it, which depends on who noticed; 0 where it names none.
    pub line: usize,
    /// The message.
    pub message: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        f.write_str(&self.message)
    }
}

impl From<parser::Fault> for Fault {
    /// Upstream counts lines from 1 for what was found between characters and from 0 for what was
    /// found between tokens, and names neither the first nor the zeroth.
    fn from(fault: parser::Fault) -> Self {
        let line = match fault.mark.line {
            0 => 0,
            line => line + usize::from(fault.scanning),
        };
        Self { line, message: fault.message.into_owned() }
    }
}

/// The first fault of the first document of a text, as Go's decoder of YAML says it; none if that
/// can be parsed there. The text is what stands between two lines that separate documents.
pub fn fault(text: &[u8]) -> Option<Fault> {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let (good, unreadable) = characters(text);
    let found = syntax(good, unreadable.as_ref().map(|(window, _)| *window));
    match found {
        Ok(()) => None,
        Err(Some(fault)) => Some(fault),
        Err(None) => unreadable.map(|(_, message)| Fault { line: 0, message: message.to_owned() }),
    }
}

/// Parses a text; the fault is none where something from `window` on was needed before.
fn syntax(text: &str, window: Option<usize>) -> Result<(), Option<Fault>> {
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
                return Err(Some(Fault { line: 0, message }));
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

/// The part of a text before what is no character of YAML, and of that the window it stands in
/// and the message.
fn characters(bytes: &[u8]) -> (&str, Option<(usize, &'static str)>) {
    let (mut at, mut window, mut end) = (0, 0, WINDOW);
    while at < bytes.len() {
        match character(&bytes[at..bytes.len().min(at + 4)]) {
            Ok(width) if at + width <= end => at += width,
            // It is cut in two by the end of the window, and looked at with the next one.
            Ok(_) => (window, end) = (at, at + WINDOW),
            Err(message) => {
                let good = str::from_utf8(&bytes[..at]).unwrap_or_default();
                // For the rest of what has only begun, another window is asked for.
                let window = if message == INCOMPLETE { at } else { window };
                return (good, Some((window, message)));
            }
        }
        if at == end {
            (window, end) = (at, at + WINDOW);
        }
    }
    (str::from_utf8(bytes).unwrap_or_default(), None)
}

const INCOMPLETE: &str = "incomplete UTF-8 octet sequence";

/// How many bytes the first character has, or why there is none.
fn character(bytes: &[u8]) -> Result<usize, &'static str> {
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
    use super::fault;

    #[test]
    fn faults_are_said_in_the_known_words() {
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
            let found = fault(text.as_bytes()).map(|fault| fault.to_string());
            assert_eq!(found.as_deref(), *expected, "{text:?}");
        }
    }

    #[test]
    fn deep_and_long_texts_are_bounded() {
        let deep = "[".repeat(20_000);
        assert_eq!(fault(deep.as_bytes()).unwrap().message, "exceeded max depth of 10000");
        assert_eq!(
            fault("- ".repeat(20_000).as_bytes()).unwrap().message,
            "exceeded max depth of 10000"
        );
        let wide = format!("a: [{}]\n", "{b: c}, ".repeat(20_000));
        assert_eq!(fault(wide.as_bytes()), None);
    }
}
