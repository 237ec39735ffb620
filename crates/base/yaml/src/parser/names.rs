//! Anchors, tags and directives.

use super::{
    Fault,
    tokens::{Scanner, Token},
};

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

impl Scanner<'_> {
    /// Reads letters, digits, `_` and `-`.
    fn word(&mut self) -> String {
        let mut end = self.at;
        while self.byte(end).is_some_and(is_word) {
            end += 1;
        }
        self.pass_to(end).to_owned()
    }

    /// Reads the name after `&` or `*`.
    pub(super) fn anchor(&mut self) -> Result<String, Fault> {
        self.pass(1);
        let name = self.word();
        let ends = self.gap_at(self.at)
            || matches!(
                self.current(),
                Some(b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`')
            );
        if name.is_empty() || !ends {
            return self.fail("did not find expected alphabetic or numeric character");
        }
        Ok(name)
    }

    /// Reads the handle and suffix of a tag.
    pub(super) fn tag(&mut self) -> Result<(String, String), Fault> {
        let parts = if self.byte(self.at + 1) == Some(b'<') {
            self.pass(2);
            let uri = self.uri("")?;
            if self.current() != Some(b'>') {
                return self.fail("did not find the expected '>'");
            }
            self.pass(1);
            (String::new(), uri)
        } else {
            let handle = self.handle(false)?;
            if handle.len() > 1 && handle.ends_with('!') {
                let uri = self.uri("")?;
                (handle, uri)
            } else {
                // The word is the beginning of the suffix.
                let uri = self.uri(&handle)?;
                if uri.is_empty() { (uri, "!".to_owned()) } else { ("!".to_owned(), uri) }
            }
        };
        if !self.gap_at(self.at) {
            return self.fail("did not find expected whitespace or line break");
        }
        Ok(parts)
    }

    fn handle(&mut self, directive: bool) -> Result<String, Fault> {
        if self.current() != Some(b'!') {
            return self.fail("did not find expected '!'");
        }
        self.pass(1);
        let mut handle = format!("!{}", self.word());
        if self.current() == Some(b'!') {
            self.pass(1);
            handle.push('!');
        } else if directive && handle != "!" {
            return self.fail("did not find expected '!'");
        }
        Ok(handle)
    }

    /// Reads the characters of a URI and appends them to `head` without its exclamation mark.
    fn uri(&mut self, head: &str) -> Result<String, Fault> {
        let mut uri = head.get(1..).unwrap_or_default().as_bytes().to_vec();
        let mut found = !head.is_empty();
        while let Some(byte) = self.current() {
            match byte {
                b'%' => self.octets(&mut uri)?,
                _ if is_word(byte) || b";/?:@&=+$,.!~*'()[]".contains(&byte) => {
                    uri.push(byte);
                    self.pass(1);
                }
                _ => break,
            }
            found = true;
        }
        if !found {
            return self.fail("did not find expected tag URI");
        }
        Ok(String::from_utf8_lossy(&uri).into_owned())
    }

    /// Reads a character whose bytes are written as `%` and digits.
    fn octets(&mut self, uri: &mut Vec<u8>) -> Result<(), Fault> {
        let mut remaining = None;
        while remaining != Some(0) {
            let digits = self.bytes.get(self.at..self.at + 3);
            let digits = digits.filter(|digits| digits[0] == b'%');
            let octet = digits
                .and_then(|digits| str::from_utf8(&digits[1..]).ok())
                .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
                .and_then(|digits| u8::from_str_radix(digits, 16).ok());
            let Some(octet) = octet else { return self.fail("did not find URI escaped octet") };
            remaining = Some(match remaining {
                None => match octet {
                    0..0x80 => 0,
                    0xc0..0xe0 => 1,
                    0xe0..0xf0 => 2,
                    0xf0..0xf8 => 3,
                    _ => return self.fail("found an incorrect leading UTF-8 octet"),
                },
                Some(_) if octet & 0xc0 != 0x80 => {
                    return self.fail("found an incorrect trailing UTF-8 octet");
                }
                Some(remaining) => remaining - 1,
            });
            uri.push(octet);
            self.pass(3);
        }
        Ok(())
    }

    /// Reads a line that begins with `%`.
    pub(super) fn directive(&mut self) -> Result<Token, Fault> {
        self.pass(1);
        let name = self.word();
        if name.is_empty() {
            return self.fail("could not find expected directive name");
        }
        if !self.gap_at(self.at) {
            return self.fail("found unexpected non-alphabetical character");
        }
        let token = match name.as_str() {
            "YAML" => self.version()?,
            "TAG" => self.tag_directive()?,
            _ => return self.fail("found unknown directive name"),
        };
        self.pass_blanks();
        self.pass_comment();
        if !self.ends_at(self.at) {
            return self.fail("did not find expected comment or line break");
        }
        self.pass_break();
        Ok(token)
    }

    fn version(&mut self) -> Result<Token, Fault> {
        self.pass_blanks();
        let major = self.version_number()?;
        if self.current() != Some(b'.') {
            return self.fail("did not find expected digit or '.' character");
        }
        self.pass(1);
        let minor = self.version_number()?;
        Ok(Token::Version(major, minor))
    }

    fn version_number(&mut self) -> Result<u8, Fault> {
        let (mut number, mut digits) = (0, 0);
        while let Some(digit @ b'0'..=b'9') = self.current() {
            digits += 1;
            if digits > 2 {
                return self.fail("found extremely long version number");
            }
            number = number * 10 + (digit - b'0');
            self.pass(1);
        }
        if digits == 0 {
            return self.fail("did not find expected version number");
        }
        Ok(number)
    }

    fn tag_directive(&mut self) -> Result<Token, Fault> {
        self.pass_blanks();
        let handle = self.handle(true)?;
        if !self.at_blank() {
            return self.fail("did not find expected whitespace");
        }
        self.pass_blanks();
        let prefix = self.uri("")?;
        if !self.gap_at(self.at) {
            return self.fail("did not find expected whitespace or line break");
        }
        Ok(Token::Handle(handle, prefix))
    }
}
