//! The canonical form of a quantity, as the API writes it.
//!
//! A quantity keeps its family of suffixes (decimal, binary, exponent) and gets the largest suffix
//! without a fraction. Amounts of more than 38 digits keep their text.

use crate::scan::{self, BINARY, DECIMAL, Family, Scanned};
use crate::{ParseQuantityError, Quantity};

/// The canonical form of a quantity.
///
/// # Errors
///
/// As [`Quantity::parse`].
pub fn canonical(text: &str) -> Result<String, ParseQuantityError> {
    Quantity::parse(text)?;
    let scanned = scan::scan(text)?;
    let (family, shift, power) = scan::suffix(scanned.suffix)?;
    let Some((mantissa, exponent)) = amount(&scanned, shift, power) else {
        return Ok(text.to_owned());
    };
    Ok(format(mantissa, exponent, family))
}

/// The canonical form of an amount, with the suffixes of a family.
pub(crate) fn format(mut mantissa: i128, mut exponent: i32, family: Family) -> String {
    if mantissa == 0 {
        return "0".to_owned();
    }
    // Fractions of a billionth are rounded away from zero.
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
    let binary = (family == Family::Binary).then(|| format_binary(mantissa, exponent)).flatten();
    binary.unwrap_or_else(|| format_decimal(mantissa, exponent, family))
}

/// The amount as an integer and a power of ten; none if it does not fit.
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

fn format_decimal(mut mantissa: i128, mut exponent: i32, family: Family) -> String {
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

/// The form with a binary suffix; none for fractions and for amounts below 1024.
fn format_binary(mantissa: i128, exponent: i32) -> Option<String> {
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
        for (text, expected) in [
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
            assert_eq!(canonical(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn equal_amounts_of_a_family_have_one_form() {
        for (text, form) in [
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
            assert_eq!(canonical(text).as_deref(), Ok(form), "{text}");
        }
    }

    #[test]
    fn invalid_quantities_fail_with_the_error_of_upstream() {
        for (text, why) in [
            ("", ParseQuantityError::Format),
            ("x", ParseQuantityError::Format),
            ("1zz", ParseQuantityError::Format),
            ("1.2.3", ParseQuantityError::Format),
            ("1 Gi", ParseQuantityError::Format),
            ("--1", ParseQuantityError::Suffix),
            ("1e", ParseQuantityError::Suffix),
            ("1mi", ParseQuantityError::Suffix),
            ("e-10", ParseQuantityError::Number),
        ] {
            assert_eq!(canonical(text), Err(why), "{text}");
        }
    }

    #[test]
    fn a_suffix_or_sign_without_a_number_is_zero_like_upstream() {
        for text in [".", "Gi", "-", "+", "00"] {
            assert_eq!(canonical(text).as_deref(), Ok("0"), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_canonical_form_is_stable(text in "[+-]?[0-9]{1,12}(\\.[0-9]{0,9})?(n|u|m||k|M|G|Ki|Mi|Gi|e[0-9])") {
            if let Ok(form) = canonical(&text) {
                proptest::prop_assert_eq!(canonical(&form), Ok(form.clone()));
            }
        }
    }
}
