//! Directives and tags.

use super::{Fault, Scanner, Token};

impl Scanner<'_> {
    pub(super) fn directive(&mut self) -> Result<(), Fault> {
        self.unroll(-1);
        self.remove_key()?;
        self.key_allowed = false;
        let mark = self.chars.mark;
        self.chars.skip();
        let name = self.chars.word()?;
        if name.is_empty() {
            return Err(self.chars.fault("could not find expected directive name"));
        }
        if !self.chars.is_space_or_end(0) {
            return Err(self.chars.fault("found unexpected non-alphabetical character"));
        }
        let token = match name {
            b"YAML" => {
                self.chars.skip_blanks()?;
                let major = self.version_number()?;
                if !self.chars.is(b".") {
                    let message = "did not find expected digit or '.' character";
                    return Err(self.chars.fault(message));
                }
                self.chars.skip();
                Token::Version(major, self.version_number()?)
            }
            b"TAG" => {
                self.chars.skip_blanks()?;
                let handle = self.tag_handle(true)?;
                self.chars.need(1)?;
                if !self.chars.is_blank(0) {
                    return Err(self.chars.fault("did not find expected whitespace"));
                }
                self.chars.skip_blanks()?;
                self.tag_uri(0)?;
                if !self.chars.is_space_or_end(0) {
                    return Err(self.chars.fault("did not find expected whitespace or line break"));
                }
                Token::TagDirective(handle)
            }
            _ => return Err(self.chars.fault("found unknown directive name")),
        };
        self.line_end()?;
        self.push(token, mark);
        Ok(())
    }

    /// Passes what may stand at the end of a line, and its break.
    pub(super) fn line_end(&mut self) -> Result<(), Fault> {
        self.chars.skip_blanks()?;
        if self.chars.is(b"#") {
            self.chars.skip_line()?;
        }
        if !self.chars.is_break_or_end(0) {
            return Err(self.chars.fault("did not find expected comment or line break"));
        }
        self.chars.need(2)?;
        self.chars.skip_break();
        Ok(())
    }

    fn version_number(&mut self) -> Result<u32, Fault> {
        let (mut value, mut length) = (0, 0);
        self.chars.need(1)?;
        while self.chars.byte(0).is_ascii_digit() {
            length += 1;
            if length > 2 {
                return Err(self.chars.fault("found extremely long version number"));
            }
            value = value * 10 + u32::from(self.chars.byte(0) - b'0');
            self.chars.skip();
            self.chars.need(1)?;
        }
        if length == 0 {
            return Err(self.chars.fault("did not find expected version number"));
        }
        Ok(value)
    }

    pub(super) fn tag(&mut self) -> Result<(), Fault> {
        self.save_key()?;
        self.key_allowed = false;
        let mark = self.chars.mark;
        self.chars.need(2)?;
        let handle = if self.chars.byte(1) == b'<' {
            self.chars.skip();
            self.chars.skip();
            self.tag_uri(0)?;
            if !self.chars.is(b">") {
                return Err(self.chars.fault("did not find the expected '>'"));
            }
            self.chars.skip();
            Vec::new()
        } else {
            let handle = self.tag_handle(false)?;
            if handle.len() > 1 && handle.ends_with(b"!") {
                self.tag_uri(0)?;
                handle
            } else {
                // What looked like a handle is the beginning of the tag.
                let length = self.tag_uri(handle.len())?;
                if length == 0 { Vec::new() } else { b"!".to_vec() }
            }
        };
        self.chars.need(1)?;
        if !self.chars.is_space_or_end(0) {
            return Err(self.chars.fault("did not find expected whitespace or line break"));
        }
        self.push(Token::Tag(handle), mark);
        Ok(())
    }

    fn tag_handle(&mut self, directive: bool) -> Result<Vec<u8>, Fault> {
        self.chars.need(1)?;
        if !self.chars.is(b"!") {
            return Err(self.chars.fault("did not find expected '!'"));
        }
        self.chars.skip();
        let mut handle = b"!".to_vec();
        handle.extend(self.chars.word()?);
        if self.chars.is(b"!") {
            self.chars.skip();
            handle.push(b'!');
        } else if directive && handle.len() > 1 {
            return Err(self.chars.fault("did not find expected '!'"));
        }
        Ok(handle)
    }

    /// Passes the rest of a tag of which `head` bytes are known; how long it is without its first.
    fn tag_uri(&mut self, head: usize) -> Result<usize, Fault> {
        let mut length = head.saturating_sub(1);
        let mut any = head > 0;
        self.chars.need(1)?;
        while self.chars.is_word() || self.chars.is(b";/?:@&=+$,.!~*'()[]%") {
            if self.chars.is(b"%") {
                self.uri_escape()?;
            } else {
                self.chars.skip();
            }
            length += 1;
            any = true;
            self.chars.need(1)?;
        }
        if any { Ok(length) } else { Err(self.chars.fault("did not find expected tag URI")) }
    }

    /// Passes one character that is written as percent signs with digits.
    fn uri_escape(&mut self) -> Result<(), Fault> {
        let mut left = None;
        while left != Some(0) {
            self.chars.need(3)?;
            let digit = |ahead| char::from(self.chars.byte(ahead)).to_digit(16);
            let (Some(high), Some(low), true) = (digit(1), digit(2), self.chars.is(b"%")) else {
                return Err(self.chars.fault("did not find URI escaped octet"));
            };
            let octet = high << 4 | low;
            left = Some(match left {
                Some(left) if octet & 0xc0 == 0x80 => left - 1,
                Some(_) => {
                    return Err(self.chars.fault("found an incorrect trailing UTF-8 octet"));
                }
                None => match octet {
                    0..0x80 => 0,
                    0xc0..0xe0 => 1,
                    0xe0..0xf0 => 2,
                    0xf0..0xf8 => 3,
                    _ => return Err(self.chars.fault("found an incorrect leading UTF-8 octet")),
                },
            });
            for _ in 0..3 {
                self.chars.skip();
            }
        }
        Ok(())
    }
}
