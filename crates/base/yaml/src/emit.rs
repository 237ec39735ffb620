//! YAML emitter: values as YAML text in the form that kubectl prints.
//!
//! Block style, keys in natural order (`a2` before `a10`), two columns per level, lists at the
//! column of their key. Texts have no quotes where they are unambiguous, literal blocks where they
//! have line breaks, and are folded beyond column 80. These are the rules of upstream's emitter, so
//! output is the same byte for byte.

use crate::scalar::{go_float64, is_plain_text};
use memchr::{memchr, memchr2, memchr3_iter};
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// Beyond this column, blanks become line breaks where the style allows it.
const WIDTH: usize = 80;
/// Longer keys are written after a `?`.
const SIMPLE_KEY: usize = 128;
/// Columns per level.
const INDENT: usize = 2;
/// Indentation, copied in blocks of this length.
const BLANKS: &str = "                                                                ";

/// Formats a value as one YAML document without a separator; it ends with a line break.
pub fn to_string(value: &Value) -> String {
    let mut out = Emitter { text: String::new(), column: 0, whitespace: true, indention: true };
    out.node(value, None, false);
    if out.column > 0 {
        out.line_break();
    }
    out.text
}

/// The text so far, and the state of its last line.
struct Emitter {
    text: String,
    /// In characters.
    column: usize,
    /// The last character is a blank, or none is on the line yet.
    whitespace: bool,
    /// The line has only indentation and the indicators `-`, `?` and `:` so far.
    indention: bool,
}

/// The style in which a text is written.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// The indentation of the content of a node at indentation `indent` (`None`: the document).
fn content_indent(indent: Option<usize>, flow: bool) -> usize {
    match indent {
        None if flow => INDENT,
        None => 0,
        Some(indent) => indent + INDENT,
    }
}

impl Emitter {
    /// Writes a node of a collection at indentation `indent`. `in_map` says that it is the value of
    /// a mapping's field.
    fn node(&mut self, value: &Value, indent: Option<usize>, in_map: bool) {
        match value {
            Value::Null => self.word("null"),
            Value::Bool(flag) => self.word(if *flag { "true" } else { "false" }),
            Value::Number(number) if number.is_f64() => {
                self.word(&go_float64(number.as_f64().unwrap_or_default()));
            }
            Value::Number(number) => self.word(&number.to_string()),
            Value::String(text) => self.string(text, content_indent(indent, true), false),
            Value::Array(items) if items.is_empty() => self.word("[]"),
            Value::Object(fields) if fields.is_empty() => self.word("{}"),
            Value::Array(items) => {
                // Lists in a mapping are written at the column of their key.
                let indentless = in_map && !self.indention;
                let inner = match indent {
                    Some(indent) if indentless => indent,
                    _ => content_indent(indent, false),
                };
                for item in items {
                    self.indent(inner);
                    self.indicator("-", true, true);
                    self.node(item, Some(inner), false);
                }
            }
            Value::Object(fields) => self.mapping(fields, content_indent(indent, false)),
        }
    }

    fn mapping(&mut self, fields: &Map<String, Value>, indent: usize) {
        // Keys of letters alone are in upstream's order already.
        if fields.keys().all(|name| name.bytes().all(|byte| byte.is_ascii_alphabetic())) {
            fields.iter().for_each(|(name, value)| self.field(name, value, indent));
        } else {
            for (name, value) in sort_fields(fields.iter().collect()) {
                self.field(name, value, indent);
            }
        }
    }

    fn field(&mut self, name: &str, value: &Value, indent: usize) {
        self.indent(indent);
        if name.len() <= SIMPLE_KEY && !name.contains(is_break) {
            self.string(name, content_indent(Some(indent), true), true);
            self.indicator(":", false, false);
        } else {
            self.indicator("?", true, true);
            self.string(name, content_indent(Some(indent), true), false);
            self.indent(indent);
            self.indicator(":", true, true);
        }
        self.node(value, Some(indent), true);
    }

