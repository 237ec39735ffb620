//! Go's JSON scanner, for its messages about malformed text.
//!
//! `serde_json` parses; this scanner runs only after an error, for the message. It keeps one byte for
//! each open object or list, so deep nesting costs little.

use super::error::{Context, JsonError};

/// The deepest nesting that Go's scanner accepts.
const MAX_DEPTH: usize = 10_000;

/// The error of Go's scanner; none for valid JSON.
pub(super) fn error(text: &[u8]) -> Option<JsonError> {
    let mut scanner = Scanner { open: Vec::new(), state: State::Value };
    for &byte in text {
        if let Err(context) = scanner.step(byte) {
            return Some(JsonError::InvalidByte { byte, context });
        }
    }
    if matches!(scanner.state, State::Done) {
        return None;
    }
    // As in Go, a blank ends a number.
    match scanner.step(b' ') {
        Err(context) => Some(JsonError::InvalidByte { byte: b' ', context }),
        Ok(()) if matches!(scanner.state, State::Done) => None,
        Ok(()) => Some(JsonError::UnexpectedEnd),
    }
}

/// The expected next byte.
#[derive(Clone, Copy)]
enum State {
    Value,
    /// A value, or the end of an empty list.
    ValueOrEnd,
    Key,
    /// A key, or the end of an empty object.
    KeyOrEnd,
    AfterKey,
    /// A string; whether it is a key.
    Text(bool),
    Escape(bool),
    /// The number of missing digits of an escape.
    Hex(bool, u8),
    /// A literal, and the index of its next letter.
    Word(&'static str, usize),
    Minus,
    Zero,
    Digits,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
    AfterValue,
    Done,
}

struct Scanner {
    /// For each open bracket, whether it is that of an object.
    open: Vec<bool>,
    state: State,
}

type ScanResult = Result<(), Context>;

impl Scanner {
    fn step(&mut self, byte: u8) -> ScanResult {
        let blank = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match self.state {
            State::Value
            | State::ValueOrEnd
            | State::Key
            | State::KeyOrEnd
            | State::AfterKey
            | State::AfterValue
            | State::Done
                if blank => {}
            State::ValueOrEnd if byte == b']' => self.close(),
            State::Value | State::ValueOrEnd => self.begin(byte)?,
            State::KeyOrEnd if byte == b'}' => self.close(),
            State::Key | State::KeyOrEnd if byte == b'"' => self.state = State::Text(true),
            State::Key | State::KeyOrEnd => {
                return Err(Context::Key);
            }
            State::AfterKey if byte == b':' => self.state = State::Value,
            State::AfterKey => return Err(Context::AfterKey),
            State::Text(key) => match byte {
                b'"' if key => self.state = State::AfterKey,
                b'"' => self.end_value(),
                b'\\' => self.state = State::Escape(key),
                0..=0x1f => return Err(Context::Text),
                _ => {}
            },
            State::Escape(key) => match byte {
                b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {
                    self.state = State::Text(key);
                }
                b'u' => self.state = State::Hex(key, 4),
                _ => return Err(Context::Escape),
            },
            State::Hex(key, missing) if byte.is_ascii_hexdigit() => {
                self.state =
                    if missing == 1 { State::Text(key) } else { State::Hex(key, missing - 1) };
            }
            State::Hex(..) => return Err(Context::HexEscape),
            State::Word(word, at) => self.word(word, at, byte)?,
            State::AfterValue => self.after_value(byte)?,
            State::Done => return Err(Context::AfterDocument),
            _ => self.number(byte)?,
        }
        Ok(())
    }

    fn begin(&mut self, byte: u8) -> ScanResult {
        self.state = match byte {
            b'{' | b'[' => {
                self.open.push(byte == b'{');
                if self.open.len() > MAX_DEPTH {
                    return Err(Context::Depth);
                }
                if byte == b'{' { State::KeyOrEnd } else { State::ValueOrEnd }
            }
            b'"' => State::Text(false),
            b'-' => State::Minus,
            b'0' => State::Zero,
            b'1'..=b'9' => State::Digits,
            b't' => State::Word("true", 1),
            b'f' => State::Word("false", 1),
            b'n' => State::Word("null", 1),
            _ => return Err(Context::Value),
        };
        Ok(())
    }

