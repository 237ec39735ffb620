//! Kubernetes quantities (`500m`, `1Gi`, `2e3`): parsing for comparison, and formatting of sums.

/// Parses a quantity into billionths; none if it is malformed. Rounds up below a billionth, as
/// Kubernetes does.
pub fn parse_nano(text: &str) -> Option<i128> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let length = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (digits, suffix) = rest.split_at(length);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let (base, power): (i128, i32) = match suffix {
        "n" => (10, 0),
        "u" => (10, 3),
        "m" => (10, 6),
        "" => (10, 9),
        "k" => (10, 12),
        "M" => (10, 15),
        "G" => (10, 18),
        "T" => (10, 21),
        "P" => (10, 24),
        "E" => (10, 27),
        "Ki" => (1024, 1),
        "Mi" => (1024, 2),
        "Gi" => (1024, 3),
        "Ti" => (1024, 4),
        "Pi" => (1024, 5),
        "Ei" => (1024, 6),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            (10, exponent.checked_add(9)?)
        }
    };
    let scale = |power: i32| base.checked_pow(u32::try_from(power).ok()?);
    let (numerator, mut divisor) =
        if power >= 0 { (scale(power)?, 1) } else { (1, scale(-power)?) };
    let numerator = if base == 1024 { numerator.checked_mul(1_000_000_000)? } else { numerator };
    let mut digits: i128 = 0;
    for digit in whole.bytes() {
        digits = digits.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    // Digits below a billionth of the unit do not matter after rounding up.
    for digit in fraction.bytes().take(18) {
        digits = digits.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
        divisor = divisor.checked_mul(10)?;
    }
    let scaled = digits.checked_mul(numerator)?;
    Some(sign * (scaled / divisor + i128::from(scaled % divisor != 0)))
}

/// The quantity as a float, for ratios.
pub(crate) fn parse_float(text: &str) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "ratios are compared as the API does: in floats"
    )]
    let nano = parse_nano(text).unwrap_or_default() as f64;
    nano / 1e9
}

/// Formats a sum of quantities canonically, in the family of suffixes of one of them.
pub(crate) fn format_nano(nano: i128, sample: &str) -> String {
    const BILLION: i128 = 1_000_000_000;
    let whole = nano / BILLION;
    let formatted = if nano % BILLION == 0 {
        if sample.ends_with('i') && whole % 1024 == 0 {
            format!("{}Ki", whole / 1024)
        } else {
            whole.to_string()
        }
    } else {
        format!("{nano}n")
    };
    mainstay_schema::canonical_quantity(&formatted).unwrap_or(formatted)
}

#[cfg(test)]
mod tests {
    use super::{format_nano, parse_float, parse_nano};

    #[test]
    fn equal_quantities_in_different_notations_parse_to_the_same_value() {
        for (one, other) in [
            ("1", "1000m"),
            ("1Ki", "1024"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("1e3", "1k"),
            ("2E-3", "2m"),
            ("1E", "1000P"),
            ("+1", "1."),
            (".5", "500m"),
            ("0.0000000001", "1n"),
        ] {
            assert_eq!(parse_nano(one), parse_nano(other), "{one} {other}");
            assert!(parse_nano(one).is_some(), "{one}");
        }
        assert_eq!(parse_nano("-1"), Some(-1_000_000_000));
        for malformed in ["", "-", ".", "1.2.3", "1x", "Ki", "1 ", "e3", "1e", "9e99"] {
            assert_eq!(parse_nano(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn sums_are_formatted_with_the_suffix_family_of_their_parts() {
        for (sum, sample, expected) in [
            (1_500_000_000, "500m", "1500m"),
            (2 * 1024 * 1024 * 1_000_000_000, "1Mi", "2Mi"),
            (3_000_000_000, "1", "3"),
        ] {
            assert_eq!(format_nano(sum, sample), expected, "{sum} as {sample}");
        }
        assert!((parse_float("500m") - 0.5).abs() < 1e-9);
    }
}