    /// Writes a text in the first style that can hold it.
    fn string(&mut self, text: &str, indent: usize, key: bool) {
        let styles = PossibleStyles::for_text(text);
        let preferred = if memchr(b'\n', text.as_bytes()).is_some() {
            Style::Literal
        } else if is_plain_text(text) && !(key && text == "<<") {
            Style::Plain
        } else {
            Style::Double
        };
        let mut style = if key && styles.line_breaks { Style::Double } else { preferred };
        if style == Style::Plain && !styles.plain {
            style = Style::Single;
        }
        if (style == Style::Single && !styles.single)
            || (style == Style::Literal && (!styles.block || key))
        {
            style = Style::Double;
        }
        match style {
            Style::Plain => {
                self.gap();
                self.folded(text, indent, !key, false);
            }
            Style::Single => {
                self.indicator("'", true, false);
                self.folded(text, indent, !key, true);
                self.indicator("'", false, false);
            }
            Style::Double => self.double_quoted(text, indent, !key),
            // It sets `whitespace` and `indention` itself.
            Style::Literal => return self.literal(text, indent),
        }
        self.whitespace = false;
        self.indention = false;
    }

    /// Writes the characters of a plain or single-quoted text and breaks long lines at single
    /// blanks.
    fn folded(&mut self, text: &str, indent: usize, fold: bool, quoted: bool) {
        // Without blanks and quotes there is nothing to break or double.
        if !text.is_empty()
            && memchr2(b' ', if quoted { b'\'' } else { b' ' }, text.as_bytes()).is_none()
        {
            self.put_text(text);
            self.indention = false;
            return;
        }
        if text.is_ascii() && (!quoted || memchr(b'\'', text.as_bytes()).is_none()) {
            return self.folded_ascii(text, indent, fold, quoted);
        }
        let mut spaces = false;
        let mut rest = text.char_indices().peekable();
        while let Some((at, c)) = rest.next() {
            let next = rest.peek().map(|&(_, next)| next);
            if c == ' ' {
                let inside = !quoted || (at > 0 && next.is_some());
                if fold && !spaces && self.column > WIDTH && inside && next != Some(' ') {
                    self.indent(indent);
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                if quoted && c == '\'' {
                    self.put(c);
                }
                self.put(c);
                self.indention = false;
                spaces = false;
            }
        }
    }

    /// As [`Self::folded`] for ASCII without quotes: it writes whole lines at once.
    fn folded_ascii(&mut self, text: &str, indent: usize, fold: bool, quoted: bool) {
        let bytes = text.as_bytes();
        let mut from = 0;
        while let Some(end) = self.fold_position(bytes, from, quoted).filter(|_| fold) {
            self.put_ascii(&text[from..end]);
            self.indention &= bytes[from..end].iter().all(|&byte| byte == b' ');
            self.indent(indent);
            from = end + 1;
        }
        self.put_ascii(&text[from..]);
        self.indention &= bytes[from..].iter().all(|&byte| byte == b' ');
    }

    /// The blank at which the line from byte `from` is broken: the first one beyond the last column
    /// without a blank beside it. In quotes it is not the first or last character of the text.
    fn fold_position(&self, text: &[u8], from: usize, quoted: bool) -> Option<usize> {
        let is_blank = |at: usize| text.get(at) == Some(&b' ');
        let mut at = from + (WIDTH + 1).saturating_sub(self.column);
        loop {
            at += memchr(b' ', text.get(at..)?)?;
            let beside = is_blank(at + 1) || (at > 0 && is_blank(at - 1));
            let inside = !quoted || (at > 0 && at + 1 < text.len());
            if inside && !beside {
                return Some(at);
            }
            at += 1;
        }
    }

    fn double_quoted(&mut self, text: &str, indent: usize, fold: bool) {
        self.indicator("\"", true, false);
        let mut spaces = false;
        let mut rest = text.char_indices().peekable();
        while let Some((at, c)) = rest.next() {
            let next = rest.peek().map(|&(_, next)| next);
            if !printable(c) || is_break(c) || c == '"' || c == '\\' {
                self.escape(c);
                spaces = false;
            } else if c == ' ' {
                if fold && !spaces && self.column > WIDTH && at > 0 && next.is_some() {
                    self.indent(indent);
                    if next == Some(' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = false;
            }
        }
        self.indicator("\"", false, false);
    }

    fn escape(&mut self, c: char) {
        self.put('\\');
        let short = match c {
            '\0' => '0',
            '\x07' => 'a',
            '\x08' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\x0b' => 'v',
            '\x0c' => 'f',
            '\r' => 'r',
            '\x1b' => 'e',
            '"' | '\\' => c,
            '\u{85}' => 'N',
            '\u{a0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ => {
                let code = u32::from(c);
                let digits = match code {
                    0..=0xff => format!("x{code:02X}"),
                    0x100..=0xffff => format!("u{code:04X}"),
                    0x1_0000.. => format!("U{code:08X}"),
                };
                digits.chars().for_each(|digit| self.put(digit));
                return;
            }
        };
        self.put(short);
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.indicator("|", true, false);
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.put('2');
        }
        let mut backwards = text.chars().rev();
        match (backwards.next().is_some_and(is_break), backwards.next()) {
            (false, _) => self.put('-'),
            (true, None) => self.put('+'),
            (true, Some(c)) if is_break(c) => self.put('+'),
            (true, Some(_)) => {}
        }
        self.line_break();
        let mut rest = Some(text);
        while let Some(lines) = rest {
            let end = memchr(b'\n', lines.as_bytes());
            let line = &lines[..end.unwrap_or(lines.len())];
            if !line.is_empty() {
                self.indent(indent);
                // The column in bytes is enough, because a line break follows.
                self.put_ascii(line);
                self.whitespace = false;
                self.indention = false;
            }
            if end.is_some() {
                self.line_break();
            }
            rest = end.map(|end| &lines[end + 1..]);
        }
    }

    /// Writes a word that needs no quotes.
    fn word(&mut self, word: &str) {
        self.indicator(word, true, false);
    }

    /// Writes an indicator. `separate` puts a blank before it; `indention` says that it may open a
    /// line, like `- `.
    fn indicator(&mut self, indicator: &str, separate: bool, indention: bool) {
        if separate {
            self.gap();
        }
        self.put_ascii(indicator);
        self.whitespace = false;
        self.indention = self.indention && indention;
    }

    fn gap(&mut self) {
        if !self.whitespace {
            self.put(' ');
        }
    }

    /// Moves to the column `indent`, on a new line unless the current one has only indentation.
    fn indent(&mut self, indent: usize) {
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.line_break();
        }
        while self.column < indent {
            let blanks = (indent - self.column).min(BLANKS.len());
            self.put_ascii(&BLANKS[..blanks]);
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn line_break(&mut self) {
        self.text.push('\n');
        self.column = 0;
        self.whitespace = true;
        self.indention = true;
    }

    fn put_ascii(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.len();
    }

    fn put_text(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.chars().count();
    }

    fn put(&mut self, c: char) {
        self.text.push(c);
        self.column += 1;
    }
}

/// The styles that can hold a text.
#[expect(clippy::struct_excessive_bools, reason = "four independent facts about a text")]
struct PossibleStyles {
    line_breaks: bool,
    plain: bool,
    single: bool,
    block: bool,
}

impl PossibleStyles {
    fn for_text(text: &str) -> Self {
        let mut styles = Self { line_breaks: false, plain: true, single: true, block: true };
        if text.is_empty() {
            styles.block = false;
            return styles;
        }
        if is_unambiguous(text.as_bytes()) {
            return styles;
        }
        if let Some(styles) = Self::for_ascii(text.as_bytes()) {
            return styles;
        }
        if text.starts_with("---") || text.starts_with("...") {
            styles.plain = false;
        }
        let (mut previous, mut after_blank) = (None, true);
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            let next = rest.peek().copied();
            let before_blank = next.is_none_or(|next| next == ' ' || next == '\t');
            let indicator = match c {
                '#' => after_blank,
                ':' => before_blank,
                _ if previous.is_some() => false,
                ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%'
                | '@' | '`' => true,
                '?' | '-' => before_blank,
                _ => false,
            };
            if indicator {
                styles.plain = false;
            }
            if !printable(c) {
                styles.require_escapes();
            }
            let edge = previous.is_none() || next.is_none();
            if c == ' ' {
                styles.plain &= !edge;
                styles.block &= next.is_some();
                if previous.is_some_and(is_break) {
                    styles.plain = false;
                    styles.single = false;
                }
            } else if is_break(c) {
                styles.line_breaks = true;
                styles.plain = false;
                // Readers disagree about the rarer line breaks, so these are escaped.
                if previous == Some(' ') || c != '\n' {
                    styles.require_escapes();
                }
            }
            after_blank = c == ' ' || c == '\t' || is_break(c);
            previous = Some(c);
        }
        styles
    }

    /// As [`Self::for_text`] for printable ASCII and line breaks, where only few characters matter.
    fn for_ascii(text: &[u8]) -> Option<Self> {
        let is_printable = |byte: u8| matches!(byte, b'\n' | b' '..=b'~');
        let all = |stride: &[u8]| stride.iter().fold(true, |all, &byte| all & is_printable(byte));
        let (&[first, ..], &[.., last]) = (text, text) else { return None };
        if !text.chunks(1024).all(all) {
            return None;
        }
        let mut styles = Self { line_breaks: false, plain: true, single: true, block: true };
        let blank_at = |at: usize| matches!(text.get(at), None | Some(b' '));
        let is_indicator = match first {
            b',' | b'[' | b']' | b'{' | b'}' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\'' | b'"'
            | b'%' | b'@' | b'`' => true,
            b'?' | b'-' => blank_at(1),
            _ => false,
        };
        let is_marker = text.starts_with(b"---") || text.starts_with(b"...");
        if is_indicator || is_marker || first == b' ' || last == b' ' {
            styles.plain = false;
        }
        styles.block &= last != b' ';
        for at in memchr3_iter(b':', b'#', b'\n', text) {
            match text[at] {
                b':' => styles.plain &= !blank_at(at + 1),
                b'#' => styles.plain &= at > 0 && !matches!(text[at - 1], b' ' | b'\n'),
                _ => {
                    styles.line_breaks = true;
                    styles.plain = false;
                    if text.get(at + 1) == Some(&b' ') {
                        styles.single = false;
                    }
                    if at > 0 && text[at - 1] == b' ' {
                        styles.require_escapes();
                    }
                }
            }
        }
        Some(styles)
    }

    /// Excludes all styles without escapes.
    fn require_escapes(&mut self) {
        self.plain = false;
        self.single = false;
        self.block = false;
    }
}

/// Whether a text has only characters without a meaning in YAML, like base64, which is most of a
/// large catalog.
fn is_unambiguous(text: &[u8]) -> bool {
    let is_unambiguous =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'.');
    // Short strides let the compiler check many bytes at once.
    text.first().is_some_and(u8::is_ascii_alphanumeric)
        && text
            .chunks(1024)
            .all(|stride| stride.iter().fold(true, |all, &byte| all & is_unambiguous(byte)))
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether upstream's emitter writes a character without an escape. It escapes everything beyond
/// the basic plane.
fn printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && c != '\u{feff}'
}

