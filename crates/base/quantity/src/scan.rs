//! Quantity scanner: splits a text into its parts, as leniently as upstream.

use crate::ParseQuantityError;

/// The family of suffixes of a quantity; upstream calls it format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// `k`, `M`, or no suffix.
    Decimal,
    /// `Ki`, `Mi`.
    Binary,
    /// `e3`
    Exponent,
}

/// Decimal suffixes with their powers of ten.
pub(crate) const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
/// Binary suffixes with their powers of two.
pub(crate) const BINARY: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// The parts of a quantity.
pub(crate) struct Scanned<'a> {
    /// Whether the text has a minus sign.
    pub(crate) negative: bool,
    /// The digits before the dot without leading zeros, or `0`.
    pub(crate) integer: &'a str,
    /// The digits after the dot.
    pub(crate) fraction: &'a str,
    /// The suffix.
    pub(crate) suffix: &'a str,
    /// Whether the text has any digit.
    pub(crate) any_digit: bool,
}

/// Splits a text.
pub(crate) fn scan(text: &str) -> Result<Scanned<'_>, ParseQuantityError> {
    if text.is_empty() {
        return Err(ParseQuantityError::Format);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let significant = unsigned.trim_start_matches('0');
    let (integer, rest) = significant.split_at(digits(significant));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let number = letters.strip_prefix(['+', '-']).unwrap_or(letters);
    if number.bytes().any(|byte| !byte.is_ascii_digit()) {
        return Err(ParseQuantityError::Format);
    }
    Ok(Scanned {
        negative: text.starts_with('-'),
        integer: if integer.is_empty() { "0" } else { integer },
        fraction,
        suffix,
        any_digit: unsigned.len() > significant.len()
            || !integer.is_empty()
            || !fraction.is_empty(),
    })
}

/// The meaning of a suffix: its family, a power of two, a power of ten.
pub(crate) fn suffix(suffix: &str) -> Result<(Family, u32, i32), ParseQuantityError> {
    if let Some((_, power)) = DECIMAL.iter().find(|row| row.0 == suffix) {
        return Ok((Family::Decimal, 0, *power));
    }
    if let Some((_, shift)) = BINARY.iter().find(|row| row.0 == suffix) {
        return Ok((Family::Binary, *shift, 0));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or(ParseQuantityError::Suffix)?;
    let power: i64 = exponent.parse().map_err(|_| ParseQuantityError::Suffix)?;
    #[expect(clippy::cast_possible_truncation, reason = "like upstream, which truncates")]
    Ok((Family::Exponent, 0, power as i32))
}
