//! Plain scalars and block scalars.

use super::{ScanResult, Scanner, Unsupported};
use crate::scalar;
use memchr::memchr;
use serde_json::Value;

/// How the line breaks at the end of a block scalar are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl Scanner<'_, '_> {
    /// Reads the plain scalar that begins at `start` and ends on its line at `end`, with its
    /// continuation lines: those deeper than `parent`.
    pub(super) fn plain(
        &mut self,
        start: usize,
        end: usize,
        parent: Option<usize>,
    ) -> ScanResult<Value> {
        if self.has_tab(start, end) {
            return Err(Unsupported);
        }
        let first = self.slice(start, end)?.trim_end_matches(' ');
        self.check_length(first.len())?;
        self.at = end;
        // A comment ends the scalar.
        self.skip_spaces();
        let has_comment = self.peek() == Some(b'#');
        self.finish_line()?;
        if has_comment || !self.continues(parent) {
            let resolved = scalar::resolve(first, None, true).map_err(|_| Unsupported)?;
            return resolved.value(first, self.options).map_err(|_| Unsupported);
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
                return Err(Unsupported);
            }
            text.push_str(self.slice(self.at, end)?.trim_end_matches(' '));
            last = end;
            self.at = end;
            self.skip_spaces();
            let has_comment = self.peek() == Some(b'#');
            self.finish_line()?;
            if has_comment {
                break;
            }
        }
        self.check_length(text.len())?;
        let resolved = scalar::resolve(&text, None, true).map_err(|_| Unsupported)?;
        resolved.value(&text, self.options).map_err(|_| Unsupported)
    }

    /// Whether the content at the current position is deeper than `parent`.
    fn continues(&self, parent: Option<usize>) -> bool {
        self.column.is_some_and(|column| parent.is_none_or(|parent| column > parent))
    }

    /// Counts the line breaks between two lines of a plain scalar. A comment between them ends the
    /// scalar.
    fn breaks_between(&self, from: usize, to: usize) -> ScanResult<usize> {
        let mut breaks = 0;
        for &byte in &self.bytes[from..to] {
            match byte {
                b'\n' => breaks += 1,
                b' ' => {}
                _ => return Err(Unsupported),
            }
        }
        Ok(breaks)
    }

    /// Reads a block scalar from its indicator, literal or folded.
    pub(super) fn block_text(&mut self, parent: Option<usize>, folded: bool) -> ScanResult<Value> {
        self.at += 1;
        let (chomping, explicit) = self.block_header()?;
        let min_column = parent.map_or(0, |parent| parent + 1);
        let indent = match explicit {
            Some(explicit) => parent.unwrap_or(0) + explicit,
            None => self.block_indent(min_column)?,
        };
        let mut text = String::new();
        // Line breaks after the last line that has text.
        let mut breaks = 0;
        // The previous line begins with a blank; such lines are not joined.
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
                Some(b'\t') if self.at < limit => return Err(Unsupported),
                Some(_) if self.at == limit => {}
                // Blanks without a line break at the end of the text.
                None if self.at > start => return Err(Unsupported),
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
            // Readers disagree about a last line without a line break.
            let length = memchr(b'\n', &self.bytes[self.at..]).ok_or(Unsupported)?;
            text.push_str(self.slice(self.at, self.at + length)?);
            self.at += length + 1;
            breaks = 1;
        }
        if text.is_empty() {
            return Err(Unsupported);
        }
        match chomping {
            Chomping::Strip => {}
            Chomping::Clip => text.push('\n'),
            Chomping::Keep => text.extend(std::iter::repeat_n('\n', breaks)),
        }
        self.check_length(text.len())?;
        self.skip_to_content()?;
        Ok(Value::String(text))
    }

    /// Reads the rest of a block scalar's first line.
    fn block_header(&mut self) -> ScanResult<(Chomping, Option<usize>)> {
        let (mut chomping, mut explicit) = (None, None);
        loop {
            match self.peek() {
                Some(b'-') if chomping.is_none() => chomping = Some(Chomping::Strip),
                Some(b'+') if chomping.is_none() => chomping = Some(Chomping::Keep),
                Some(digit @ b'1'..=b'9') if explicit.is_none() => {
                    explicit = Some(usize::from(digit - b'0'));
                }
                _ => break,
            }
            self.at += 1;
        }
        self.skip_spaces();
        match self.peek() {
            Some(b'\n') => self.at += 1,
            Some(b'#') if self.bytes[self.at - 1] == b' ' => {
                self.skip_line();
            }
            _ => return Err(Unsupported),
        }
        Ok((chomping.unwrap_or(Chomping::Clip), explicit))
    }

    /// The column of the first line with text after the current position.
    fn block_indent(&self, min_column: usize) -> ScanResult<usize> {
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
                None | Some(b'\t') => return Err(Unsupported),
                // Blank lines wider than the text, and blocks without text, are left to the parser.
                Some(_) if column < widest || column < min_column.max(1) => {
                    return Err(Unsupported);
                }
                Some(_) => return Ok(column),
            }
        }
    }
}
