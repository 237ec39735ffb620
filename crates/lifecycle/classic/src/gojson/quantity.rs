//! Quantities in the canonical form of `k8s.io/apimachinery/pkg/api/resource`.

/// In which family of suffixes a quantity is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

const DECIMAL: [(&str, i32); 11] = [
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
    ("", 0),
];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The canonical text, or nothing if the text is not a quantity or too large to be one.
///
/// The number is kept as an integer count of billionths, which is the precision that the original
/// keeps; smaller parts are rounded up.
pub(super) fn canonical(text: &str) -> Option<String> {
    let (negative, body) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = body.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(body.len());
    let (number, suffix) = body.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let (form, nanos) = scaled(whole, fraction, suffix)?;
    let written = write(form, nanos)?;
    Some(if negative && nanos != 0 { format!("-{written}") } else { written })
}

fn scaled(whole: &str, fraction: &str, suffix: &str) -> Option<(Form, i128)> {
    let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()?;
    if let Some(at) = BINARY.iter().skip(1).position(|unit| *unit == suffix) {
        let factor = 1_i128 << (10 * (at + 1));
        return Some((Form::Binary, shift(digits.checked_mul(factor)?, 9 - places)?));
    }
    if let Some((_, exponent)) = DECIMAL.iter().find(|(unit, _)| *unit == suffix) {
        return Some((Form::Decimal, shift(digits, 9 - places + exponent)?));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?;
    Some((Form::Exponent, shift(digits, (9 - places).checked_add(exponent)?)?))
}

/// `value × 10^by`, rounded up.
fn shift(value: i128, by: i32) -> Option<i128> {
    if by >= 0 {
        value.checked_mul(10_i128.checked_pow(u32::try_from(by).ok()?)?)
    } else {
        let Some(divisor) = 10_i128.checked_pow(by.unsigned_abs()) else {
            return Some(i128::from(value != 0));
        };
        Some(value / divisor + i128::from(value % divisor != 0))
    }
}

fn write(form: Form, nanos: i128) -> Option<String> {
    const ONE: i128 = 1_000_000_000;
    if nanos == 0 {
        return Some("0".to_owned());
    }
    // Small binary numbers are written with decimal suffixes, as the original does.
    if form == Form::Binary && nanos > 1024 * ONE - 1 {
        let mut value = nanos / ONE + i128::from(nanos % ONE != 0);
        let mut unit = 0;
        while value % 1024 == 0 && unit + 1 < BINARY.len() {
            value /= 1024;
            unit += 1;
        }
        return Some(format!("{value}{}", BINARY[unit]));
    }
    let mut value = nanos;
    let mut exponent = -9;
    while value % 1000 == 0 && exponent < 18 {
        value /= 1000;
        exponent += 3;
    }
    if form == Form::Exponent {
        return Some(if exponent == 0 { value.to_string() } else { format!("{value}e{exponent}") });
    }
    let (unit, _) = DECIMAL.iter().find(|(_, power)| *power == exponent)?;
    Some(format!("{value}{unit}"))
}

#[cfg(test)]
mod tests {
    use super::canonical;

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
            assert_eq!(canonical(given).as_deref(), Some(wanted), "{given}");
        }
        for bad in ["", "x", "1.2.3", "1Xi", ".", "1 Gi"] {
            assert_eq!(canonical(bad), None, "{bad}");
        }
    }
}
