//! Formatting clauses in the text of `format`.

use super::error::ClauseError;

/// A formatting clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    /// `%s`
    String,
    /// `%d`
    Decimal,
    /// `%.2f`, with the digits after the point
    Fixed(Option<i64>),
    /// `%.2e`, with the digits after the point
    Scientific(Option<i64>),
    /// `%b`
    Binary,
    /// `%x`, or `%X` in capitals
    Hex {
        /// Whether the digits are capitals.
        upper: bool,
    },
    /// `%o`
    Octal,
}

impl Clause {
    /// Parses the clause after a percent sign from a non-empty text; also returns its length in
    /// bytes.
    ///
    /// # Errors
    ///
    /// If the clause is invalid.
    pub(crate) fn parse(text: &[u8]) -> Result<(Self, usize), ClauseError> {
        let mut at = 0;
        let mut precision = None;
        if text.first() == Some(&b'.') {
            let digits = text[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            at = 1 + digits;
            if at >= text.len() {
                return Err(ClauseError::NoEnd);
            }
            let digits = String::from_utf8_lossy(&text[1..at]);
            let parsed = digits.parse();
            precision =
                Some(parsed.map_err(|_| ClauseError::Precision { digits: digits.into_owned() })?);
        }
        let letter = text.get(at).copied().unwrap_or_default();
        let clause = match letter {
            b's' => Self::String,
            b'd' => Self::Decimal,
            b'f' => Self::Fixed(precision),
            b'e' => Self::Scientific(precision),
            b'b' => Self::Binary,
            b'x' | b'X' => Self::Hex { upper: letter == b'X' },
            b'o' => Self::Octal,
            _ => return Err(ClauseError::Letter { letter: char::from(letter) }),
        };
        Ok((clause, at + 1))
    }
}
