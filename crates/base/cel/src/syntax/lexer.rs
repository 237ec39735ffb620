//! Lexer: the longest token wins. Invalid text is reported with the same range as in cel-go, whose
//! lexer is generated.

/// The kinds of tokens, in the order of cel-go's grammar, in which errors list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum TokenKind {
    /// The end of the text.
    End,
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    LeftParen,
    RightParen,
    Dot,
    Comma,
    Minus,
    Not,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Ident,
    /// A name in backquotes.
    Quoted,
}

impl TokenKind {
    /// All kinds in this order.
    pub(super) const ALL: [Self; 36] = [
        Self::End,
        Self::Equals,
        Self::NotEquals,
        Self::In,
        Self::Less,
        Self::LessEquals,
        Self::GreaterEquals,
        Self::Greater,
        Self::And,
        Self::Or,
        Self::LeftBracket,
        Self::RightBracket,
        Self::LeftBrace,
        Self::RightBrace,
        Self::LeftParen,
        Self::RightParen,
        Self::Dot,
        Self::Comma,
        Self::Minus,
        Self::Not,
        Self::Question,
        Self::Colon,
        Self::Plus,
        Self::Star,
        Self::Slash,
        Self::Percent,
        Self::True,
        Self::False,
        Self::Null,
        Self::Float,
        Self::Int,
        Self::Uint,
        Self::String,
        Self::Bytes,
        Self::Ident,
        Self::Quoted,
    ];
}

/// A token with its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// Its first byte.
    pub(super) start: u32,
    /// The byte after its last.
    pub(super) end: u32,
    /// Its first code point.
    pub(super) at: u32,
}

/// Invalid text.
#[derive(Clone, Copy, Debug)]
pub(super) struct InvalidText {
    /// Its first byte.
    pub(super) start: u32,
    /// The byte after its last code point, the one that made it invalid.
    pub(super) end: u32,
    /// Its first code point.
    pub(super) at: u32,
}

/// A lexer of one text.
#[derive(Debug)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    /// The next byte.
    next: usize,
    /// The next code point.
    at: u32,
}

/// The end of a token, or the byte (perhaps after the text) that makes it invalid.
type ScanResult = Result<usize, usize>;

