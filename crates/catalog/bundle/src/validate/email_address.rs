//! Email addresses (RFC 5322), parsed as Go's `net/mail` does it, with Go's errors.

use mainstay_gocompat::quote;

/// Why a text is not an address; none if it is one.
pub(crate) fn address_error(text: &str) -> Option<AddressError> {
    let mut parser = Parser { rest: text };
    parser.single_address().err()
}

/// Why a text is not an address, without Go's prefix `mail:`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    /// Text follows the address.
    #[error("expected single address, got {}", quote(.0))]
    SeveralAddresses(String),
    /// A group has no addresses.
    #[error("empty group")]
    EmptyGroup,
    /// A group has several addresses.
    #[error("group with multiple addresses")]
    SeveralInGroup,
    /// The text ends where an address is expected.
    #[error("no address")]
    NoAddress,
    /// The text has plain words only.
    #[error("missing '@' or angle-addr")]
    MissingAt,
    /// The text has words only, some in quotes.
    #[error("no angle-addr")]
    NoAngleAddress,
    /// An address in angle brackets does not end.
    #[error("unclosed angle-addr")]
    UnclosedAngleAddress,
    /// The addresses of a group are not separated.
    #[error("expected comma")]
    ExpectedComma,
    /// The text ends where `local@domain` is expected.
    #[error("no addr-spec")]
    NoAddressSpec,
    /// The local part is an empty text in quotes.
    #[error("empty quoted string in addr-spec")]
    EmptyQuotedString,
    /// No `@` follows the local part.
    #[error("missing @ in addr-spec")]
    MissingAtInSpec,
    /// Nothing follows the `@`.
    #[error("no domain in addr-spec")]
    NoDomain,
    /// A word begins with an invalid character.
    #[error("invalid string")]
    InvalidString,
    /// A word begins with a dot.
    #[error("leading dot in atom")]
    LeadingDot,
    /// A word has two dots in a row.
    #[error("double dot in atom")]
    DoubleDot,
    /// A word ends in a dot.
    #[error("trailing dot in atom")]
    TrailingDot,
    /// A quoted text has an invalid character.
    #[error("bad character in quoted-string: {}", quoted(*.0))]
    BadInQuotedString(char),
    /// A text in quotes does not end.
    #[error("unclosed quoted-string")]
    UnclosedQuotedString,
    /// A name has no first word.
    #[error("missing word in phrase: mail: {0}")]
    MissingWord(Box<Self>),
    /// A domain in brackets has an invalid character.
    #[error("bad character in domain-literal: {}", quoted(*.0))]
    BadInDomainLiteral(char),
    /// A domain in brackets does not end.
    #[error("unclosed domain-literal")]
    UnclosedDomainLiteral,
    /// A domain in brackets is not an IP address.
    #[error("invalid IP address in domain-literal: {}", quote(.0))]
    InvalidIpAddress(String),
    /// A comment in parentheses does not end.
    #[error("misformatted parenthetical comment")]
    UnclosedComment,
}

struct Parser<'t> {
    rest: &'t str,
}

fn is_visible(c: char) -> bool {
    ('!'..='~').contains(&c) || !c.is_ascii()
}

fn is_atom(c: char) -> bool {
    !"()<>[]:;@\\,\"".contains(c) && is_visible(c)
}

