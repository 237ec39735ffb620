//! Upstream's messages for texts that are neither JSON nor YAML.
//!
//! These functions run only after an error: they parse the text again, to find the place at which
//! Go's decoders stop. That is not always where our parsers stop.

use crate::go_format;
use mainstay_yaml::{NodeFault, Options, YamlError, YamlFault, sections};

/// How many bytes upstream searches for the brace that makes a text JSON.
const GUESS: usize = 4096;
/// Longer lines, in bytes, are not parsed for a message.
const LONG_LINE: usize = 1024;
/// The maximum nesting that Go's decoders allow.
const MAX_DEPTH: usize = 10_000;

/// Upstream's message for a file that is readable up to document number `read`.
pub(crate) fn words(bytes: &[u8], read: usize, error: &YamlError) -> String {
    let start = &bytes[..bytes.len().min(GUESS)];
    if start.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{') {
        let (values, fault) = json_stream(bytes);
        // We stop at bytes that are not UTF-8 first; Go's decoder does not.
        let any = matches!(error.fault, YamlFault::NotUtf8 { .. });
        if (values == read || any)
            && let Some((message, offset)) = fault
        {
            return match offset {
                // After two values Go takes the text for JSON, and leaves out the offset.
                Some(offset) if values <= 1 => format!("json: offset {offset}: {message}"),
                _ => message,
            };
        }
    }
    if matches!(error.fault, YamlFault::Separator { .. }) {
        return error.fault.to_string();
    }
    if let Some(message) = fault(bytes, error) {
        return format!("error converting YAML to JSON: yaml: {message}");
    }
    if let Some(words) = first_value(bytes, error).or_else(|| odd_key(bytes, error)) {
        return words;
    }
    // A value that JSON cannot express is found after the YAML decoder has run.
    let of_json = matches!(error.fault, YamlFault::Node(NodeFault::Number { .. }));
    let from = if of_json { "" } else { "yaml: " };
    format!("error converting YAML to JSON: {from}{}", error.fault)
}

/// The error of Go's YAML parser for the section with an error, if it refuses that section. For a
/// text that is not UTF-8, the error for the first section that it refuses.
fn fault(bytes: &[u8], error: &YamlError) -> Option<String> {
    if bytes.starts_with(&[0xff, 0xfe]) {
        // Upstream appends a line feed of one byte.
        return Some("incomplete UTF-16 character".to_owned());
    }
    if std::str::from_utf8(bytes).is_ok() {
        return libyaml(section_of(bytes, error).0);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    sections(&text).map_while(Result::ok).find_map(|section| libyaml(&bytes[section.bytes]))
}

/// The error of Go's YAML parser for a document. Upstream ends each line with a line break.
fn libyaml(document: &[u8]) -> Option<String> {
    let fault = if document.ends_with(b"\n") {
        mainstay_yaml::libyaml::find_error(document)
    } else {
        mainstay_yaml::libyaml::find_error(&[document, b"\n"].concat())
    };
    fault.map(|fault| fault.to_string())
}

/// The section that holds an error, and the line on which it begins.
fn section_of<'b>(bytes: &'b [u8], error: &YamlError) -> (&'b [u8], usize) {
    let (mut document, mut first) = (bytes, 1);
    if let Ok(text) = std::str::from_utf8(bytes) {
        for section in sections(text).map_while(Result::ok) {
            if section.line > error.line {
                break;
            }
            (document, first) = (&bytes[section.bytes], section.line);
        }
    }
    (document, first)
}

/// The section that holds an error, the offset of its line in the section, and the offset in the
/// line.
fn split<'b>(bytes: &'b [u8], error: &YamlError) -> Option<(&'b str, usize, usize)> {
    let (document, first) = section_of(bytes, error);
    let document = std::str::from_utf8(document).ok()?;
    let row = error.line.checked_sub(first)?;
    let start: usize = document.split_inclusive('\n').take(row).map(str::len).sum();
    let rest = document.get(start..)?;
    let column = error.column.saturating_sub(1);
    Some((document, start, rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at)))
}

