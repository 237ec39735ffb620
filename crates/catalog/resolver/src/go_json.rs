//! Go JSON errors: the syntax error that Go's decoder reports for a text, byte for byte, because
//! OLM writes it into conditions.

use std::fmt;

/// Why a text is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonError {
    /// The text ends inside a value or before it.
    #[error("unexpected end of JSON input")]
    UnexpectedEnd,
    /// A stream has no value.
    #[error("EOF")]
    NoValue,
    /// A stream ends inside a value.
    #[error("unexpected EOF")]
    UnexpectedEof,
    /// The text has an invalid character.
    #[error("invalid character {} {place}", quoted_byte(*found))]
    InvalidCharacter {
        /// The character; a space for the end of the text.
        found: u8,
        /// Its context.
        place: JsonContext,
    },
    /// Go accepts the text and `serde_json` does not, for example for its depth; the error of
    /// `serde_json`.
    #[error("{0}")]
    Unsupported(String),
}

impl JsonError {
    /// Go's error for a text that `serde_json` has refused.
    pub(crate) fn of(json: &str, error: &serde_json::Error) -> Self {
        fault(json).unwrap_or_else(|| Self::Unsupported(error.to_string()))
    }
}

/// The context of an invalid character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonContext {
    /// Inside a number.
    Number,
    /// After the decimal point of a number.
    Fraction,
    /// In the exponent of a number.
    Exponent,
    /// Inside a string.
    Text,
    /// After the backslash of a string.
    Escape,
    /// After `\u` in a string.
    HexEscape,
    /// Inside a literal, which has another letter there.
    Word {
        /// The literal.
        word: &'static str,
        /// The expected letter.
        expected: char,
    },
    /// At the beginning of a value.
    Value,
    /// At the beginning of a key.
    Key,
    /// After a key.
    AfterKey,
    /// After the value of a key.
    AfterField,
    /// After an element of an array.
    AfterElement,
    /// After the whole value.
    AfterDocument,
}

impl fmt::Display for JsonContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "in numeric literal",
            Self::Fraction => "after decimal point in numeric literal",
            Self::Exponent => "in exponent of numeric literal",
            Self::Text => "in string literal",
            Self::Escape => "in string escape code",
            Self::HexEscape => "in \\u hexadecimal character escape",
            Self::Word { word, expected } => {
                return write!(f, "in literal {word} (expecting '{expected}')");
            }
            Self::Value => "looking for beginning of value",
            Self::Key => "looking for beginning of object key string",
            Self::AfterKey => "after object key",
            Self::AfterField => "after object key:value pair",
            Self::AfterElement => "after array element",
            Self::AfterDocument => "after top-level value",
        })
    }
}

/// What the scanner expects next.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Value,
    /// A value, or the end of an empty array.
    FirstItem,
    /// A key, or the end of an empty object.
    FirstKey,
    Key,
    Colon,
    AfterValue,
}

