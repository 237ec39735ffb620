//! Doubles as texts: exact digits, thousands apart, powers of ten written out.

use std::fmt::Write as _;

/// The most digits behind a point that may be asked for (Go's `fmt` reads no longer numbers).
pub(super) const MOST: usize = 10_000_009;

/// No double has more digits behind its point.
const DIGITS: usize = 1_100;

/// A number with so many digits behind its point, correctly rounded.
pub(super) fn exact(out: &mut String, number: f64, digits: usize) {
    let known = digits.min(DIGITS);
    // Writing to a string does not fail.
    let _ = write!(out, "{number:.known$}");
    out.extend(std::iter::repeat_n('0', digits - known));
}

/// As [`exact`], with an exponent of at least two digits.
pub(super) fn exponent(out: &mut String, number: f64, digits: usize) {
    let known = digits.min(DIGITS);
    let text = format!("{number:.known$e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    out.push_str(mantissa);
    out.extend(std::iter::repeat_n('0', digits - known));
    let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
    // Writing to a string does not fail.
    let _ = write!(out, "e{sign}{power:0>2}");
}

/// `1,234.500000`, for American readers.
///
/// The library behind upstream's keeps how many digits are wanted at least in one byte and at most
/// in two, which shows above 255: zeros at the end are dropped.
pub(super) fn fixed(out: &mut String, number: f64, digits: i64) {
    if without_digits(out, number) {
        return;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the rule above")]
    let (least, most) = (digits as u8, digits as i16);
    let mut text = String::new();
    match usize::try_from(most) {
        Ok(most) => exact(&mut text, number.abs(), most.min(DIGITS)),
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
    let zeros = usize::from(least).saturating_sub(fraction.len());
    if !fraction.is_empty() || zeros > 0 {
        out.push('.');
        out.push_str(fraction);
        out.extend(std::iter::repeat_n('0', zeros));
    }
}

/// `1.234500×10⁰³`: always six digits. What is written as precision is, in upstream, how wide the
/// text is at least.
pub(super) fn scientific(out: &mut String, number: f64, width: i64) {
    let mut shown = String::new();
    if !without_digits(&mut shown, number) {
        if number < 0.0 {
            shown.push('-');
        }
        let text = format!("{:.6e}", number.abs());
        let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
        shown.push_str(mantissa);
        shown.push_str("×10");
        let power = match power.strip_prefix('-') {
            Some(power) => {
                shown.push('⁻');
                power
            }
            None => power,
        };
        let raised = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
        for digit in format!("{power:0>2}").bytes() {
            shown.push(raised[usize::from(digit - b'0')]);
        }
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "kept in two bytes"
    )]
    let width = usize::from(width as u16);
    out.extend(std::iter::repeat_n(' ', width.saturating_sub(shown.chars().count())));
    out.push_str(&shown);
}

/// Writes a number that has no digits.
fn without_digits(out: &mut String, number: f64) -> bool {
    if number.is_nan() {
        out.push_str("NaN");
    } else if number.is_infinite() {
        out.push_str(if number > 0.0 { "∞" } else { "-∞" });
    }
    !number.is_finite()
}
