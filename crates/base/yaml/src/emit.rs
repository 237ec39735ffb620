//! Values as YAML text, in the form that kubectl prints.
//!
//! Block style, keys in natural order (`a2` before `a10`), two columns per level, lists at the
//! column of their key, texts without quotes where nothing else could be read from them, literal
//! blocks for texts with line breaks, folding beyond column 80. These are the rules of the emitter
//! that upstream's tools share; output can be compared with theirs byte for byte.

use crate::scalar::{go_float64, stays_text};
use memchr::{memchr, memchr2, memchr3_iter};
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// Beyond this column, blanks become line breaks where the style allows it.
const WIDTH: usize = 80;
/// Keys that are longer are written after a `?`.
const SIMPLE_KEY: usize = 128;
/// Columns per level.
const INDENT: usize = 2;
/// What lines begin with.
const BLANKS: &str = "                                                                ";

/// The value as one YAML document without a separator; ends with a line break.
pub fn to_string(value: &Value) -> String {
    let mut out = Emitter { text: String::new(), column: 0, whitespace: true, indention: true };
    out.node(value, None, false);
    if out.column > 0 {
        out.line_break();
    }
    out.text
}

/// The text so far, and what the last thing written was.
struct Emitter {
    text: String,
    /// In characters.
    column: usize,
    /// The last thing written was a blank or the start of a line.
    whitespace: bool,
    /// Only indentation and `-`, `?`, `:` indicators stand on the line so far.
    indention: bool,
}

/// How a text is written.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// The indentation of what stands inside a node of indentation `indent` (`None`: the document).
fn deeper(indent: Option<usize>, flow: bool) -> usize {
    match indent {
        None if flow => INDENT,
        None => 0,
        Some(indent) => indent + INDENT,
    }
}

impl Emitter {
    /// Writes a node that stands in a collection of indentation `indent`; `in_map`: as the value
    /// of a mapping's field.
    fn node(&mut self, value: &Value, indent: Option<usize>, in_map: bool) {
        match value {
            Value::Null => self.word("null"),
            Value::Bool(flag) => self.word(if *flag { "true" } else { "false" }),
            Value::Number(number) if number.is_f64() => {
                self.word(&go_float64(number.as_f64().unwrap_or_default()));
            }
            Value::Number(number) => self.word(&number.to_string()),
            Value::String(text) => self.string(text, deeper(indent, true), false),
            Value::Array(items) if items.is_empty() => self.word("[]"),
            Value::Object(fields) if fields.is_empty() => self.word("{}"),
            Value::Array(items) => {
                // Lists of a mapping stand at the column of their key.
                let indentless = in_map && !self.indention;
                let inner = match indent {
                    Some(indent) if indentless => indent,
                    _ => deeper(indent, false),
                };
                for item in items {
                    self.indent(inner);
                    self.indicator("-", true, true);
                    self.node(item, Some(inner), false);
                }
            }
            Value::Object(fields) => self.mapping(fields, deeper(indent, false)),
        }
    }

    fn mapping(&mut self, fields: &Map<String, Value>, indent: usize) {
        // Letters alone are in upstream's order already.
        if fields.keys().all(|name| name.bytes().all(|byte| byte.is_ascii_alphabetic())) {
            fields.iter().for_each(|(name, value)| self.field(name, value, indent));
        } else {
            for (name, value) in sorted(fields.iter().collect()) {
                self.field(name, value, indent);
            }
        }
    }

    fn field(&mut self, name: &str, value: &Value, indent: usize) {
        self.indent(indent);
        if name.len() <= SIMPLE_KEY && !name.contains(is_break) {
            self.string(name, deeper(Some(indent), true), true);
            self.indicator(":", false, false);
        } else {
            self.indicator("?", true, true);
            self.string(name, deeper(Some(indent), true), false);
            self.indent(indent);
            self.indicator(":", true, true);
        }
        self.node(value, Some(indent), true);
    }