/// Upstream's message for an invalid key, which repeats the key or its value. Only for keys and
/// values on one line.
fn odd_key(bytes: &[u8], error: &YamlError) -> Option<String> {
    let null = match error.fault {
        YamlFault::Node(NodeFault::NullKey) => true,
        YamlFault::Node(NodeFault::CollectionKey) => false,
        _ => return None,
    };
    let (document, start, column) = split(bytes, error)?;
    let line = document[start + column..].lines().next().filter(|line| line.len() <= LONG_LINE)?;
    let read = |text: &str| mainstay_yaml::one(text.as_bytes(), &Options::default()).ok();
    let from = "error converting YAML to JSON:";
    if null {
        let value = read(line.split_once(": ")?.1)?;
        let value = go_format::syntax(&value);
        let key = "unsupported map key of type: %!s(<nil>), key: <nil>";
        return Some(format!("{from} {key}, value: {value}"));
    }
    let key = line.match_indices([']', '}']).find_map(|(at, _)| {
        let value = read(&line[..=at])?;
        (value.is_array() || value.is_object()).then_some(value)
    })?;
    Some(format!("{from} yaml: invalid map key: {}", go_format::syntax(&key)))
}

/// Upstream's message for text behind the first value of a document. Upstream ignores that text,
/// and reports only a value that is not an object.
fn first_value(bytes: &[u8], error: &YamlError) -> Option<String> {
    if error.fault != YamlFault::BehindDocument {
        return None;
    }
    let (document, start, column) = split(bytes, error)?;
    let value = mainstay_yaml::one(&document.as_bytes()[..start + column], &Options::default());
    match value {
        Ok(value) if !value.is_object() && !value.is_null() => {
            let found = mainstay_gocompat::values::json_kind(&value);
            let words = go_format::not_an_object(found, &go_format::json(&value, true));
            Some(format!("error unmarshaling JSON: while decoding JSON: {words}"))
        }
        _ => None,
    }
}

/// Upstream's message for an empty document: that of the YAML parser, or else `words`.
pub(crate) fn of_nothing(document: &[u8], words: &str) -> String {
    match libyaml(document) {
        Some(message) => format!("error converting YAML to JSON: yaml: {message}"),
        None => words.to_owned(),
    }
}

/// The error of Go's YAML decoder for a separate text.
pub(crate) fn of_text(bytes: &[u8], error: &YamlError) -> String {
    let fault = mainstay_yaml::libyaml::find_error(bytes);
    fault.map_or_else(|| error.fault.to_string(), |fault| fault.to_string())
}

/// A fault, and how many bytes were read; none where the text ends too early.
pub(crate) type Fault = (String, Option<usize>);

/// Go's error for a text that must be one value, if Go refuses it.
pub(crate) fn value_fault(bytes: &[u8]) -> Option<String> {
    let mut scanner = Scanner { bytes, at: 0 };
    let fault = match scanner.value() {
        Ok(()) => {
            scanner.blanks();
            scanner.peek().map(|_| scanner.fault("after top-level value"))
        }
        Err(fault) => Some(fault),
    };
    fault.map(|(message, place)| place.map_or_else(|| ENDS_EARLY.to_owned(), |_| message))
}

/// Go's error for a text that ends inside a value.
const ENDS_EARLY: &str = "unexpected end of JSON input";

/// Scans a stream of JSON values like Go's decoder. Returns the number of values, and the fault
/// that stops it.
pub(crate) fn json_stream(bytes: &[u8]) -> (usize, Option<Fault>) {
    let mut scanner = Scanner { bytes, at: 0 };
    let mut values = 0;
    loop {
        scanner.blanks();
        if scanner.peek().is_none() {
            return (values, None);
        }
        match scanner.value() {
            Ok(()) => values += 1,
            Err(fault) => return (values, Some(fault)),
        }
    }
}

