//! Fast path for valid JSON.
//!
//! As with YAML, this reader reports no errors. It gives up at the first text that may be invalid
//! or beyond a limit; `serde_json` then finds the error.

use super::{MAX_DEPTH, ScanResult, Unsupported};
use crate::{DuplicateKeys, Options, json::json_number};
use memchr::memchr2;
use serde_json::{Map, Value};

/// Reads the value that begins at byte `at`; also returns its end.
pub(crate) fn value(text: &str, at: usize, options: &Options) -> Option<(Value, usize)> {
    if options.duplicate_keys == DuplicateKeys::Refuse {
        return None;
    }
    let mut reader = JsonReader { text, bytes: text.as_bytes(), at, depth: 0, options };
    let value = reader.value().ok()?;
    Some((value, reader.at))
}

struct JsonReader<'t, 'o> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    depth: usize,
    options: &'o Options,
}

impl JsonReader<'_, '_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The next byte that is not white space.
    fn next(&mut self) -> ScanResult<u8> {
        while let Some(byte) = self.peek() {
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(Unsupported)
    }

    fn expect(&mut self, byte: u8) -> ScanResult<()> {
        if self.next()? != byte {
            return Err(Unsupported);
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str, value: Value) -> ScanResult<Value> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(Unsupported);
        }
        self.at += word.len();
        Ok(value)
    }

    fn value(&mut self) -> ScanResult<Value> {
        match self.next()? {
            b'{' => self.nested(Self::object),
            b'[' => self.nested(Self::list),
            b'"' => {
                let text = self.string()?;
                if text.len() > self.options.max_scalar_bytes {
                    return Err(Unsupported);
                }
                Ok(Value::String(text))
            }
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'n' => self.word("null", Value::Null),
            _ => Err(Unsupported),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> ScanResult<Value>) -> ScanResult<Value> {
        self.at += 1;
        self.depth += 1;
        if self.depth > self.options.max_depth.min(MAX_DEPTH) {
            return Err(Unsupported);
        }
        let value = read(self)?;
        self.at += 1;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> ScanResult<Value> {
        let mut map = Map::new();
        if self.next()? == b'}' {
            return Ok(Value::Object(map));
        }
        loop {
            if self.next()? != b'"' {
                return Err(Unsupported);
            }
            let name = self.string()?;
            self.expect(b':')?;
            let value = self.value()?;
            map.insert(name, value);
            match self.next()? {
                b',' => self.at += 1,
                b'}' => return Ok(Value::Object(map)),
                _ => return Err(Unsupported),
            }
        }
    }

    fn list(&mut self) -> ScanResult<Value> {
        let mut items = Vec::new();
        if self.next()? == b']' {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value()?);
            match self.next()? {
                b',' => self.at += 1,
                b']' => return Ok(Value::Array(items)),
                _ => return Err(Unsupported),
            }
        }
    }

    /// Reads a string with its quotes.
    fn string(&mut self) -> ScanResult<String> {
        self.at += 1;
        let end = self.next_special()?;
        let first = self.text.get(self.at..end).ok_or(Unsupported)?;
        let mut text = first.to_owned();
        self.at = end;
        while self.peek() == Some(b'\\') {
            self.at += 1;
            text.push(self.escape()?);
            let end = self.next_special()?;
            text.push_str(self.text.get(self.at..end).ok_or(Unsupported)?);
            self.at = end;
        }
        self.at += 1;
        Ok(text)
    }

    /// The next quote or backslash.
    fn next_special(&self) -> ScanResult<usize> {
        let rest = &self.bytes[self.at..];
        let length = memchr2(b'"', b'\\', rest).ok_or(Unsupported)?;
        let has_control = |chunk: &[u8]| chunk.iter().copied().fold(u8::MAX, u8::min) < 0x20;
        if rest[..length].chunks(4096).any(has_control) {
            Err(Unsupported)
        } else {
            Ok(self.at + length)
        }
    }

    fn escape(&mut self) -> ScanResult<char> {
        let escaped = self.peek().ok_or(Unsupported)?;
        self.at += 1;
        Ok(match escaped {
            b'"' | b'\\' | b'/' => char::from(escaped),
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let mut number = self.hex_code()?;
                let after_first = self.at;
                if (0xd800..0xdc00).contains(&number)
                    && self.bytes[after_first..].starts_with(b"\\u")
                {
                    self.at += 2;
                    match self.hex_code() {
                        Ok(low @ 0xdc00..0xe000) => {
                            number = 0x1_0000 + ((number - 0xd800) << 10) + (low - 0xdc00);
                        }
                        _ => self.at = after_first,
                    }
                }
                // Go replaces half of a surrogate pair by this character.
                char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => return Err(Unsupported),
        })
    }

    /// Reads the four digits after `\u`.
    fn hex_code(&mut self) -> ScanResult<u32> {
        let digits = self.text.get(self.at..self.at + 4).ok_or(Unsupported)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Unsupported);
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).map_err(|_| Unsupported)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> ScanResult<Value> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.digits();
        if whole == 0 || leading_zero && whole > 1 {
            return Err(Unsupported);
        }
        let mut integer = true;
        if self.peek() == Some(b'.') {
            self.at += 1;
            integer = false;
            if self.digits() == 0 {
                return Err(Unsupported);
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            integer = false;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(Unsupported);
            }
        }
        let text = self.text.get(start..self.at).ok_or(Unsupported)?;
        if integer {
            if let Ok(number) = text.parse::<i64>() {
                let signed = number == 0 && self.options.signed_zero && text.starts_with('-');
                return Ok(if signed { (-0.0).into() } else { number.into() });
            }
            if let Ok(number) = text.parse::<u64>() {
                return Ok(number.into());
            }
        }
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        number
            .and_then(|number| json_number(number, self.options))
            .map(Value::Number)
            .ok_or(Unsupported)
    }
}
