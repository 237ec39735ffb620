//! Character classes: `[a-z]`, `[[:alpha:]]`, `\d`, `\pL`.

use super::{BAD_CLASS, NO_BRACKET, Size, SyntaxError, Translator};
use regex::{Error, RegexBuilder};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

const DIGITS: &str = "0-9";
const SPACES: &str = "\\t\\n\\f\\r ";
const WORDS: &str = "0-9A-Za-z_";
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

impl<'a> Translator<'a> {
    /// Translates `\pL`, `\p{Greek}`, `\P{^Greek}`; returns the class and its size.
    pub(super) fn unicode_class(&mut self) -> Result<(String, Size), SyntaxError<'a>> {
        let before = self.rest;
        self.rest = &before[2..];
        let mut negated = before.as_bytes()[1] == b'P';
        let mut name = match self.rest.chars().next() {
            None => return Err((BAD_CLASS, before)),
            Some('{') => {
                let Some(end) = before.find('}') else { return Err((BAD_CLASS, before)) };
                self.rest = &before[end + 1..];
                &before[3..end]
            }
            Some(letter) => {
                self.skip(letter);
                &self.since(before)[2..]
            }
        };
        if let Some(rest) = name.strip_prefix('^') {
            negated = !negated;
            name = rest;
        }
        let class = format!("\\{}{{{name}}}", if negated { 'P' } else { 'p' });
        let plain = name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
        let size = match name {
            "Any" => Some(Size::BROAD),
            name if plain => unicode_class_size(name),
            _ => None,
        };
        size.map(|size| (class, size)).ok_or((BAD_CLASS, self.since(before)))
    }

    pub(super) fn class(&mut self) -> Result<(), SyntaxError<'a>> {
        let whole = self.rest;
        let mut size = Size::LETTER;
        self.emit(1, "[");
        if self.rest.starts_with('^') {
            self.emit(1, "^");
            size = Size::BROAD;
        }
        let mut first = true;
        while first || !self.rest.starts_with(']') {
            first = false;
            let before = self.rest;
            if let Some(end) = self.posix_class_end() {
                let name = &before[2..2 + end];
                let text = &before[..end + 4];
                if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
                    return Err((BAD_CLASS, text));
                }
                self.emit(text.len(), text);
                let wide = name.starts_with('^');
                size = size.and(if wide { Size::WIDE_RANGE } else { Size::RANGE });
                continue;
            }
            if before.starts_with("\\p") || before.starts_with("\\P") {
                let (class, more) = self.unicode_class()?;
                self.out.push_str(&class);
                size = size.and(more.inside());
                continue;
            }
            let mut letters = before.chars();
            if letters.next() == Some('\\')
                && let Some(class @ ('d' | 's' | 'w' | 'D' | 'S' | 'W')) = letters.next()
            {
                let (negated, set) = perl_class(class);
                if negated {
                    let _ = write!(self.out, "[^{set}]");
                } else {
                    self.out.push_str(set);
                }
                self.emit(2, "");
                size = size.and(if negated { Size::WIDE_RANGE } else { Size::RANGE });
                continue;
            }
            size = size.and(self.range(whole)?);
        }
        self.emit(1, "]");
        self.add_operand(size);
        Ok(())
    }

    /// The end of the name of a POSIX class that begins here, if one does.
    fn posix_class_end(&mut self) -> Option<usize> {
        let name = self.rest.strip_prefix("[:").filter(|name| !name.is_empty())?;
        if self.no_posix {
            return None;
        }
        let end = name.find(":]");
        // Without an end here there is none further on, so the search runs once.
        self.no_posix = end.is_none();
        end
    }

    /// Translates one character of a class, or a range.
    fn range(&mut self, whole: &'a str) -> Result<Size, SyntaxError<'a>> {
        let before = self.rest;
        let low = self.class_char(whole)?;
        let mut high = low;
        if self.rest.len() >= 2 && self.rest.starts_with('-') && !self.rest.starts_with("-]") {
            self.rest = &self.rest[1..];
            high = self.class_char(whole)?;
            if high.code() < low.code() {
                return Err((BAD_CLASS, self.since(before)));
            }
        }
        // A surrogate matches no text; a range continues after the surrogates.
        let low = char::from_u32(low.code()).unwrap_or('\u{e000}');
        let high = char::from_u32(high.code()).unwrap_or('\u{d7ff}');
        if low <= high {
            let _ = write!(self.out, "\\x{{{:x}}}-\\x{{{:x}}}", u32::from(low), u32::from(high));
        } else {
            self.out.push_str("[a&&b]");
        }
        Ok(if high.is_ascii() { Size::RANGE } else { Size::WIDE_RANGE })
    }

    fn class_char(&mut self, whole: &'a str) -> Result<Point, SyntaxError<'a>> {
        match self.rest.chars().next() {
            None => Err((NO_BRACKET, whole)),
            Some('\\') => Ok(self.escaped()?.map_or(Point(0xd800), |c| Point(u32::from(c)))),
            Some(letter) => {
                self.skip(letter);
                Ok(Point(u32::from(letter)))
            }
        }
    }
}

/// The size of a Unicode class; none if the class does not exist.
///
/// The size is known only after a compilation. So each class, of some hundred, is compiled once.
/// The crate ignores case and underscores of the name, and so does the cache.
fn unicode_class_size(name: &str) -> Option<Size> {
    static SIZES: Mutex<BTreeMap<String, Size>> = Mutex::new(BTreeMap::new());
    // A panic of a holder leaves no partial entry, so a poisoned lock is usable.
    let sizes_by_name = || SIZES.lock().unwrap_or_else(PoisonError::into_inner);
    let name: String = name.chars().filter(|c| *c != '_').collect();
    let name = name.to_ascii_lowercase();
    if let Some(size) = sizes_by_name().get(&name) {
        return Some(*size);
    }
    let class = format!("\\p{{{name}}}");
    let compiled = |size| RegexBuilder::new(&class).size_limit(size).build();
    // With the limit 0 a valid class is too large, and an unknown one has a syntax error.
    if matches!(compiled(0), Err(Error::Syntax(_))) {
        return None;
    }
    let sizes: Vec<usize> = (1..128).map(|size| size << 10).collect();
    let at = sizes.partition_point(|size| compiled(*size).is_err());
    let size = Size::class(sizes.get(at).copied().unwrap_or(128 << 10));
    sizes_by_name().insert(name, size);
    Some(size)
}

/// A code point of a class.
#[derive(Clone, Copy)]
struct Point(u32);

impl Point {
    const fn code(self) -> u32 {
        self.0
    }
}

pub(super) fn perl_class(letter: char) -> (bool, &'static str) {
    let set = match letter.to_ascii_lowercase() {
        'd' => DIGITS,
        's' => SPACES,
        _ => WORDS,
    };
    (letter.is_ascii_uppercase(), set)
}
