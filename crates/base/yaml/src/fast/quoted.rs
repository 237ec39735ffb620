//! Quoted scalars.

use super::{ScanResult, Scanner, Unsupported};
use memchr::{memchr2, memchr3};

impl Scanner<'_, '_> {
    /// Reads a quoted scalar. Continuation lines are deeper than `parent`.
    pub(super) fn quoted(&mut self, quote: u8, parent: Option<usize>) -> ScanResult<String> {
        self.at += 1;
        let mut text = String::new();
        // Blanks before this offset are part of the text even if a line break follows.
        let mut protected = 0;
        loop {
            let rest = &self.bytes[self.at..];
            let found = if quote == b'"' {
                memchr3(b'"', b'\\', b'\n', rest)
            } else {
                memchr2(b'\'', b'\n', rest)
            };
            let end = self.at + found.ok_or(Unsupported)?;
            text.push_str(self.slice(self.at, end)?);
            self.at = end + 1;
            match self.bytes[end] {
                b'\n' => {
                    let trimmed = text.trim_end_matches(' ').len().max(protected);
                    text.truncate(trimmed);
                    if trimmed > protected && text.ends_with('\t') {
                        return Err(Unsupported);
                    }
                    let blank = self.indentation(parent)?;
                    if blank == 0 {
                        text.push(' ');
                    }
                    text.extend(std::iter::repeat_n('\n', blank));
                    protected = text.len();
                }
                b'\\' => {
                    self.escape(&mut text, parent)?;
                    protected = text.len();
                }
                b'\'' if self.peek() == Some(b'\'') => {
                    text.push('\'');
                    self.at += 1;
                }
                _ => {
                    self.check_length(text.len())?;
                    return Ok(text);
                }
            }
        }
    }

    /// Moves from the start of a line inside quotes to its text; returns the number of blank lines
    /// before it.
    fn indentation(&mut self, parent: Option<usize>) -> ScanResult<usize> {
        let mut blank = 0;
        loop {
            let start = self.at;
            self.skip_spaces();
            let column = self.at - start;
            match self.peek() {
                Some(b'\n') => {
                    blank += 1;
                    self.at += 1;
                }
                None | Some(b'\t') => return Err(Unsupported),
                Some(_) if parent.is_some_and(|parent| column > parent) => return Ok(blank),
                Some(_) => return Err(Unsupported),
            }
        }
    }

    /// Reads an escape after its backslash.
    fn escape(&mut self, text: &mut String, parent: Option<usize>) -> ScanResult<()> {
        let escaped = self.peek().ok_or(Unsupported)?;
        self.at += 1;
        let character = match escaped {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'"' => '"',
            b'\\' => '\\',
            b' ' => ' ',
            b'u' => self.hex_character(4)?,
            b'x' => self.hex_character(2)?,
            b'\n' => {
                return if self.indentation(parent)? == 0 { Ok(()) } else { Err(Unsupported) };
            }
            _ => return Err(Unsupported),
        };
        text.push(character);
        Ok(())
    }

    /// Reads a character as a number of `digits` hexadecimal digits.
    fn hex_character(&mut self, digits: usize) -> ScanResult<char> {
        let number = self.slice(self.at, self.at + digits)?;
        if !number.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Unsupported);
        }
        self.at += digits;
        u32::from_str_radix(number, 16).ok().and_then(char::from_u32).ok_or(Unsupported)
    }
}