/// Whether `a` sorts before `b` in upstream's order of keys. The first different character decides:
/// letters by code, digits as numbers, letters after everything else.
fn comes_before(a: &str, b: &str) -> bool {
    let (left, right) = (a.as_bytes(), b.as_bytes());
    let Some(mut at) = left.iter().zip(right).position(|(a, b)| a != b) else {
        return left.len() < right.len();
    };
    // Back to the start of the character, which is the same in both.
    while !a.is_char_boundary(at) {
        at -= 1;
    }
    let first = |text: &str| text.get(at..).and_then(|rest| rest.chars().next());
    let (Some(l), Some(r)) = (first(a), first(b)) else { return left.len() < right.len() };
    match (l.is_alphabetic(), r.is_alphabetic()) {
        (true, true) => return l < r,
        (false, false) => {}
        (_, letter) => return letter,
    }
    // A zero matters inside a number, but not at its beginning.
    let inside = (l == '0' || r == '0')
        && left[..at].iter().rev().take_while(|c| c.is_ascii_digit()).any(|&c| c != b'0');
    let number = |text: &[u8]| {
        let digits = text[at..].iter().take_while(|c| c.is_ascii_digit());
        let start = i64::from(inside);
        digits.fold(start, |sum, c| sum.wrapping_mul(10).wrapping_add((c - b'0').into()))
    };
    let count = |text: &[u8]| text[at..].iter().take_while(|c| c.is_ascii_digit()).count();
    match (number(left), count(left)).cmp(&(number(right), count(right))) {
        Ordering::Equal => l < r,
        unequal => unequal == Ordering::Less,
    }
}

/// A field of a mapping.
type Field<'v> = (&'v String, &'v Value);

/// Sorts fields by their names as upstream does. Its order has cycles (`a1b`, `a2`, `a10`), on
/// which the standard sort may panic; a merge sort does not.
fn sort_fields(mut fields: Vec<Field<'_>>) -> Vec<Field<'_>> {
    if fields.len() < 2 {
        return fields;
    }
    let right = fields.split_off(fields.len() / 2);
    let mut left = sort_fields(fields).into_iter().peekable();
    let mut right = sort_fields(right).into_iter().peekable();
    let mut all = Vec::with_capacity(left.len() + right.len());
    while let (Some(l), Some(r)) = (left.peek(), right.peek()) {
        let next = if comes_before(r.0, l.0) { right.next() } else { left.next() };
        all.extend(next);
    }
    all.extend(left);
    all.extend(right);
    all
}
