//! Scanning of scalars: plain, quoted and block scalars.

use super::{Fault, Mark, tokens::Scanner};

const UNTERMINATED: &str = "found unexpected end of stream";
const UNTERMINATED_AT_MARKER: &str = "found unexpected document indicator";

/// The white space between two words of a scalar of several lines.
#[derive(Default)]
struct Gap<'t> {
    /// Blanks of the line; they are part of the text if no line break follows.
    blanks: &'t str,
    /// The first line break, and those after it.
    first: Option<&'t str>,
    breaks_after: String,
}

impl Gap<'_> {
    /// Appends the folded gap: a single line break becomes a blank, and of several the first is
    /// dropped.
    fn append_folded(self, text: &mut String) {
        match self.first {
            None => text.push_str(self.blanks),
            Some("\n") if self.breaks_after.is_empty() => text.push(' '),
            // A line or paragraph separator is kept.
            Some("\n" | "") => {}
            Some(first) => text.push_str(first),
        }
        text.push_str(&self.breaks_after);
    }
}

/// How the line breaks at the end of a block scalar are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl<'t> Scanner<'t> {
    /// Skips blanks and line breaks. A tab before the column `min_column` is an error.
    fn gap(&mut self, mut gap: Gap<'t>, min_column: Option<isize>) -> Result<Gap<'t>, Fault> {
        let start = self.at;
        loop {
            match self.current() {
                Some(b'\t')
                    if gap.first.is_some()
                        && min_column.is_some_and(|min_column| {
                            self.mark.column.cast_signed() < min_column
                        }) =>
                {
                    return self.fail("found a tab character that violates indentation");
                }
                Some(b' ' | b'\t') => self.pass(1),
                _ if self.break_at(self.at) > 0 => {
                    if gap.first.is_none() {
                        gap.first = Some(self.pass_break());
                    } else {
                        gap.breaks_after.push_str(self.pass_break());
                    }
                }
                _ => break,
            }
        }
        if gap.first.is_none() {
            gap.blanks = &self.text[start..self.at];
        }
        Ok(gap)
    }

    /// Reads a plain scalar; also returns its end.
    pub(super) fn plain(&mut self) -> Result<(String, Mark), Fault> {
        let min_column = self.indent + 1;
        let mut text = String::new();
        let mut gap = Gap::default();
        let mut crossed_line = false;
        let mut end = self.mark;
        while self.document_marker().is_none() && self.current() != Some(b'#') {
            let mut word = self.at;
            while !self.gap_at(word) && !self.ends_plain(word) {
                word += 1;
            }
            if word > self.at {
                std::mem::take(&mut gap).append_folded(&mut text);
                text.push_str(self.pass_to(word));
                end = self.mark;
                crossed_line = false;
            }
            if !self.at_blank() && self.break_at(self.at) == 0 {
                break;
            }
            gap = self.gap(gap, Some(min_column))?;
            crossed_line |= gap.first.is_some();
            if !self.in_flow() && self.mark.column.cast_signed() < min_column {
                break;
            }
        }
        // After a line break a key may begin.
        if crossed_line {
            self.key_allowed = true;
        }
        Ok((text, end))
    }

    /// Whether an indicator at a byte ends a plain scalar.
    fn ends_plain(&self, at: usize) -> bool {
        match self.byte(at) {
            Some(b':') => self.gap_at(at + 1),
            Some(b',' | b'?' | b'[' | b']' | b'{' | b'}') => self.in_flow(),
            _ => false,
        }
    }

    /// Reads a quoted scalar.
    pub(super) fn quoted(&mut self, quote: u8) -> Result<String, Fault> {
        let start = self.mark;
        self.quoted_text(quote).map_err(|fault| match fault.message.as_ref() {
            UNTERMINATED | UNTERMINATED_AT_MARKER => Fault { place: start, ..fault },
            _ => fault,
        })
    }

    fn quoted_text(&mut self, quote: u8) -> Result<String, Fault> {
        self.pass(1);
        let mut text = String::new();
        loop {
            if self.document_marker().is_some() {
                return self.fail(UNTERMINATED_AT_MARKER);
            }
            if self.current().is_none() {
                return self.fail(UNTERMINATED);
            }
            let mut gap = Gap::default();
            while !self.gap_at(self.at) {
                let mut end = self.at;
                while !self.gap_at(end)
                    && self.byte(end).is_some_and(|byte| byte != quote && byte != b'\\')
                {
                    end += 1;
                }
                text.push_str(self.pass_to(end));
                match self.current() {
                    Some(b'\'') if quote == b'\'' && self.byte(self.at + 1) == Some(b'\'') => {
                        text.push('\'');
                        self.pass(2);
                    }
                    Some(b'\\') if quote == b'\'' => {
                        text.push('\\');
                        self.pass(1);
                    }
                    Some(b'\\') if self.break_at(self.at + 1) > 0 => {
                        self.pass(1);
                        self.pass_break();
                        gap.first = Some("");
                        break;
                    }
                    Some(b'\\') => self.escape(&mut text)?,
                    Some(byte) if byte == quote => break,
                    _ => {}
                }
            }
            if self.current() == Some(quote) {
                self.pass(1);
                return Ok(text);
            }
            self.gap(gap, None)?.append_folded(&mut text);
        }
    }

    /// Reads an escape.
    fn escape(&mut self, text: &mut String) -> Result<(), Fault> {
        let (character, digits) = match self.byte(self.at + 1) {
            Some(b'0') => ('\0', 0),
            Some(b'a') => ('\u{7}', 0),
            Some(b'b') => ('\u{8}', 0),
            Some(b't' | b'\t') => ('\t', 0),
            Some(b'n') => ('\n', 0),
            Some(b'v') => ('\u{b}', 0),
            Some(b'f') => ('\u{c}', 0),
            Some(b'r') => ('\r', 0),
            Some(b'e') => ('\u{1b}', 0),
            Some(escaped @ (b' ' | b'"' | b'\'' | b'\\')) => (char::from(escaped), 0),
            Some(b'N') => ('\u{85}', 0),
            Some(b'_') => ('\u{a0}', 0),
            Some(b'L') => ('\u{2028}', 0),
            Some(b'P') => ('\u{2029}', 0),
            Some(b'x') => (' ', 2),
            Some(b'u') => (' ', 4),
            Some(b'U') => (' ', 8),
            _ => return self.fail("found unknown escape character"),
        };
        self.pass(2);
        if digits == 0 {
            text.push(character);
            return Ok(());
        }
        let number = self.text.get(self.at..self.at + digits);
        let number = number.filter(|number| number.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let Some(number) = number.and_then(|number| u32::from_str_radix(number, 16).ok()) else {
            return self.fail("did not find expected hexdecimal number");
        };
        let Some(character) = char::from_u32(number) else {
            return self.fail("found invalid Unicode character escape code");
        };
        text.push(character);
        self.pass(digits);
        Ok(())
    }

    /// Reads a block scalar, literal or folded.
    pub(super) fn block(&mut self, folded: bool) -> Result<String, Fault> {
        self.pass(1);
        let (chomping, explicit) = self.block_header()?;
        let mut indent = explicit.map(|explicit| self.indent.max(0) + explicit);
        let mut text = String::new();
        let mut last_break = "";
        let mut blank_before = false;
        let mut breaks_after = self.block_breaks(&mut indent)?;
        while Some(self.mark.column.cast_signed()) == indent && self.current().is_some() {
            let blank = self.at_blank();
            if folded && !blank && !blank_before && last_break == "\n" {
                if breaks_after.is_empty() {
                    text.push(' ');
                }
            } else {
                text.push_str(last_break);
            }
            text.push_str(&breaks_after);
            blank_before = blank;
            let mut end = self.at;
            while !self.ends_at(end) {
                end += 1;
            }
            text.push_str(self.pass_to(end));
            last_break = self.pass_break();
            breaks_after = self.block_breaks(&mut indent)?;
        }
        if chomping != Chomping::Strip {
            text.push_str(last_break);
        }
        if chomping == Chomping::Keep {
            text.push_str(&breaks_after);
        }
        Ok(text)
    }

    /// Reads the rest of a block scalar's first line: the chomping, and the indentation if it is
    /// explicit.
    fn block_header(&mut self) -> Result<(Chomping, Option<isize>), Fault> {
        let mut chomping = self.chomping();
        let mut explicit = None;
        if let Some(digit @ b'0'..=b'9') = self.current() {
            if digit == b'0' {
                return self.fail("found an indentation indicator equal to 0");
            }
            explicit = Some(isize::from(digit.cast_signed() - b'0'.cast_signed()));
            self.pass(1);
            chomping = chomping.or_else(|| self.chomping());
        }
        self.pass_blanks();
        self.pass_comment();
        if !self.ends_at(self.at) {
            return self.fail("did not find expected comment or line break");
        }
        self.pass_break();
        Ok((chomping.unwrap_or(Chomping::Clip), explicit))
    }

    fn chomping(&mut self) -> Option<Chomping> {
        let chomping = match self.current()? {
            b'+' => Chomping::Keep,
            b'-' => Chomping::Strip,
            _ => return None,
        };
        self.pass(1);
        Some(chomping)
    }

    /// Skips blank lines of a block scalar and the indentation of the next line. If that is
    /// unknown, the widest of these lines determines it.
    fn block_breaks(&mut self, indent: &mut Option<isize>) -> Result<String, Fault> {
        let mut breaks = String::new();
        let mut widest = 0;
        loop {
            let inside = |column: usize| indent.is_none_or(|indent| column.cast_signed() < indent);
            while self.current() == Some(b' ') && inside(self.mark.column) {
                self.pass(1);
            }
            widest = widest.max(self.mark.column.cast_signed());
            if self.current() == Some(b'\t') && inside(self.mark.column) {
                return self.fail("found a tab character where an indentation space is expected");
            }
            let passed = self.pass_break();
            if passed.is_empty() {
                break;
            }
            breaks.push_str(passed);
        }
        indent.get_or_insert(widest.max(self.indent + 1).max(1));
        Ok(breaks)
    }
}