    fn word(&mut self, word: &'static str, at: usize, byte: u8) -> ScanResult {
        let Some(&wanted) = word.as_bytes().get(at) else { return Ok(()) };
        if byte != wanted {
            return Err(Context::Word { word, expected: char::from(wanted) });
        }
        if at + 1 == word.len() {
            self.end_value();
        } else {
            self.state = State::Word(word, at + 1);
        }
        Ok(())
    }

    fn number(&mut self, byte: u8) -> ScanResult {
        self.state = match (self.state, byte) {
            (State::Minus, b'0') => State::Zero,
            (State::Minus, b'1'..=b'9') | (State::Digits, b'0'..=b'9') => State::Digits,
            (State::Minus, _) => return Err(Context::Number),
            (State::Zero | State::Digits, b'.') => State::Point,
            (State::Zero | State::Digits | State::Fraction, b'e' | b'E') => State::Exponent,
            (State::Point | State::Fraction, b'0'..=b'9') => State::Fraction,
            (State::Point, _) => return Err(Context::Fraction),
            (State::Exponent, b'+' | b'-') => State::ExponentSign,
            (State::Exponent | State::ExponentSign | State::ExponentDigits, b'0'..=b'9') => {
                State::ExponentDigits
            }
            (State::Exponent | State::ExponentSign, _) => {
                return Err(Context::Exponent);
            }
            _ => {
                self.end_value();
                return self.step(byte);
            }
        };
        Ok(())
    }

    fn after_value(&mut self, byte: u8) -> ScanResult {
        match (self.open.last(), byte) {
            (Some(true), b',') => self.state = State::Key,
            (Some(false), b',') => self.state = State::Value,
            (Some(true), b'}') | (Some(false), b']') => self.close(),
            (Some(true), _) => return Err(Context::AfterField),
            (Some(false), _) => return Err(Context::AfterElement),
            (None, _) => return Err(Context::AfterDocument),
        }
        Ok(())
    }

    fn close(&mut self) {
        self.open.pop();
        self.end_value();
    }

    fn end_value(&mut self) {
        self.state = if self.open.is_empty() { State::Done } else { State::AfterValue };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: &str = "unexpected end of JSON input";

    #[test]
    fn errors_are_those_of_go() {
        for (text, expected) in [
            ("", END),
            ("{", END),
            ("[1,", END),
            ("\"a", END),
            ("{\"a\":}", "invalid character '}' looking for beginning of value"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
            ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("{}x", "invalid character 'x' after top-level value"),
            ("1x", "invalid character 'x' after top-level value"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
            ("\"\\q\"", "invalid character 'q' in string escape code"),
            ("\"\\u12\"", "invalid character '\"' in \\u hexadecimal character escape"),
            ("-", "invalid character ' ' in numeric literal"),
            ("1.", "invalid character ' ' after decimal point in numeric literal"),
            ("1e}", "invalid character '}' in exponent of numeric literal"),
            ("tru}", "invalid character '}' in literal true (expecting 'e')"),
            ("nul", "invalid character ' ' in literal null (expecting 'l')"),
            ("\0", "invalid character '\\x00' looking for beginning of value"),
            ("\u{feff}{}", "invalid character 'ï' looking for beginning of value"),
        ] {
            let found = error(text.as_bytes()).map(|error| error.to_string());
            assert_eq!(found.as_deref(), Some(expected), "{text:?}");
        }
        for text in ["{}", " [1, -2.5e+3, {\"a\": [null, true, \"\\u00e4\"]}] ", "0", "\"\""] {
            assert_eq!(error(text.as_bytes()), None, "{text:?}");
        }
        let deep = "[".repeat(20_000);
        let found = error(deep.as_bytes()).map(|error| error.to_string());
        assert_eq!(found.as_deref(), Some("invalid character '[' exceeded max depth"));
    }
}
