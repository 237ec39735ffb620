//! Scalars in quotes.

use super::{Read, Scanner, Unusual};
use memchr::{memchr2, memchr3};

impl Scanner<'_, '_> {
    /// A text in quotes, from the first quote to behind the last. Lines that continue it stand
    /// deeper than `parent`.
    pub(super) fn quoted(&mut self, quote: u8, parent: Option<usize>) -> Read<String> {
        self.at += 1;
        let mut text = String::new();
        // Blanks up to here are part of the text even before a line break.
        let mut firm = 0;
        loop {
            let rest = &self.bytes[self.at..];
            let found = if quote == b'"' {
                memchr3(b'"', b'\\', b'\n', rest)
            } else {
                memchr2(b'\'', b'\n', rest)
            };
            let end = self.at + found.ok_or(Unusual)?;
            text.push_str(self.slice(self.at, end)?);
            self.at = end + 1;
            match self.bytes[end] {
                b'\n' => {
                    let kept = text.trim_end_matches(' ').len().max(firm);
                    text.truncate(kept);
                    if kept > firm && text.ends_with('\t') {
                        return Err(Unusual);
                    }
                    let blank = self.indentation(parent)?;
                    if blank == 0 {
                        text.push(' ');
                    }
                    text.extend(std::iter::repeat_n('\n', blank));
                    firm = text.len();
                }
                b'\\' => {
                    self.escape(&mut text, parent)?;
                    firm = text.len();
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

    /// From the start of a line inside quotes to its text: how many blank lines were passed.
    fn indentation(&mut self, parent: Option<usize>) -> Read<usize> {
        let mut blank = 0;
        loop {
            let start = self.at;
            self.spaces();
            let column = self.at - start;
            match self.peek() {
                Some(b'\n') => {
                    blank += 1;
                    self.at += 1;
                }
                None | Some(b'\t') => return Err(Unusual),
                Some(_) if parent.is_some_and(|parent| column > parent) => return Ok(blank),
                Some(_) => return Err(Unusual),
            }
        }
    }

    /// What stands behind a backslash.
    fn escape(&mut self, text: &mut String, parent: Option<usize>) -> Read<()> {
        let escaped = self.peek().ok_or(Unusual)?;
        self.at += 1;
        let character = match escaped {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'"' => '"',
            b'\\' => '\\',
            b' ' => ' ',
            b'u' => self.code(4)?,
            b'x' => self.code(2)?,
            b'\n' => {
                return if self.indentation(parent)? == 0 { Ok(()) } else { Err(Unusual) };
            }
            _ => return Err(Unusual),
        };
        text.push(character);
        Ok(())
    }

    /// The character of a number with so many hexadecimal digits.
    fn code(&mut self, digits: usize) -> Read<char> {
        let number = self.slice(self.at, self.at + digits)?;
        if !number.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Unusual);
        }
        self.at += digits;
        u32::from_str_radix(number, 16).ok().and_then(char::from_u32).ok_or(Unusual)
    }
}