/// A character in single quotes, as `%q` prints one.
fn quoted(c: char) -> String {
    match c {
        '\'' => "'\\''".to_owned(),
        '"' => "'\"'".to_owned(),
        c => {
            let text = quote(c.encode_utf8(&mut [0; 4]));
            format!("'{}'", &text[1..text.len() - 1])
        }
    }
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn single_address(&mut self) -> Result<(), AddressError> {
        let found = self.address(true)?;
        self.comments()?;
        if !self.rest.is_empty() {
            return Err(AddressError::SeveralAddresses(self.rest.to_owned()));
        }
        match found {
            0 => Err(AddressError::EmptyGroup),
            1 => Ok(()),
            _ => Err(AddressError::SeveralInGroup),
        }
    }

    /// Parses an address, or a group; returns the number of addresses.
    fn address(&mut self, group: bool) -> Result<usize, AddressError> {
        self.blanks();
        if self.rest.is_empty() {
            return Err(AddressError::NoAddress);
        }
        let start = self.rest;
        if self.addr_spec().is_ok() {
            self.blanks();
            if self.take('(') {
                self.comment()?;
            }
            return Ok(1);
        }
        self.rest = start;
        let mut words = Vec::new();
        if self.peek() != Some('<') {
            words = self.phrase()?;
        }
        self.blanks();
        if group && self.take(':') {
            return self.group();
        }
        if !self.take('<') {
            let name = words.join(" ");
            return Err(if name.chars().all(is_atom) {
                AddressError::MissingAt
            } else {
                AddressError::NoAngleAddress
            });
        }
        self.addr_spec()?;
        if self.take('>') { Ok(1) } else { Err(AddressError::UnclosedAngleAddress) }
    }

    fn group(&mut self) -> Result<usize, AddressError> {
        self.blanks();
        if self.take(';') {
            self.comments()?;
            return Ok(0);
        }
        let mut found = 0;
        loop {
            self.blanks();
            found += self.address(false)?;
            self.comments()?;
            if self.take(';') {
                self.comments()?;
                return Ok(found);
            }
            if !self.take(',') {
                return Err(AddressError::ExpectedComma);
            }
        }
    }

    /// `local@domain`.
    fn addr_spec(&mut self) -> Result<(), AddressError> {
        self.blanks();
        match self.peek() {
            None => return Err(AddressError::NoAddressSpec),
            Some('"') => {
                // Each error of the quoted text is reported as an empty text.
                if self.string().unwrap_or_default().is_empty() {
                    return Err(AddressError::EmptyQuotedString);
                }
            }
            Some(_) => {
                self.atom(false)?;
            }
        }
        if !self.take('@') {
            return Err(AddressError::MissingAtInSpec);
        }
        self.blanks();
        match self.peek() {
            None => Err(AddressError::NoDomain),
            Some('[') => self.literal(),
            Some(_) => self.atom(false).map(|_| ()),
        }
    }

    fn atom(&mut self, lenient: bool) -> Result<&'t str, AddressError> {
        let end = self.rest.find(|c| !is_atom(c)).unwrap_or(self.rest.len());
        if end == 0 {
            return Err(AddressError::InvalidString);
        }
        let (atom, rest) = self.rest.split_at(end);
        self.rest = rest;
        match atom {
            _ if lenient => Ok(atom),
            _ if atom.starts_with('.') => Err(AddressError::LeadingDot),
            _ if atom.contains("..") => Err(AddressError::DoubleDot),
            _ if atom.ends_with('.') => Err(AddressError::TrailingDot),
            _ => Ok(atom),
        }
    }

    fn string(&mut self) -> Result<String, AddressError> {
        let mut found = String::new();
        let mut escaped = false;
        for (at, c) in self.rest.char_indices().skip(1) {
            match c {
                _ if escaped && (is_visible(c) || c == ' ' || c == '\t') => {
                    found.push(c);
                    escaped = false;
                }
                '"' if !escaped => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(found);
                }
                '\\' if !escaped => escaped = true,
                _ if !escaped && (is_visible(c) || c == ' ' || c == '\t') => found.push(c),
                _ => return Err(AddressError::BadInQuotedString(c)),
            }
        }
        Err(AddressError::UnclosedQuotedString)
    }

    fn phrase(&mut self) -> Result<Vec<String>, AddressError> {
        let mut words = Vec::new();
        loop {
            if !words.is_empty() {
                self.comments()?;
            }
            self.blanks();
            let word = match self.peek() {
                None => return Ok(words),
                Some('"') => self.string(),
                Some(_) => self.atom(true).map(str::to_owned),
            };
            match word {
                Ok(word) => words.push(word),
                Err(error) if words.is_empty() => {
                    return Err(AddressError::MissingWord(Box::new(error)));
                }
                Err(_) => return Ok(words),
            }
        }
    }

    fn literal(&mut self) -> Result<(), AddressError> {
        let inner = &self.rest[1..];
        let is_invalid = |c: char| !is_visible(c) || "[\\".contains(c);
        let end = inner.find(']');
        let text = &inner[..end.unwrap_or(inner.len())];
        if let Some(c) = text.chars().find(|c| is_invalid(*c)) {
            return Err(AddressError::BadInDomainLiteral(c));
        }
        let Some(end) = end else { return Err(AddressError::UnclosedDomainLiteral) };
        self.rest = &inner[end + 1..];
        if text.parse::<std::net::IpAddr>().is_err() {
            return Err(AddressError::InvalidIpAddress(text.to_owned()));
        }
        Ok(())
    }

    /// Comments in parentheses, and blanks around them.
    fn comments(&mut self) -> Result<(), AddressError> {
        self.blanks();
        while self.take('(') {
            self.comment()?;
            self.blanks();
        }
        Ok(())
    }

    /// The rest of a comment whose parenthesis is open.
    fn comment(&mut self) -> Result<(), AddressError> {
        let mut depth = 1;
        let mut chars = self.rest.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' if chars.peek().is_some() => {
                    chars.next();
                }
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &self.rest[at + 1..];
                return Ok(());
            }
        }
        self.rest = "";
        Err(AddressError::UnclosedComment)
    }
}

#[cfg(test)]
mod tests {
    use super::address_error;

    #[test]
    fn addresses_are_parsed_as_by_go() {
        let valid = [
            "a@b.c",
            "Ann <a@b>",
            "\"A. N.\" <a@b>",
            "a@[127.0.0.1]",
            "a@b (Ann)",
            "g: a@b;",
            "ä@ö",
        ];
        for text in valid {
            assert_eq!(address_error(text), None, "{text}");
        }
        for (text, why) in [
            ("", "no address"),
            ("ann", "missing '@' or angle-addr"),
            ("ann at example", "no angle-addr"),
            ("Ann <a@b", "unclosed angle-addr"),
            ("a@b, c@d", "expected single address, got \", c@d\""),
            ("g:;", "empty group"),
            ("g: a@b, c@d;", "group with multiple addresses"),
            ("<a@>", "invalid string"),
            ("<a@", "no domain in addr-spec"),
            ("<a..b@c>", "double dot in atom"),
            ("<a.@c>", "trailing dot in atom"),
            ("@b", "missing word in phrase: mail: invalid string"),
            ("a@[x]", "missing '@' or angle-addr"),
            ("<a@[x]>", "invalid IP address in domain-literal: \"x\""),
            ("a@b (", "misformatted parenthetical comment"),
            ("\"a", "missing word in phrase: mail: unclosed quoted-string"),
        ] {
            assert_eq!(
                address_error(text).map(|error| error.to_string()).as_deref(),
                Some(why),
                "{text}"
            );
        }
    }
}
