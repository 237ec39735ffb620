//! What stands behind a percent sign in the text of `format`.

/// How an argument is to be written.
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
        /// Whether it is written in capitals.
        upper: bool,
    },
    /// `%o`
    Octal,
}

impl Clause {
    /// Reads what stands behind a percent sign (which is not empty), and how many bytes it takes.
    ///
    /// # Errors
    ///
    /// In the words of cel-go's library.
    pub(crate) fn read(text: &[u8]) -> Result<(Self, usize), String> {
        const FAILED: &str = "could not parse formatting clause";
        const PRECISION: &str = "error while parsing precision";
        let mut at = 0;
        let mut precision = None;
        if text.first() == Some(&b'.') {
            let digits = text[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            at = 1 + digits;
            if at >= text.len() {
                return Err(format!(
                    "{FAILED}: {PRECISION}: could not find end of precision specifier"
                ));
            }
            let digits = String::from_utf8_lossy(&text[1..at]);
            precision = Some(digits.parse().map_err(|_| {
                let wrong = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
                format!(
                    "{FAILED}: {PRECISION}: error while converting precision to integer: \
                     strconv.Atoi: parsing \"{digits}\": {wrong}"
                )
            })?);
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
            _ => {
                let letter = char::from(letter);
                return Err(format!("{FAILED}: unrecognized formatting clause \"{letter}\""));
            }
        };
        Ok((clause, at + 1))
    }
}
