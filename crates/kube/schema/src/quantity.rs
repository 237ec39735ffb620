//! Quantities: `100m`, `2Gi`, `1e3`, and the one form in which the API writes each of them.
//!
//! The rules are those of `k8s.io/apimachinery/pkg/api/resource`: a number keeps its family of
//! suffixes (decimal, binary, exponent) and is written with the largest suffix that leaves no
//! fraction. Amounts are exact up to 38 digits; beyond that the text stays as it was written.

const EXPRESSION: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
/// Decimal suffixes with their powers of ten.
const DECIMAL: [(&str, i32); 10] = [
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
const BINARY: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Decimal,
    Binary,
    Exponent,
}

/// The form in which the API writes a quantity, or why it is none.
pub fn canonical(text: &str) -> Result<String, &'static str> {
    let (number, suffix) = split(text)?;
    let (family, shift, power) = suffix_of(suffix)?;
    let Some((mut mantissa, mut exponent)) = amount(number, shift, power) else {
        return Ok(text.to_owned());
    };
    if mantissa == 0 {
        return Ok("0".to_owned());
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
    Ok(binary.unwrap_or_else(|| written_decimal(mantissa, exponent, family)))
}

/// Splits a number from its suffix. The number has a digit; nothing else is in it.
fn split(text: &str) -> Result<(&str, &str), &'static str> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let number = &unsigned[..digits];
    let dots = number.bytes().filter(|byte| *byte == b'.').count();
    if dots > 1 || number.len() == dots {
        return Err(EXPRESSION);
    }
    Ok(text.split_at(text.len() - unsigned.len() + digits))
}

fn suffix_of(suffix: &str) -> Result<(Family, u32, i32), &'static str> {
    if let Some((_, shift)) = BINARY.iter().find(|row| row.0 == suffix) {
        return Ok((Family::Binary, *shift, 0));
    }
    if let Some((_, power)) = DECIMAL.iter().find(|row| row.0 == suffix) {
        return Ok((Family::Decimal, 0, *power));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or(EXPRESSION)?;
    let digits = exponent.strip_prefix('+').unwrap_or(exponent);
    let power = digits.parse().map_err(|_| EXPRESSION)?;
    Ok((Family::Exponent, 0, power))
}

/// The amount as an integer and a power of ten; none when it does not fit.
fn amount(number: &str, shift: u32, power: i32) -> Option<(i128, i32)> {
    let negative = number.starts_with('-');
    let mut mantissa: i128 = 0;
    let mut exponent = power;
    let mut fraction = false;
    for byte in number.trim_start_matches(['+', '-']).bytes() {
        if byte == b'.' {
            fraction = true;
            continue;
        }
        mantissa = mantissa.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
        if fraction {
            exponent = exponent.checked_sub(1)?;
        }
    }
    let mantissa = mantissa.checked_mul(1_i128.checked_shl(shift)?)?;
    ((-40..=40).contains(&exponent))
        .then_some((if negative { -mantissa } else { mantissa }, exponent))
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
        for bad in ["", "x", "1.2.3", "1Xi", ".", "1 Gi"] {
            assert!(canonical(bad).is_err(), "{bad}");
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
        for text in ["", "x", "1zz", "1.2.3", "Gi", "1 Gi", "--1", "1e", "1mi", "."] {
            assert_eq!(canonical(text), Err(EXPRESSION), "{text}");
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
