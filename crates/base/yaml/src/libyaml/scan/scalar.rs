//! Scalars.

use super::super::chars::Chars;
use super::{Fault, Scanner, Token, signed};

impl Scanner<'_> {
    pub(super) fn block_scalar(&mut self) -> Result<(), Fault> {
        self.remove_key()?;
        self.key_allowed = true;
        let mark = self.chars.mark;
        self.chars.skip();
        let (mut increment, mut end) = (0, false);
        // An indicator of the end and one of the indentation, in any order.
        for _ in 0..2 {
            self.chars.need(1)?;
            match self.chars.byte(0) {
                b'0' if increment == 0 => {
                    return Err(self.chars.fault("found an indentation indicator equal to 0"));
                }
                digit @ b'1'..=b'9' if increment == 0 => {
                    increment = signed(usize::from(digit - b'0'));
                }
                b'+' | b'-' if !end => end = true,
                _ => break,
            }
            self.chars.skip();
        }
        self.line_end()?;
        let mut indent = if increment > 0 { self.indent.max(0) + increment } else { 0 };
        self.block_breaks(&mut indent)?;
        self.chars.need(1)?;
        while signed(self.chars.mark.column) == indent && !self.chars.is_end() {
            self.chars.skip_line()?;
            self.chars.need(2)?;
            self.chars.skip_break();
            self.block_breaks(&mut indent)?;
        }
        self.push(Token::Scalar, mark);
        Ok(())
    }

    /// Passes indentation and empty lines, and finds out the indentation if it is not known.
    fn block_breaks(&mut self, indent: &mut isize) -> Result<(), Fault> {
        let mut most = 0;
        loop {
            self.chars.need(1)?;
            let before =
                |chars: &Chars<'_>, indent| indent == 0 || signed(chars.mark.column) < indent;
            while before(&self.chars, *indent) && self.chars.is(b" ") {
                self.chars.skip();
                self.chars.need(1)?;
            }
            most = most.max(signed(self.chars.mark.column));
            if before(&self.chars, *indent) && self.chars.is(b"\t") {
                let message = "found a tab character where an indentation space is expected";
                return Err(self.chars.fault(message));
            }
            if !self.chars.is_break(0) {
                break;
            }
            self.chars.need(2)?;
            self.chars.skip_break();
        }
        if *indent == 0 {
            *indent = most.max(self.indent + 1).max(1);
        }
        Ok(())
    }

    pub(super) fn quoted(&mut self, quote: u8) -> Result<(), Fault> {
        self.save_key()?;
        self.key_allowed = false;
        let mark = self.chars.mark;
        self.chars.skip();
        loop {
            self.chars.need(4)?;
            if self.chars.is_marker(*b"---") || self.chars.is_marker(*b"...") {
                return Err(self.chars.fault("found unexpected document indicator"));
            }
            if self.chars.is_end() {
                return Err(self.chars.fault("found unexpected end of stream"));
            }
            while !self.chars.is_space_or_end(0) {
                if self.chars.byte(0) == quote {
                    if quote != b'\'' || self.chars.byte(1) != quote {
                        break;
                    }
                    self.chars.skip();
                    self.chars.skip();
                } else if quote == b'"' && self.chars.is(b"\\") {
                    if self.chars.is_break(1) {
                        self.chars.need(3)?;
                        self.chars.skip();
                        self.chars.skip_break();
                        break;
                    }
                    self.escape()?;
                } else {
                    self.chars.skip();
                }
                self.chars.need(2)?;
            }
            self.chars.need(1)?;
            if self.chars.byte(0) == quote {
                break;
            }
            while self.chars.is_blank(0) || self.chars.is_break(0) {
                if self.chars.is_blank(0) {
                    self.chars.skip();
                } else {
                    self.chars.need(2)?;
                    self.chars.skip_break();
                }
                self.chars.need(1)?;
            }
        }
        self.chars.skip();
        self.push(Token::Scalar, mark);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Fault> {
        let digits = match self.chars.byte(1) {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            it if b"0abt\tnvfre \"'\\N_LP".contains(&it) => 0,
            _ => return Err(self.chars.fault("found unknown escape character")),
        };
        self.chars.skip();
        self.chars.skip();
        self.chars.need(digits)?;
        let mut value: u32 = 0;
        for ahead in 0..digits {
            let Some(digit) = char::from(self.chars.byte(ahead)).to_digit(16) else {
                return Err(self.chars.fault("did not find expected hexdecimal number"));
            };
            value = value << 4 | digit;
        }
        if char::from_u32(value).is_none() {
            return Err(self.chars.fault("found invalid Unicode character escape code"));
        }
        for _ in 0..digits {
            self.chars.skip();
        }
        Ok(())
    }

    pub(super) fn plain(&mut self) -> Result<(), Fault> {
        self.save_key()?;
        self.key_allowed = false;
        let mark = self.chars.mark;
        let indent = self.indent + 1;
        let mut lines = false;
        loop {
            self.chars.need(4)?;
            if self.chars.is_marker(*b"---") || self.chars.is_marker(*b"...") || self.chars.is(b"#")
            {
                break;
            }
            while !self.chars.is_space_or_end(0) {
                if (self.chars.is(b":") && self.chars.is_space_or_end(1))
                    || (self.flow > 0 && self.chars.is(b",?[]{}"))
                {
                    break;
                }
                lines = false;
                self.chars.skip();
                self.chars.need(2)?;
            }
            if !(self.chars.is_blank(0) || self.chars.is_break(0)) {
                break;
            }
            self.chars.need(1)?;
            while self.chars.is_blank(0) || self.chars.is_break(0) {
                if self.chars.is_blank(0) {
                    if lines && signed(self.chars.mark.column) < indent && self.chars.is(b"\t") {
                        let message = "found a tab character that violates indentation";
                        return Err(self.chars.fault(message));
                    }
                    self.chars.skip();
                } else {
                    self.chars.need(2)?;
                    self.chars.skip_break();
                    lines = true;
                }
                self.chars.need(1)?;
            }
            if self.flow == 0 && signed(self.chars.mark.column) < indent {
                break;
            }
        }
        self.push(Token::Scalar, mark);
        if lines {
            self.key_allowed = true;
        }
        Ok(())
    }
}
