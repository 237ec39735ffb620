//! What Go's JSON reader finds wrong with a text, in its words, which end up in conditions.

/// Where the reader stands.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Value,
    /// A value, or the end of an array that has none so far.
    FirstItem,
    /// A key, or the end of an object that has none so far.
    FirstKey,
    Key,
    Colon,
    AfterValue,
}

/// Reads the bytes of a text one by one.
struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    /// The next byte; a blank behind the end, as the original has it.
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(b' ')
    }

    fn is_done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn wrong(&self, context: &str) -> String {
        format!("invalid character {} {context}", shown(self.peek()))
    }

    fn digits(&mut self) {
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
    }

    /// A number, whose first byte is next.
    fn number(&mut self) -> Result<(), String> {
        if self.peek() == b'-' {
            self.at += 1;
        }
        match self.peek() {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            _ => return Err(self.wrong("in numeric literal")),
        }
        if self.peek() == b'.' {
            self.at += 1;
            if !self.peek().is_ascii_digit() {
                return Err(self.wrong("after decimal point in numeric literal"));
            }
            self.digits();
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            if !self.peek().is_ascii_digit() {
                return Err(self.wrong("in exponent of numeric literal"));
            }
            self.digits();
        }
        Ok(())
    }

    /// The rest of a text, behind its first quotation mark.
    fn text(&mut self) -> Result<(), String> {
        loop {
            if self.is_done() {
                return Err(END.to_owned());
            }
            let byte = self.peek();
            match byte {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => self.escape()?,
                0..b' ' => return Err(self.wrong("in string literal")),
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        self.at += 1;
        match self.peek() {
            b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => self.at += 1,
            b'u' => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_ascii_hexdigit() {
                        return Err(self.wrong("in \\u hexadecimal character escape"));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.wrong("in string escape code")),
        }
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), String> {
        for expected in word.bytes() {
            if self.peek() != expected {
                let expected = char::from(expected);
                let context = format!("in literal {word} (expecting '{expected}')");
                return Err(self.wrong(&context));
            }
            self.at += 1;
        }
        Ok(())
    }
}

const END: &str = "unexpected end of JSON input";

/// A byte in quotation marks.
fn shown(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        byte => {
            let text = mainstay_gocompat::quote(char::from(byte).encode_utf8(&mut [0; 4]));
            format!("'{}'", text.trim_matches('"'))
        }
    }
}

/// What is wrong with the syntax of a text, if anything.
pub(crate) fn fault(json: &str) -> Option<String> {
    read(json).err()
}

/// The same for the first value of a text, where nothing behind it is looked at.
pub(crate) fn fault_of_first(json: &str) -> Option<String> {
    let error = read(json).err()?;
    if json.bytes().all(is_blank) {
        return Some("EOF".to_owned());
    }
    // A reader of streams does not try what stands behind the end.
    let ended = error == END || error.starts_with("invalid character ' '") && ends_open(json);
    match error.as_str() {
        _ if ended => Some("unexpected EOF".to_owned()),
        text if text.ends_with("after top-level value") => None,
        _ => Some(error),
    }
}

/// Whether a text ends inside a value; the fault is behind its end then.
fn ends_open(json: &str) -> bool {
    let mut reader = Reader { bytes: json.as_bytes(), at: 0 };
    let _ = walk(&mut reader);
    reader.is_done()
}

/// Go's word for the type of a sound text.
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

fn read(json: &str) -> Result<(), String> {
    let mut reader = Reader { bytes: json.as_bytes(), at: 0 };
    walk(&mut reader)?;
    while !reader.is_done() && is_blank(reader.peek()) {
        reader.at += 1;
    }
    if reader.is_done() { Ok(()) } else { Err(reader.wrong("after top-level value")) }
}

/// Reads one value.
fn walk(reader: &mut Reader<'_>) -> Result<(), String> {
    // Open objects (true) and arrays.
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
            return Err(END.to_owned());
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
                return Err(reader.wrong("looking for beginning of object key string"));
            }
            (State::Colon, b':') => {
                reader.at += 1;
                State::Value
            }
            (State::Colon, _) => return Err(reader.wrong("after object key")),
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
                return Err(reader.wrong("after object key:value pair"));
            }
            (State::AfterValue, _) => return Err(reader.wrong("after array element")),
            (State::Value | State::FirstItem, _) => value(reader, byte, &mut open)?,
        };
    }
}

/// The beginning of a value, all of it unless it is an object or an array.
fn value(reader: &mut Reader<'_>, byte: u8, open: &mut Vec<bool>) -> Result<State, String> {
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
        _ => return Err(reader.wrong("looking for beginning of value")),
    }
    Ok(State::AfterValue)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seen from the original.
    const SEEN: &[(&str, &str)] = &[
        ("", END),
        ("{", END),
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
    fn faults_are_told_in_the_originals_words() {
        for (json, text) in SEEN {
            assert_eq!(fault(json).as_deref(), Some(*text), "{json}");
        }
        for json in ["0", " [] ", r#"{"a":[1,-2.5e+3,null,true,"\u00e9\n"]}"#] {
            assert_eq!(fault(json), None, "{json}");
        }
    }

    #[test]
    fn a_reader_of_streams_stops_behind_the_first_value() {
        for (json, text) in [
            ("", Some("EOF")),
            ("  ", Some("EOF")),
            ("{", Some("unexpected EOF")),
            ("nul", Some("unexpected EOF")),
            ("{} x", None),
            ("{}x", None),
            ("nux", Some("invalid character 'x' in literal null (expecting 'l')")),
        ] {
            assert_eq!(fault_of_first(json).as_deref(), text, "{json}");
        }
    }
}