/// Scans the bytes of a text one by one.
struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    /// The next byte; a space at the end of the text, as in Go.
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(b' ')
    }

    fn is_done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn error_in(&self, place: JsonContext) -> JsonError {
        JsonError::InvalidCharacter { found: self.peek(), place }
    }

    fn digits(&mut self) {
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
    }

    /// A number, whose first byte is next.
    fn number(&mut self) -> Result<(), JsonError> {
        if self.peek() == b'-' {
            self.at += 1;
        }
        match self.peek() {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            _ => return Err(self.error_in(JsonContext::Number)),
        }
        if self.peek() == b'.' {
            self.at += 1;
            if !self.peek().is_ascii_digit() {
                return Err(self.error_in(JsonContext::Fraction));
            }
            self.digits();
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            if !self.peek().is_ascii_digit() {
                return Err(self.error_in(JsonContext::Exponent));
            }
            self.digits();
        }
        Ok(())
    }

    /// The rest of a string, after its opening quotation mark.
    fn text(&mut self) -> Result<(), JsonError> {
        loop {
            if self.is_done() {
                return Err(JsonError::UnexpectedEnd);
            }
            let byte = self.peek();
            match byte {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => self.escape()?,
                0..b' ' => return Err(self.error_in(JsonContext::Text)),
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        self.at += 1;
        match self.peek() {
            b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => self.at += 1,
            b'u' => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_ascii_hexdigit() {
                        return Err(self.error_in(JsonContext::HexEscape));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.error_in(JsonContext::Escape)),
        }
        Ok(())
    }

    fn word(&mut self, word: &'static str) -> Result<(), JsonError> {
        for expected in word.bytes() {
            if self.peek() != expected {
                let expected = char::from(expected);
                return Err(self.error_in(JsonContext::Word { word, expected }));
            }
            self.at += 1;
        }
        Ok(())
    }
}

/// A byte in quotation marks.
fn quoted_byte(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        byte => {
            let text = mainstay_gocompat::quote(char::from(byte).encode_utf8(&mut [0; 4]));
            format!("'{}'", text.trim_matches('"'))
        }
    }
}

/// The syntax error of a text, if it has one.
pub(crate) fn fault(json: &str) -> Option<JsonError> {
    read(json).err()
}

/// The syntax error of the first value of a text; ignores the text after it.
pub(crate) fn fault_of_first(json: &str) -> Option<JsonError> {
    let error = read(json).err()?;
    if json.bytes().all(is_blank) {
        return Some(JsonError::NoValue);
    }
    // Go's stream decoder does not scan the end of the text as a space.
    match error {
        JsonError::UnexpectedEnd => Some(JsonError::UnexpectedEof),
        JsonError::InvalidCharacter { found: b' ', .. } if ends_open(json) => {
            Some(JsonError::UnexpectedEof)
        }
        JsonError::InvalidCharacter { place: JsonContext::AfterDocument, .. } => None,
        error => Some(error),
    }
}

/// Whether a text ends inside a value: the syntax error is at its end then.
fn ends_open(json: &str) -> bool {
    let mut reader = Reader { bytes: json.as_bytes(), at: 0 };
    let _ = walk(&mut reader);
    reader.is_done()
}

/// Go's name for the JSON type of a valid text.
pub(crate) fn kind(json: &str) -> &'static str {
    match json.trim_ascii_start().as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "bool",
        Some(b'n') => "null",
        _ => "number",
    }
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn read(json: &str) -> Result<(), JsonError> {
    let mut reader = Reader { bytes: json.as_bytes(), at: 0 };
    walk(&mut reader)?;
    while !reader.is_done() && is_blank(reader.peek()) {
        reader.at += 1;
    }
    if reader.is_done() { Ok(()) } else { Err(reader.error_in(JsonContext::AfterDocument)) }
}

/// Scans one value.
fn walk(reader: &mut Reader<'_>) -> Result<(), JsonError> {
    // The open objects (true) and arrays (false).
    let mut open: Vec<bool> = Vec::new();
    let mut state = State::Value;
    loop {
        while !reader.is_done() && is_blank(reader.peek()) {
            reader.at += 1;
        }
        if state == State::AfterValue && open.is_empty() {
            return Ok(());
        }
        if reader.is_done() {
            return Err(JsonError::UnexpectedEnd);
        }
        let byte = reader.peek();
        state = match (state, byte) {
            (State::FirstKey, b'}') | (State::FirstItem, b']') => {
                reader.at += 1;
                open.pop();
                State::AfterValue
            }
            (State::FirstKey | State::Key, b'"') => {
                reader.at += 1;
                reader.text()?;
                State::Colon
            }
            (State::FirstKey | State::Key, _) => {
                return Err(reader.error_in(JsonContext::Key));
            }
            (State::Colon, b':') => {
                reader.at += 1;
                State::Value
            }
            (State::Colon, _) => return Err(reader.error_in(JsonContext::AfterKey)),
            (State::AfterValue, b',') => {
                reader.at += 1;
                if open.last() == Some(&true) { State::Key } else { State::Value }
            }
            (State::AfterValue, b'}' | b']') if open.last() == Some(&(byte == b'}')) => {
                reader.at += 1;
                open.pop();
                State::AfterValue
            }
            (State::AfterValue, _) if open.last() == Some(&true) => {
                return Err(reader.error_in(JsonContext::AfterField));
            }
            (State::AfterValue, _) => return Err(reader.error_in(JsonContext::AfterElement)),
            (State::Value | State::FirstItem, _) => value(reader, byte, &mut open)?,
        };
    }
}