struct Scanner<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The fault of the current byte.
    fn fault(&self, context: &str) -> Fault {
        let Some(byte) = self.peek() else { return ("unexpected EOF".to_owned(), None) };
        (format!("invalid character {} {context}", quote_byte(byte)), Some(self.at + 1))
    }

    /// Skips one value. The explicit stack has `true` for objects.
    fn value(&mut self) -> Result<(), Fault> {
        let mut stack: Vec<bool> = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                Some(open @ (b'{' | b'[')) => {
                    if stack.len() >= MAX_DEPTH {
                        let fault = self.fault("exceeded max depth");
                        return Err(fault);
                    }
                    self.at += 1;
                    self.blanks();
                    let object = open == b'{';
                    if self.peek() == Some(if object { b'}' } else { b']' }) {
                        self.at += 1;
                    } else {
                        stack.push(object);
                        if object {
                            self.key()?;
                        }
                        continue;
                    }
                }
                Some(b'"') => self.string()?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.literal("true")?,
                Some(b'f') => self.literal("false")?,
                Some(b'n') => self.literal("null")?,
                _ => return Err(self.fault("looking for beginning of value")),
            }
            loop {
                let Some(&object) = stack.last() else { return Ok(()) };
                self.blanks();
                match (self.peek(), object) {
                    (Some(b','), _) => {
                        self.at += 1;
                        if object {
                            self.blanks();
                            self.key()?;
                        }
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.at += 1;
                        stack.pop();
                    }
                    (_, true) => return Err(self.fault("after object key:value pair")),
                    (_, false) => return Err(self.fault("after array element")),
                }
            }
        }
    }

    /// Skips a key and its colon.
    fn key(&mut self) -> Result<(), Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.fault("looking for beginning of object key string"));
        }
        self.string()?;
        self.blanks();
        if self.peek() != Some(b':') {
            return Err(self.fault("after object key"));
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), Fault> {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => {
                            self.at += 1;
                        }
                        Some(b'u') => {
                            self.at += 1;
                            for _ in 0..4 {
                                if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                                    let context = "in \\u hexadecimal character escape";
                                    return Err(self.fault(context));
                                }
                                self.at += 1;
                            }
                        }
                        _ => return Err(self.fault("in string escape code")),
                    }
                }
                Some(0x20..) => self.at += 1,
                _ => return Err(self.fault("in string literal")),
            }
        }
    }

    fn digits(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at > start
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else if !self.digits() {
            return Err(self.fault("in numeric literal"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if !self.digits() {
                return Err(self.fault("after decimal point in numeric literal"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !self.digits() {
                return Err(self.fault("in exponent of numeric literal"));
            }
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Result<(), Fault> {
        for expected in word.chars() {
            if self.peek().map(char::from) != Some(expected) {
                return Err(self.fault(&format!("in literal {word} (expecting '{expected}')")));
            }
            self.at += 1;
        }
        Ok(())
    }
}

/// A byte in quotes, as Go's messages contain it.
fn quote_byte(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => "'\\\\'".to_owned(),
        0x07 => "'\\a'".to_owned(),
        0x08 => "'\\b'".to_owned(),
        0x0c => "'\\f'".to_owned(),
        b'\n' => "'\\n'".to_owned(),
        b'\r' => "'\\r'".to_owned(),
        b'\t' => "'\\t'".to_owned(),
        0x0b => "'\\v'".to_owned(),
        0..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
        // Go prints a byte as the character of that number; some of them are not printable.
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::json_stream;

    #[test]
    fn json_errors_have_the_words_of_go() {
        let table: &[(&str, usize, &str, Option<usize>)] = &[
            (
                "{\"a\":1}{\"a\":1,}",
                1,
                "invalid character '}' looking for beginning of object key string",
                Some(15),
            ),
            ("{} ,", 1, "invalid character ',' looking for beginning of value", Some(4)),
            ("{\"a\" 1}", 0, "invalid character '1' after object key", Some(6)),
            ("{\"a\":1 \"", 0, "invalid character '\"' after object key:value pair", Some(8)),
            ("{\"a\":[1 2]}", 0, "invalid character '2' after array element", Some(9)),
            ("{\"a\":\"\n\"}", 0, "invalid character '\\n' in string literal", Some(7)),
            ("{\"a\":\"\\q\"}", 0, "invalid character 'q' in string escape code", Some(8)),
            (
                "{\"a\":\"\\u12x4\"}",
                0,
                "invalid character 'x' in \\u hexadecimal character escape",
                Some(11),
            ),
            ("{\"a\":-x}", 0, "invalid character 'x' in numeric literal", Some(7)),
            (
                "{\"a\":1.x}",
                0,
                "invalid character 'x' after decimal point in numeric literal",
                Some(8),
            ),
            ("{\"a\":1ex}", 0, "invalid character 'x' in exponent of numeric literal", Some(8)),
            ("{\"a\":trub}", 0, "invalid character 'b' in literal true (expecting 'e')", Some(9)),
            (
                "{\"a\":\u{e9}}",
                0,
                "invalid character '\u{c3}' looking for beginning of value",
                Some(6),
            ),
            ("{\"a\":1", 0, "unexpected EOF", None),
        ];
        for (text, values, message, offset) in table {
            let expected = (*values, Some(((*message).to_owned(), *offset)));
            assert_eq!(json_stream(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(json_stream(b" {} [1, {}] \"a\" null 1.5e3 "), (5, None));
        let deep = "[".repeat(10_001);
        let (_, fault) = json_stream(deep.as_bytes());
        assert_eq!(
            fault.unwrap(),
            ("invalid character '[' exceeded max depth".to_owned(), Some(10_001))
        );
    }
}
