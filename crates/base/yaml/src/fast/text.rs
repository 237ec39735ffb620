//! Plain scalars and blocks of text.

use super::{Read, Scanner, Unusual};
use crate::scalar;
use memchr::memchr;
use serde_json::Value;

/// What becomes of the line breaks at the end of a block of text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl Scanner<'_, '_> {
    /// The plain scalar that begins at `start` and ends on its line at `end`, with the lines that
    /// continue it: those that stand deeper than `parent`.
    pub(super) fn plain(&mut self, start: usize, end: usize, parent: Option<usize>) -> Read<Value> {
        if self.has_tab(start, end) {
            return Err(Unusual);
        }
        let first = self.slice(start, end)?.trim_end_matches(' ');
        self.check_length(first.len())?;
        self.at = end;
        // A comment ends the scalar; what follows it is no part of it.
        self.spaces();
        let ended = self.peek() == Some(b'#');
        self.end_of_line()?;
        if ended || !self.continues(parent) {
            let resolved = scalar::resolve(first, None, true).map_err(|_| Unusual)?;
            return resolved.value(first, self.options).map_err(|_| Unusual);
        }
        let mut text = first.to_owned();
        let mut last = end;
        while self.continues(parent) {
            let breaks = self.breaks_between(last, self.at)?;
            if breaks == 1 {
                text.push(' ');
            }
            text.extend(std::iter::repeat_n('\n', breaks - 1));
            let (end, colon) = self.plain_end(self.at);
            if colon || self.has_tab(self.at, end) {
                return Err(Unusual);
            }
            text.push_str(self.slice(self.at, end)?.trim_end_matches(' '));
            last = end;
            self.at = end;
            self.spaces();
            let ended = self.peek() == Some(b'#');
            self.end_of_line()?;
            if ended {
                break;
            }
        }
        self.check_length(text.len())?;
        let resolved = scalar::resolve(&text, None, true).map_err(|_| Unusual)?;
        resolved.value(&text, self.options).map_err(|_| Unusual)
    }

    /// Whether the content at the present place stands deeper than `parent`.
    fn continues(&self, parent: Option<usize>) -> bool {
        self.column.is_some_and(|column| parent.is_none_or(|parent| column > parent))
    }

    /// The line breaks between two lines of a plain scalar. A comment between them ends it.
    fn breaks_between(&self, from: usize, to: usize) -> Read<usize> {
        let mut breaks = 0;
        for &byte in &self.bytes[from..to] {
            match byte {
                b'\n' => breaks += 1,
                b' ' => {}
                _ => return Err(Unusual),
            }
        }
        Ok(breaks)
    }

    /// A block of text, from its indicator: as it is, or with lines joined (`folded`).
    pub(super) fn block_text(&mut self, parent: Option<usize>, folded: bool) -> Read<Value> {
        self.at += 1;
        let (chomping, given) = self.block_header()?;
        let least = parent.map_or(0, |parent| parent + 1);
        let indent = match given {
            Some(given) => parent.unwrap_or(0) + given,
            None => self.block_indent(least)?,
        };
        let mut text = String::new();
        // Line breaks behind the last line that has text.
        let mut breaks = 0;
        // The line before begins with a blank: such lines are not joined.
        let mut blank_before = true;
        loop {
            let start = self.at;
            let limit = start + indent;
            while self.at < limit && self.peek() == Some(b' ') {
                self.at += 1;
            }
            match self.peek() {
                Some(b'\n') => {
                    self.at += 1;
                    breaks += 1;
                    continue;
                }
                Some(b'\t') if self.at < limit => return Err(Unusual),
                Some(_) if self.at == limit => {}
                // Blanks without a line break at the end of the text.
                None if self.at > start => return Err(Unusual),
                _ => {
                    self.at = start;
                    break;
                }
            }
            let blank = matches!(self.peek(), Some(b' ' | b'\t'));
            let joined = folded && !text.is_empty() && !blank && !blank_before;
            if joined && breaks == 1 {
                text.push(' ');
            }
            text.extend(std::iter::repeat_n('\n', breaks - usize::from(joined)));
            blank_before = blank;
            // A last line without an end is read differently by different readers.
            let length = memchr(b'\n', &self.bytes[self.at..]).ok_or(Unusual)?;
            text.push_str(self.slice(self.at, self.at + length)?);
            self.at += length + 1;
            breaks = 1;
        }
        if text.is_empty() {
            return Err(Unusual);
        }
        match chomping {
            Chomping::Strip => {}
            Chomping::Clip => text.push('\n'),
            Chomping::Keep => text.extend(std::iter::repeat_n('\n', breaks)),
        }
        self.check_length(text.len())?;
        self.lines()?;
        Ok(Value::String(text))
    }

    /// What stands between the indicator of a block and the end of its line.
    fn block_header(&mut self) -> Read<(Chomping, Option<usize>)> {
        let (mut chomping, mut given) = (None, None);
        loop {
            match self.peek() {
                Some(b'-') if chomping.is_none() => chomping = Some(Chomping::Strip),
                Some(b'+') if chomping.is_none() => chomping = Some(Chomping::Keep),
                Some(digit @ b'1'..=b'9') if given.is_none() => {
                    given = Some(usize::from(digit - b'0'));
                }
                _ => break,
            }
            self.at += 1;
        }
        self.spaces();
        match self.peek() {
            Some(b'\n') => self.at += 1,
            Some(b'#') if self.bytes[self.at - 1] == b' ' => {
                self.skip_line();
            }
            _ => return Err(Unusual),
        }
        Ok((chomping.unwrap_or(Chomping::Clip), given))
    }

    /// The column of the first line with text behind the present place.
    fn block_indent(&self, least: usize) -> Read<usize> {
        let (mut at, mut widest) = (self.at, 0);
        loop {
            let start = at;
            while self.bytes.get(at) == Some(&b' ') {
                at += 1;
            }
            let column = at - start;
            match self.bytes.get(at) {
                Some(b'\n') => {
                    widest = widest.max(column);
                    at += 1;
                }
                None | Some(b'\t') => return Err(Unusual),
                // Blank lines must not be wider than the text, and no text is for the parser.
                Some(_) if column < widest || column < least.max(1) => return Err(Unusual),
                Some(_) => return Ok(column),
            }
        }
    }
}
