//! JSON without faults, read straight into a value.
//!
//! As with YAML, this reader decides nothing: at the first thing that is not plainly JSON inside
//! the bounds it gives up, and the library says what is wrong.

use super::{DEEPEST, Read, Unusual};
use crate::{DuplicateKeys, Options, json::json_number};
use memchr::memchr2;
use serde_json::{Map, Value};

/// The value that begins at byte `at`, and where it ends.
pub(crate) fn value(text: &str, at: usize, options: &Options) -> Option<(Value, usize)> {
    if options.duplicate_keys == DuplicateKeys::Refuse {
        return None;
    }
    let mut reader = Reader { text, bytes: text.as_bytes(), at, depth: 0, options };
    let value = reader.value().ok()?;
    Some((value, reader.at))
}

struct Reader<'t, 'o> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    depth: usize,
    options: &'o Options,
}

impl Reader<'_, '_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The next byte that is no blank.
    fn next(&mut self) -> Read<u8> {
        while let Some(byte) = self.peek() {
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(Unusual)
    }

    fn expect(&mut self, byte: u8) -> Read<()> {
        if self.next()? != byte {
            return Err(Unusual);
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str, value: Value) -> Read<Value> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(Unusual);
        }
        self.at += word.len();
        Ok(value)
    }

    fn value(&mut self) -> Read<Value> {
        match self.next()? {
            b'{' => self.nested(Self::object),
            b'[' => self.nested(Self::list),
            b'"' => {
                let text = self.string()?;
                if text.len() > self.options.max_scalar_bytes {
                    return Err(Unusual);
                }
                Ok(Value::String(text))
            }
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'n' => self.word("null", Value::Null),
            _ => Err(Unusual),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Read<Value>) -> Read<Value> {
        self.at += 1;
        self.depth += 1;
        if self.depth > self.options.max_depth.min(DEEPEST) {
            return Err(Unusual);
        }
        let value = read(self)?;
        self.at += 1;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Read<Value> {
        let mut map = Map::new();
        if self.next()? == b'}' {
            return Ok(Value::Object(map));
        }
        loop {
            if self.next()? != b'"' {
                return Err(Unusual);
            }
            let name = self.string()?;
            self.expect(b':')?;
            let value = self.value()?;
            map.insert(name, value);
            match self.next()? {
                b',' => self.at += 1,
                b'}' => return Ok(Value::Object(map)),
                _ => return Err(Unusual),
            }
        }
    }

    fn list(&mut self) -> Read<Value> {
        let mut items = Vec::new();
        if self.next()? == b']' {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value()?);
            match self.next()? {
                b',' => self.at += 1,
                b']' => return Ok(Value::Array(items)),
                _ => return Err(Unusual),
            }
        }
    }

    /// A text, from its first quote to behind the last.
    fn string(&mut self) -> Read<String> {
        self.at += 1;
        let end = self.stretch()?;
        let first = self.text.get(self.at..end).ok_or(Unusual)?;
        let mut text = first.to_owned();
        self.at = end;
        while self.peek() == Some(b'\\') {
            self.at += 1;
            text.push(self.escape()?);
            let end = self.stretch()?;
            text.push_str(self.text.get(self.at..end).ok_or(Unusual)?);
            self.at = end;
        }
        self.at += 1;
        Ok(text)
    }

    /// The end of the characters that stand for themselves: a quote or a backslash.
    fn stretch(&self) -> Read<usize> {
        let rest = &self.bytes[self.at..];
        let length = memchr2(b'"', b'\\', rest).ok_or(Unusual)?;
        let control = |stretch: &[u8]| stretch.iter().copied().fold(u8::MAX, u8::min) < 0x20;
        if rest[..length].chunks(4096).any(control) { Err(Unusual) } else { Ok(self.at + length) }
    }

    fn escape(&mut self) -> Read<char> {
        let escaped = self.peek().ok_or(Unusual)?;
        self.at += 1;
        Ok(match escaped {
            b'"' | b'\\' | b'/' => char::from(escaped),
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let mut number = self.code()?;
                let behind = self.at;
                if (0xd800..0xdc00).contains(&number) && self.bytes[behind..].starts_with(b"\\u") {
                    self.at += 2;
                    match self.code() {
                        Ok(low @ 0xdc00..0xe000) => {
                            number = 0x1_0000 + ((number - 0xd800) << 10) + (low - 0xdc00);
                        }
                        _ => self.at = behind,
                    }
                }
                // Half of a pair is no character; Go puts this one for it.
                char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => return Err(Unusual),
        })
    }

    /// The four digits behind `\u`.
    fn code(&mut self) -> Read<u32> {
        let digits = self.text.get(self.at..self.at + 4).ok_or(Unusual)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Unusual);
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).map_err(|_| Unusual)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Read<Value> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.digits();
        if whole == 0 || leading_zero && whole > 1 {
            return Err(Unusual);
        }
        let mut integer = true;
        if self.peek() == Some(b'.') {
            self.at += 1;
            integer = false;
            if self.digits() == 0 {
                return Err(Unusual);
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            integer = false;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(Unusual);
            }
        }
        let text = self.text.get(start..self.at).ok_or(Unusual)?;
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
            .ok_or(Unusual)
    }
}
