//! Characters, as libyaml's reader hands them out: a window at a time, so that what is no
//! character is noticed when its window is needed, not before.

use super::Fault;

/// How many bytes are looked at in one go.
const WINDOW: usize = 512;

/// A place in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// How many characters are before it.
    pub(super) index: usize,
    /// The line, from 0.
    pub(super) line: usize,
    /// The column, from 0.
    pub(super) column: usize,
}

/// A text and how far it was read.
pub(super) struct Chars<'t> {
    bytes: &'t [u8],
    at: usize,
    /// Up to where the text was looked at.
    seen: usize,
    window: usize,
    pub(super) mark: Mark,
}

impl<'t> Chars<'t> {
    pub(super) fn new(bytes: &'t [u8]) -> Self {
        let at = if bytes.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
        Self { bytes, at, seen: at, window: WINDOW, mark: Mark::default() }
    }

    /// Makes sure that so many characters were looked at.
    pub(super) fn need(&mut self, count: usize) -> Result<(), Fault> {
        while self.seen < self.bytes.len() && self.seen < self.at + count {
            self.look()?;
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), Fault> {
        let (start, end) = (self.seen, self.window.min(self.bytes.len()));
        while self.seen < end {
            let rest = &self.bytes[self.seen..end];
            match character(rest) {
                Ok(width) => self.seen += width,
                // The rest of it is in the next window, where there may be none.
                Err(None) if end < self.bytes.len() || self.seen > start => break,
                Err(message) => {
                    let message = message.unwrap_or("incomplete UTF-8 octet sequence").to_owned();
                    return Err(Fault { line: 0, message });
                }
            }
        }
        self.window = self.seen + WINDOW;
        Ok(())
    }

    /// The byte that is so far away; 0 behind the end.
    pub(super) fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Whether the present byte is one of these.
    pub(super) fn is(&self, bytes: &[u8]) -> bool {
        bytes.contains(&self.byte(0))
    }

    pub(super) fn is_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// A blank or a tab.
    pub(super) fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.byte(ahead), b' ' | b'\t')
    }

    /// How many bytes the line break there has; 0 if there is none.
    fn break_width(&self, ahead: usize) -> usize {
        match self.bytes.get(self.at + ahead..).unwrap_or_default() {
            [b'\r', b'\n', ..] | [0xc2, 0x85, ..] => 2,
            [b'\r' | b'\n', ..] => 1,
            [0xe2, 0x80, 0xa8 | 0xa9, ..] => 3,
            _ => 0,
        }
    }

    pub(super) fn is_break(&self, ahead: usize) -> bool {
        self.break_width(ahead) > 0
    }

    /// A line break or the end.
    pub(super) fn is_break_or_end(&self, ahead: usize) -> bool {
        self.at + ahead >= self.bytes.len() || self.is_break(ahead)
    }

    /// A blank, a tab, a line break or the end.
    pub(super) fn is_space_or_end(&self, ahead: usize) -> bool {
        self.is_blank(ahead) || self.is_break_or_end(ahead)
    }

    /// A letter, digit, underscore or dash.
    pub(super) fn is_word(&self) -> bool {
        let byte = self.byte(0);
        byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
    }

    /// Whether a line begins here that is made of these three and ends or goes on with a blank.
    pub(super) fn is_marker(&self, marker: [u8; 3]) -> bool {
        self.mark.column == 0
            && self.bytes[self.at.min(self.bytes.len())..].starts_with(&marker)
            && self.is_space_or_end(3)
    }

    /// Passes one character.
    pub(super) fn skip(&mut self) {
        let width = match self.byte(0) {
            0..0x80 => 1,
            0x80..0xe0 => 2,
            0xe0..0xf0 => 3,
            _ => 4,
        };
        self.at += width;
        self.mark.index += 1;
        self.mark.column += 1;
    }

    /// Passes a line break, if there is one.
    pub(super) fn skip_break(&mut self) {
        let width = self.break_width(0);
        if width > 0 {
            let two = self.byte(0) == b'\r' && width == 2;
            self.at += width;
            self.mark.index += if two { 2 } else { 1 };
            self.mark.column = 0;
            self.mark.line += 1;
        }
    }

    /// Passes the rest of the line.
    pub(super) fn skip_line(&mut self) -> Result<(), Fault> {
        self.need(1)?;
        while !self.is_break_or_end(0) {
            self.skip();
            self.need(1)?;
        }
        Ok(())
    }

    /// Passes blanks and tabs.
    pub(super) fn skip_blanks(&mut self) -> Result<(), Fault> {
        self.need(1)?;
        while self.is_blank(0) {
            self.skip();
            self.need(1)?;
        }
        Ok(())
    }

    /// Passes a word and gives it.
    pub(super) fn word(&mut self) -> Result<&'t [u8], Fault> {
        self.need(1)?;
        let start = self.at;
        while self.is_word() {
            self.skip();
            self.need(1)?;
        }
        Ok(&self.bytes[start..self.at])
    }

    /// The line a fault at the present place is in, as the scanner counts.
    pub(super) fn fault(&self, message: &str) -> Fault {
        let line = if self.mark.line > 0 { self.mark.line + 1 } else { 0 };
        Fault { line, message: message.to_owned() }
    }
}

/// How many bytes the first character has, or why there is none; no reason if more bytes are needed.
fn character(bytes: &[u8]) -> Result<usize, Option<&'static str>> {
    let first = bytes[0];
    let (width, start) = match first {
        0..0x80 => (1, u32::from(first)),
        0xc0..0xe0 => (2, u32::from(first & 0x1f)),
        0xe0..0xf0 => (3, u32::from(first & 0x0f)),
        0xf0..0xf8 => (4, u32::from(first & 0x07)),
        _ => return Err(Some("invalid leading UTF-8 octet")),
    };
    let more = bytes.get(1..width).ok_or(None)?;
    let mut value = start;
    for byte in more {
        if byte & 0xc0 != 0x80 {
            return Err(Some("invalid trailing UTF-8 octet"));
        }
        value = value << 6 | u32::from(byte & 0x3f);
    }
    if value < [0, 0, 0x80, 0x800, 0x1_0000][width] {
        return Err(Some("invalid length of a UTF-8 sequence"));
    }
    if (0xd800..0xe000).contains(&value) || value > 0x10_ffff {
        return Err(Some("invalid Unicode character"));
    }
    let allowed = matches!(value, 0x9 | 0xa | 0xd | 0x20..=0x7e | 0x85)
        || (0xa0..=0xfffd).contains(&value)
        || value >= 0x1_0000;
    if allowed { Ok(width) } else { Err(Some("control characters are not allowed")) }
}