/// Scans the beginning of a value; the whole value unless it is an object or an array.
fn value(reader: &mut Reader<'_>, byte: u8, open: &mut Vec<bool>) -> Result<State, JsonError> {
    match byte {
        b'{' | b'[' => {
            reader.at += 1;
            open.push(byte == b'{');
            return Ok(if byte == b'{' { State::FirstKey } else { State::FirstItem });
        }
        b'"' => {
            reader.at += 1;
            reader.text()?;
        }
        b'-' | b'0'..=b'9' => reader.number()?,
        b't' => reader.word("true")?,
        b'f' => reader.word("false")?,
        b'n' => reader.word("null")?,
        _ => return Err(reader.error_in(JsonContext::Value)),
    }
    Ok(State::AfterValue)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from upstream.
    const SEEN: &[(&str, &str)] = &[
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("nul", "invalid character ' ' in literal null (expecting 'l')"),
        ("-", "invalid character ' ' in numeric literal"),
        ("[1 2]", "invalid character '2' after array element"),
        ("{,}", "invalid character ',' looking for beginning of object key string"),
        (r#"{"a",1}"#, "invalid character ',' after object key"),
        (r#"{"a"}"#, "invalid character '}' after object key"),
        ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
        ("{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
        (r#"{"a":"\u12"}"#, "invalid character '\"' in \\u hexadecimal character escape"),
        (r#"{"a":"\x"}"#, "invalid character 'x' in string escape code"),
        ("{\"a\":\"\n\"}", "invalid character '\\n' in string literal"),
        (r#"{"a":01}"#, "invalid character '1' after object key:value pair"),
        (r#"{"a":1e}"#, "invalid character '}' in exponent of numeric literal"),
        (r#"{"a":1.}"#, "invalid character '}' after decimal point in numeric literal"),
        (r#"{"a": tru}"#, "invalid character '}' in literal true (expecting 'e')"),
        (r#"[{"a":1},]"#, "invalid character ']' looking for beginning of value"),
        (r#"{"a":1,}"#, "invalid character '}' looking for beginning of object key string"),
        ("{}x", "invalid character 'x' after top-level value"),
        ("[1}", "invalid character '}' after array element"),
    ];

    #[test]
    fn syntax_errors_have_the_text_of_go() {
        for (json, text) in SEEN {
            assert_eq!(fault(json).unwrap().to_string(), *text, "{json}");
        }
        for json in ["0", " [] ", r#"{"a":[1,-2.5e+3,null,true,"\u00e9\n"]}"#] {
            assert_eq!(fault(json), None, "{json}");
        }
    }

    #[test]
    fn stream_reader_stops_after_the_first_value() {
        for (json, text) in [
            ("", Some("EOF")),
            ("  ", Some("EOF")),
            ("{", Some("unexpected EOF")),
            ("nul", Some("unexpected EOF")),
            ("{} x", None),
            ("{}x", None),
            ("nux", Some("invalid character 'x' in literal null (expecting 'l')")),
        ] {
            let found = fault_of_first(json).map(|error| error.to_string());
            assert_eq!(found.as_deref(), text, "{json}");
        }
    }
}
