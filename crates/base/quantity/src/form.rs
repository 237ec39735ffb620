//! The one form in which the API writes a quantity.
//!
//! A number keeps its family of suffixes (decimal, binary, exponent) and is written with the
//! largest suffix that leaves no fraction. Amounts of more than 38 digits stay as they were written.

use crate::scan::{self, BINARY, DECIMAL, Family, Scanned};
use crate::{Malformed, Quantity};

/// The form in which the API writes a quantity.
///
/// # Errors
///
/// As [`Quantity::parse`].
pub fn canonical(text: &str) -> Result<String, Malformed> {
    Quantity::parse(text)?;
    let scanned = scan::scan(text)?;
    let (family, shift, power) = scan::suffix(scanned.suffix)?;
    let Some((mantissa, exponent)) = amount(&scanned, shift, power) else {
        return Ok(text.to_owned());
    };
    Ok(written(mantissa, exponent, family))
}

/// The form of an amount that is written with suffixes of a family.
pub(crate) fn written(mut mantissa: i128, mut exponent: i32, family: Family) -> String {
    if mantissa == 0 {
        return "0".to_owned();
    }
    // Nothing below a billionth: what is smaller is rounded away from zero.
    while exponent < -9 {
        let rest = mantissa % 10;
        mantissa /= 10;
        mantissa += rest.signum();
        exponent += 1;
    }
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    let binary = (family == Family::Binary).then(|| written_binary(mantissa, exponent)).flatten();
    binary.unwrap_or_else(|| written_decimal(mantissa, exponent, family))
}

/// The amount as an integer and a power of ten; none when it does not fit.
pub(crate) fn amount(scanned: &Scanned<'_>, shift: u32, power: i32) -> Option<(i128, i32)> {
    let mut mantissa: i128 = 0;
    for byte in scanned.integer.bytes().chain(scanned.fraction.bytes()) {
        mantissa = mantissa.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
    }
    let exponent = power.checked_sub(i32::try_from(scanned.fraction.len()).ok()?)?;
    let mantissa = mantissa.checked_mul(1_i128.checked_shl(shift)?)?;
    ((-40..=40).contains(&exponent))
        .then_some((if scanned.negative { -mantissa } else { mantissa }, exponent))
}

fn written_decimal(mut mantissa: i128, mut exponent: i32, family: Family) -> String {
    while exponent.rem_euclid(3) != 0 {
        mantissa *= 10;
        exponent -= 1;
    }
    if family == Family::Exponent && exponent != 0 {
        return format!("{mantissa}e{exponent}");
    }
    while exponent > 18 {
        mantissa *= 10;
        exponent -= 1;
    }
    let suffix = DECIMAL.iter().find(|row| row.1 == exponent).map_or("", |row| row.0);
    format!("{mantissa}{suffix}")
}

/// None for what binary suffixes are not used for: fractions and amounts below 1024.
fn written_binary(mantissa: i128, exponent: i32) -> Option<String> {
    let ten = 10_i128.checked_pow(u32::try_from(exponent).ok()?)?;
    let mut amount = mantissa.checked_mul(ten)?;
    if amount.abs() < 1024 {
        return None;
    }
    let mut suffix = "";
    for (name, _) in BINARY {
        if amount % 1024 != 0 {
            break;
        }
        amount /= 1024;
        suffix = name;
    }
    Some(format!("{amount}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_form_has_no_fraction_and_the_largest_suffix() {
        for (given, wanted) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1", "1"),
            ("100m", "100m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("512Mi", "512Mi"),
            ("1000Mi", "1000Mi"),
            ("0", "0"),
            ("2000", "2k"),
            ("1e3", "1e3"),
            ("100e3", "100e3"),
            ("-1000m", "-1"),
            ("1023", "1023"),
            ("0.1Ki", "102400m"),
            ("5G", "5G"),
            ("0.25", "250m"),
            ("1024Ki", "1Mi"),
            ("1Ki", "1Ki"),
        ] {
            assert_eq!(canonical(given).as_deref(), Ok(wanted), "{given}");
        }
    }

    #[test]
    fn each_amount_has_one_form() {
        for (written, form) in [
            ("0", "0"),
            ("0Gi", "0"),
            ("0.5", "500m"),
            ("1", "1"),
            ("1.0", "1"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1024Ki", "1Mi"),
            ("1000Ki", "1000Ki"),
            ("1.5Gi", "1536Mi"),
            ("0.5Mi", "512Ki"),
            ("0.5Ki", "512"),
            ("100M", "100M"),
            ("1e3", "1e3"),
            ("1E6", "1e6"),
            ("12e6", "12e6"),
            ("120e5", "12e6"),
            ("+1", "1"),
            ("-1500m", "-1500m"),
            (".5", "500m"),
            ("5.", "5"),
            ("0.0000000001", "1n"),
            ("999.1n", "1u"),
            ("100000000000000000000E", "100000000000000000000E"),
        ] {
            assert_eq!(canonical(written).as_deref(), Ok(form), "{written}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, why) in [
            ("", Malformed::Format),
            ("x", Malformed::Format),
            ("1zz", Malformed::Format),
            ("1.2.3", Malformed::Format),
            ("1 Gi", Malformed::Format),
            ("--1", Malformed::Suffix),
            ("1e", Malformed::Suffix),
            ("1mi", Malformed::Suffix),
            ("e-10", Malformed::Number),
        ] {
            assert_eq!(canonical(text), Err(why), "{text}");
        }
    }

    #[test]
    fn a_suffix_or_sign_without_a_number_is_zero_as_upstream() {
        for text in [".", "Gi", "-", "+", "00"] {
            assert_eq!(canonical(text).as_deref(), Ok("0"), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_form_of_a_form_is_itself(text in "[+-]?[0-9]{1,12}(\\.[0-9]{0,9})?(n|u|m||k|M|G|Ki|Mi|Gi|e[0-9])") {
            if let Ok(form) = canonical(&text) {
                proptest::prop_assert_eq!(canonical(&form), Ok(form.clone()));
            }
        }
    }
}