impl<'t> Lexer<'t> {
    /// A lexer for a text of less than 4 GiB.
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, next: 0, at: 0 }
    }

    /// Reads the next token; [`TokenKind::End`] repeats at the end of the text.
    pub(super) fn token(&mut self) -> Result<Token, InvalidText> {
        self.skip();
        let (start, at) = (self.next, self.at);
        let (kind, scanned) = self.scan();
        let end = match scanned {
            Ok(end) => end,
            // The invalid code point is part of the range.
            Err(invalid_byte) => {
                invalid_byte + self.text[invalid_byte..].chars().next().map_or(0, char::len_utf8)
            }
        };
        self.next = end;
        self.at += if matches!(kind, TokenKind::String | TokenKind::Bytes) || scanned.is_err() {
            to_u32(self.text[start..end].chars().count())
        } else {
            to_u32(end - start)
        };
        match scanned {
            Ok(_) => Ok(Token { kind, start: to_u32(start), end: to_u32(end), at }),
            Err(_) => Err(InvalidText { start: to_u32(start), end: to_u32(end), at }),
        }
    }

    /// Skips white space and comments.
    fn skip(&mut self) {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.next) {
                Some(b' ' | b'\t' | b'\r' | b'\n' | 0x0C) => {
                    self.next += 1;
                    self.at += 1;
                }
                Some(b'/') if bytes.get(self.next + 1) == Some(&b'/') => {
                    let rest = &self.text[self.next..];
                    let comment = rest.split('\n').next().unwrap_or(rest);
                    self.next += comment.len();
                    self.at += to_u32(comment.chars().count());
                }
                _ => return,
            }
        }
    }

    fn scan(&self) -> (TokenKind, ScanResult) {
        let bytes = self.text.as_bytes();
        let at = self.next;
        let Some(first) = bytes.get(at) else { return (TokenKind::End, Ok(at)) };
        let second = bytes.get(at + 1).copied();
        let one = |kind| (kind, Ok(at + 1));
        let one_or_two = |next: u8, two_kind: TokenKind, one_kind: Option<TokenKind>| {
            if second == Some(next) {
                (two_kind, Ok(at + 2))
            } else {
                one_kind.map_or((TokenKind::End, Err(at + 1)), one)
            }
        };
        match first {
            b'=' => one_or_two(b'=', TokenKind::Equals, None),
            b'!' => one_or_two(b'=', TokenKind::NotEquals, Some(TokenKind::Not)),
            b'<' => one_or_two(b'=', TokenKind::LessEquals, Some(TokenKind::Less)),
            b'>' => one_or_two(b'=', TokenKind::GreaterEquals, Some(TokenKind::Greater)),
            b'&' => one_or_two(b'&', TokenKind::And, None),
            b'|' => one_or_two(b'|', TokenKind::Or, None),
            b'[' => one(TokenKind::LeftBracket),
            b']' => one(TokenKind::RightBracket),
            b'{' => one(TokenKind::LeftBrace),
            b'}' => one(TokenKind::RightBrace),
            b'(' => one(TokenKind::LeftParen),
            b')' => one(TokenKind::RightParen),
            b',' => one(TokenKind::Comma),
            b'-' => one(TokenKind::Minus),
            b'?' => one(TokenKind::Question),
            b':' => one(TokenKind::Colon),
            b'+' => one(TokenKind::Plus),
            b'*' => one(TokenKind::Star),
            b'/' => one(TokenKind::Slash),
            b'%' => one(TokenKind::Percent),
            b'.' if !second.is_some_and(|byte| byte.is_ascii_digit()) => one(TokenKind::Dot),
            b'.' | b'0'..=b'9' => {
                let (kind, end) = number(bytes, at);
                (kind, Ok(end))
            }
            b'"' | b'\'' => (TokenKind::String, string(bytes, at, false)),
            b'`' => (TokenKind::Quoted, quoted_name(bytes, at)),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => word(bytes, at),
            _ => (TokenKind::End, Err(at)),
        }
    }
}

