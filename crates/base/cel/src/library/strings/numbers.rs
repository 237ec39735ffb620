//! Text of doubles: exact digits, thousands separators, written powers of ten.

use std::fmt::Write as _;

/// The maximum precision (Go's `fmt` accepts no more).
pub(super) const MAX_PRECISION: usize = 10_000_009;

/// The maximum number of digits of a double's fraction.
const MAX_FRACTION_DIGITS: usize = 1_100;

/// Writes a number with a fraction of `digits` digits, correctly rounded.
pub(super) fn write_exact(out: &mut String, number: f64, digits: usize) {
    let available = digits.min(MAX_FRACTION_DIGITS);
    // Writing to a string does not fail.
    let _ = write!(out, "{number:.available$}");
    out.extend(std::iter::repeat_n('0', digits - available));
}

/// As [`write_exact`], with an exponent of at least two digits.
pub(super) fn write_with_exponent(out: &mut String, number: f64, digits: usize) {
    let available = digits.min(MAX_FRACTION_DIGITS);
    let text = format!("{number:.available$e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    out.push_str(mantissa);
    out.extend(std::iter::repeat_n('0', digits - available));
    let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
    // Writing to a string does not fail.
    let _ = write!(out, "e{sign}{power:0>2}");
}

/// Writes `1,234.500000`, for American English.
///
/// Upstream's number library stores the minimum number of digits in one byte and the maximum in
/// two. So zeros at the end are dropped for a precision above 255.
pub(super) fn write_fixed(out: &mut String, number: f64, digits: i64) {
    if write_special(out, number) {
        return;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the rule above")]
    let (min_digits, max_digits) = (digits as u8, digits as i16);
    let mut text = String::new();
    match usize::try_from(max_digits) {
        Ok(max_digits) => write_exact(&mut text, number.abs(), max_digits.min(MAX_FRACTION_DIGITS)),
        Err(_) => {
            // Writing to a string does not fail.
            let _ = write!(text, "{}", number.abs());
        }
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    if number < 0.0 {
        out.push('-');
    }
    for (at, digit) in whole.char_indices() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    let zeros = usize::from(min_digits).saturating_sub(fraction.len());
    if !fraction.is_empty() || zeros > 0 {
        out.push('.');
        out.push_str(fraction);
        out.extend(std::iter::repeat_n('0', zeros));
    }
}

/// Writes `1.234500×10⁰³`, always with six digits. In upstream the precision is the minimum width
/// of the text.
pub(super) fn write_scientific(out: &mut String, number: f64, width: i64) {
    let mut formatted = String::new();
    if !write_special(&mut formatted, number) {
        if number < 0.0 {
            formatted.push('-');
        }
        let text = format!("{:.6e}", number.abs());
        let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
        formatted.push_str(mantissa);
        formatted.push_str("×10");
        let power = match power.strip_prefix('-') {
            Some(power) => {
                formatted.push('⁻');
                power
            }
            None => power,
        };
        let superscripts = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
        for digit in format!("{power:0>2}").bytes() {
            formatted.push(superscripts[usize::from(digit - b'0')]);
        }
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "kept in two bytes"
    )]
    let width = usize::from(width as u16);
    out.extend(std::iter::repeat_n(' ', width.saturating_sub(formatted.chars().count())));
    out.push_str(&formatted);
}

/// Writes a special value; false for other numbers.
fn write_special(out: &mut String, number: f64) -> bool {
    if number.is_nan() {
        out.push_str("NaN");
    } else if number.is_infinite() {
        out.push_str(if number > 0.0 { "∞" } else { "-∞" });
    }
    !number.is_finite()
}