    /// Writes a text in the style that fits it.
    fn string(&mut self, text: &str, indent: usize, key: bool) {
        let shape = Shape::of(text);
        let wanted = if memchr(b'\n', text.as_bytes()).is_some() {
            Style::Literal
        } else if stays_text(text) && !(key && text == "<<") {
            Style::Plain
        } else {
            Style::Double
        };
        let mut style = if key && shape.line_breaks { Style::Double } else { wanted };
        if style == Style::Plain && !shape.plain {
            style = Style::Single;
        }
        if (style == Style::Single && !shape.single)
            || (style == Style::Literal && (!shape.block || key))
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
            // Ends at the start of a line or in the middle of one, and knows which.
            Style::Literal => return self.literal(text, indent),
        }
        self.whitespace = false;
        self.indention = false;
    }

    /// The characters of a plain or single-quoted text; long lines are broken at single blanks.
    fn folded(&mut self, text: &str, indent: usize, fold: bool, quoted: bool) {
        // Lines are broken at blanks only, and only quotes are doubled.
        if !text.is_empty()
            && memchr2(b' ', if quoted { b'\'' } else { b' ' }, text.as_bytes()).is_none()
        {
            self.put_all(text);
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

    /// The same for letters of one byte each, without quotes: whole lines at once.
    fn folded_ascii(&mut self, text: &str, indent: usize, fold: bool, quoted: bool) {
        let bytes = text.as_bytes();
        let mut from = 0;
        while let Some(end) = self.fold(bytes, from, quoted).filter(|_| fold) {
            self.put_ascii(&text[from..end]);
            self.indention &= bytes[from..end].iter().all(|&byte| byte == b' ');
            self.indent(indent);
            from = end + 1;
        }
        self.put_ascii(&text[from..]);
        self.indention &= bytes[from..].iter().all(|&byte| byte == b' ');
    }

    /// The blank at which the line is broken that begins with the byte `from`: the first behind the last
    /// column that has no other beside it and, in quotes, is not the first or last of all.
    fn fold(&self, text: &[u8], from: usize, quoted: bool) -> Option<usize> {
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
                // In bytes: a line break follows, whatever the column.
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

    /// A word that needs no looking at.
    fn word(&mut self, word: &str) {
        self.indicator(word, true, false);
    }

    /// An indicator; `separate`: after a blank; `indention`: it may open a line like `- `.
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

    /// Goes to the column `indent`, on a new line unless the present one has only indentation.
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

    fn put_all(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.chars().count();
    }

    fn put(&mut self, c: char) {
        self.text.push(c);
        self.column += 1;
    }
}

/// Which styles a text can be written in.
#[expect(clippy::struct_excessive_bools, reason = "four independent facts about a text")]
struct Shape {
    line_breaks: bool,
    plain: bool,
    single: bool,
    block: bool,
}

impl Shape {
    fn of(text: &str) -> Self {
        let mut shape = Self { line_breaks: false, plain: true, single: true, block: true };
        if text.is_empty() {
            shape.block = false;
            return shape;
        }
        if harmless(text.as_bytes()) {
            return shape;
        }
        if let Some(shape) = Self::of_ascii(text.as_bytes()) {
            return shape;
        }
        if text.starts_with("---") || text.starts_with("...") {
            shape.plain = false;
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
                shape.plain = false;
            }
            if !printable(c) {
                shape.special();
            }
            let edge = previous.is_none() || next.is_none();
            if c == ' ' {
                shape.plain &= !edge;
                shape.block &= next.is_some();
                if previous.is_some_and(is_break) {
                    shape.plain = false;
                    shape.single = false;
                }
            } else if is_break(c) {
                shape.line_breaks = true;
                shape.plain = false;
                // Readers disagree about the rarer line breaks; only escapes are safe.
                if previous == Some(' ') || c != '\n' {
                    shape.special();
                }
            }
            after_blank = c == ' ' || c == '\t' || is_break(c);
            previous = Some(c);
        }
        shape
    }

    /// The same for a text of signs of one byte that can be printed, and line breaks. Only few signs
    /// mean anything where they stand.
    fn of_ascii(text: &[u8]) -> Option<Self> {
        let usual = |byte: u8| matches!(byte, b'\n' | b' '..=b'~');
        let all = |stride: &[u8]| stride.iter().fold(true, |all, &byte| all & usual(byte));
        let (&[first, ..], &[.., last]) = (text, text) else { return None };
        if !text.chunks(1024).all(all) {
            return None;
        }
        let mut shape = Self { line_breaks: false, plain: true, single: true, block: true };
        let blank_at = |at: usize| matches!(text.get(at), None | Some(b' '));
        let opening = match first {
            b',' | b'[' | b']' | b'{' | b'}' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\'' | b'"'
            | b'%' | b'@' | b'`' => true,
            b'?' | b'-' => blank_at(1),
            _ => false,
        };
        let marker = text.starts_with(b"---") || text.starts_with(b"...");
        if opening || marker || first == b' ' || last == b' ' {
            shape.plain = false;
        }
        shape.block &= last != b' ';
        for at in memchr3_iter(b':', b'#', b'\n', text) {
            match text[at] {
                b':' => shape.plain &= !blank_at(at + 1),
                b'#' => shape.plain &= at > 0 && !matches!(text[at - 1], b' ' | b'\n'),
                _ => {
                    shape.line_breaks = true;
                    shape.plain = false;
                    if text.get(at + 1) == Some(&b' ') {
                        shape.single = false;
                    }
                    if at > 0 && text[at - 1] == b' ' {
                        shape.special();
                    }
                }
            }
        }
        Some(shape)
    }

    /// Only escapes can write it.
    fn special(&mut self) {
        self.plain = false;
        self.single = false;
        self.block = false;
    }
}

/// Whether a text has only signs that mean nothing to YAML where they stand, as base64 has: most
/// of what large catalogs hold.
fn harmless(text: &[u8]) -> bool {
    let harmless =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'.');
    // Short strides let the compiler check many bytes at once.
    text.first().is_some_and(u8::is_ascii_alphanumeric)
        && text
            .chunks(1024)
            .all(|stride| stride.iter().fold(true, |all, &byte| all & harmless(byte)))
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What upstream's emitter writes as it is; everything beyond the basic plane is escaped.
fn printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && c != '\u{feff}'
}

/// Whether `a` comes before `b` in upstream's order of keys, judged at the first character that
/// differs: letters by code, digits as numbers, letters after everything else.
fn comes_before(a: &str, b: &str) -> bool {
    let (left, right) = (a.as_bytes(), b.as_bytes());
    let Some(mut at) = left.iter().zip(right).position(|(a, b)| a != b) else {
        return left.len() < right.len();
    };
    // To the beginning of the characters, which is the same place in both.
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
    // A zero counts inside a number, but not at its beginning.
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

/// Sorts fields by their names as upstream does. Its order has circles (`a1b`, `a2`, `a10`), which the
/// sorting of the standard library may answer with a panic; merging does not mind.
fn sorted(mut fields: Vec<Field<'_>>) -> Vec<Field<'_>> {
    if fields.len() < 2 {
        return fields;
    }
    let right = fields.split_off(fields.len() / 2);
    let mut left = sorted(fields).into_iter().peekable();
    let mut right = sorted(right).into_iter().peekable();
    let mut all = Vec::with_capacity(left.len() + right.len());
    while let (Some(l), Some(r)) = (left.peek(), right.peek()) {
        let next = if comes_before(r.0, l.0) { right.next() } else { left.next() };
        all.extend(next);
    }
    all.extend(left);
    all.extend(right);
    all
}