/// Texts have at most 100,000 code points, so positions fit.
fn to_u32(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Scans a name, a reserved word, or a string with a prefix.
fn word(bytes: &[u8], at: usize) -> (TokenKind, ScanResult) {
    let is_quote = |at: usize| matches!(bytes.get(at), Some(b'"' | b'\''));
    let is_raw = |at: usize| matches!(bytes.get(at), Some(b'r' | b'R'));
    // If the string is invalid, the prefix is a name.
    let prefixed = match bytes[at] {
        b'r' | b'R' if is_quote(at + 1) => {
            string(bytes, at + 1, true).ok().map(|end| (TokenKind::String, end))
        }
        b'b' | b'B' if is_quote(at + 1) => {
            string(bytes, at + 1, false).ok().map(|end| (TokenKind::Bytes, end))
        }
        b'b' | b'B' if is_raw(at + 1) && is_quote(at + 2) => {
            string(bytes, at + 2, true).ok().map(|end| (TokenKind::Bytes, end))
        }
        _ => None,
    };
    if let Some((kind, end)) = prefixed {
        return (kind, Ok(end));
    }
    let end = end_of_run(bytes, at, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let kind = match &bytes[at..end] {
        b"in" => TokenKind::In,
        b"true" => TokenKind::True,
        b"false" => TokenKind::False,
        b"null" => TokenKind::Null,
        _ => TokenKind::Ident,
    };
    (kind, Ok(end))
}

/// The first byte from `at` on that does not belong.
fn end_of_run(bytes: &[u8], at: usize, belongs: impl Fn(u8) -> bool) -> usize {
    at + bytes[at..].iter().take_while(|byte| belongs(**byte)).count()
}

fn number(bytes: &[u8], at: usize) -> (TokenKind, usize) {
    let digits = |at: usize| end_of_run(bytes, at, |byte| byte.is_ascii_digit());
    let is = |at: usize, one: u8, other: u8| {
        bytes.get(at).is_some_and(|byte| *byte == one || *byte == other)
    };
    if bytes[at] == b'0' && bytes.get(at + 1) == Some(&b'x') {
        let end = end_of_run(bytes, at + 2, |byte| byte.is_ascii_hexdigit());
        if end > at + 2 {
            return if is(end, b'u', b'U') {
                (TokenKind::Uint, end + 1)
            } else {
                (TokenKind::Int, end)
            };
        }
        return (TokenKind::Int, at + 1);
    }
    let whole = digits(at);
    let mut end = whole;
    if bytes.get(whole) == Some(&b'.') {
        let fraction = digits(whole + 1);
        if fraction > whole + 1 {
            end = fraction;
        }
    }
    if is(end, b'e', b'E') {
        let sign = usize::from(is(end + 1, b'+', b'-'));
        let exponent = digits((end + 1 + sign).min(bytes.len()));
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    if end > whole {
        (TokenKind::Float, end)
    } else if is(whole, b'u', b'U') {
        (TokenKind::Uint, whole + 1)
    } else {
        (TokenKind::Int, whole)
    }
}

/// Scans a string from its first quote.
fn string(bytes: &[u8], at: usize, raw: bool) -> ScanResult {
    let quote = bytes[at];
    let is_quote = |at: usize| bytes.get(at) == Some(&quote);
    if is_quote(at + 1) {
        // Three quotes open a long string if it is closed; else two quotes are an empty string.
        let long = if is_quote(at + 2) { long_string(bytes, at + 3, quote, raw) } else { None };
        return Ok(long.unwrap_or(at + 2));
    }
    let mut next = at + 1;
    loop {
        match bytes.get(next) {
            None | Some(b'\n' | b'\r') => return Err(next),
            Some(b'\\') if !raw => next = escape(bytes, next)?,
            Some(byte) if *byte == quote => return Ok(next + 1),
            Some(_) => next += 1,
        }
    }
}

/// The end of a string in three quotes.
fn long_string(bytes: &[u8], mut at: usize, quote: u8, raw: bool) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            b'\\' if !raw => at = escape(bytes, at).ok()?,
            byte if *byte == quote && bytes[at..].starts_with(&[quote; 3]) => return Some(at + 3),
            _ => at += 1,
        }
    }
}

/// Scans an escape from its backslash.
fn escape(bytes: &[u8], at: usize) -> ScanResult {
    let digits = |from: usize, count: usize, is: fn(u8) -> bool| {
        (from..from + count)
            .find(|at| !bytes.get(*at).is_some_and(|byte| is(*byte)))
            .map_or(Ok(from + count), Err)
    };
    let hexadecimal = |byte: u8| byte.is_ascii_hexdigit();
    match bytes.get(at + 1) {
        Some(
            b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`',
        ) => Ok(at + 2),
        Some(b'0'..=b'3') => digits(at + 2, 2, |byte| matches!(byte, b'0'..=b'7')),
        Some(b'x' | b'X') => digits(at + 2, 2, hexadecimal),
        Some(b'u') => digits(at + 2, 4, hexadecimal),
        Some(b'U') => digits(at + 2, 8, hexadecimal),
        _ => Err(at + 1),
    }
}

fn quoted_name(bytes: &[u8], at: usize) -> ScanResult {
    let end = end_of_run(bytes, at + 1, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'/' | b' ')
    });
    if end > at + 1 && bytes.get(end) == Some(&b'`') { Ok(end + 1) } else { Err(end) }
}
