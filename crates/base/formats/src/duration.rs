//! Durations: those of Go (`1h30m`), and those of the schema format `duration` (`3 days`).

const SECOND: u64 = 1_000_000_000;

/// Parses a Go duration (`1h30m`, `-1.5ms`) to nanoseconds.
pub fn parse_go(text: &str) -> Option<i64> {
    const MOST: u64 = 1 << 63;
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let end = rest.bytes().take_while(u8::is_ascii_digit).count();
        let mut whole: u64 = 0;
        for digit in rest[..end].bytes() {
            whole = whole.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
            if whole > MOST {
                return None;
            }
        }
        rest = &rest[end..];
        let (mut fraction, mut scale, mut digits) = (0_u64, 1_f64, end);
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.bytes().take_while(u8::is_ascii_digit).count();
            for digit in after[..end].bytes() {
                // Further digits do not fit, and are ignored.
                if fraction > (MOST - 1) / 10 {
                    break;
                }
                let next = fraction * 10 + u64::from(digit - b'0');
                if next > MOST {
                    break;
                }
                fraction = next;
                scale *= 10.0;
            }
            digits += end;
            rest = &after[end..];
        }
        if digits == 0 {
            return None;
        }
        let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
        let unit: u64 = match &rest[..end] {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => SECOND,
            "m" => 60 * SECOND,
            "h" => 3600 * SECOND,
            _ => return None,
        };
        rest = &rest[end..];
        let mut part = whole.checked_mul(unit).filter(|part| *part <= MOST)?;
        if fraction > 0 {
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "Go's arithmetic; less than one unit"
            )]
            let more = (fraction as f64 * (unit as f64 / scale)) as u64;
            part = part.checked_add(more).filter(|part| *part <= MOST)?;
        }
        // The sum of two largest parts wraps to zero, as in Go.
        sum = Some(sum.wrapping_add(part)).filter(|sum| *sum <= MOST)?;
    }
    if negative { 0_i64.checked_sub_unsigned(sum) } else { i64::try_from(sum).ok() }
}

/// Formats a duration as Go does it: `1h0m0.5s`.
pub fn format_go(nanoseconds: i64) -> String {
    let all = nanoseconds.unsigned_abs();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let fraction = |value: u64, unit: u64| {
        let digits = format!("{:0width$}", value % unit, width = unit.ilog10() as usize);
        match digits.trim_end_matches('0') {
            "" => (value / unit).to_string(),
            digits => format!("{}.{digits}", value / unit),
        }
    };
    match all {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{all}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", fraction(all, 1_000)),
        1_000_000..SECOND => format!("{sign}{}ms", fraction(all, 1_000_000)),
        _ => {
            let seconds = fraction(all % (60 * SECOND), SECOND);
            let minutes = all / (60 * SECOND);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// Why a text is not a duration of `format: duration`, in the words of kube-openapi.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationFormatError {
    /// The text has no number with a unit.
    #[error("unable to parse {text} as duration")]
    NoUnits {
        /// The text.
        text: String,
    },
    /// A number before a unit does not fit 64 bits.
    #[error("strconv.Atoi: parsing \"{digits}\": value out of range")]
    OutOfRange {
        /// The digits of the number.
        digits: String,
    },
}

/// Parses a duration of `format: duration` to nanoseconds: a Go duration, or the sum of all numbers
/// with units in the text.
///
/// # Errors
///
/// If the text has no number with a unit, or a number that does not fit.
pub fn parse(text: &str) -> Result<i64, DurationFormatError> {
    if let Some(duration) = parse_go(text) {
        return Ok(duration);
    }
    match parse_scala(text) {
        Ok(Some(duration)) => Ok(duration),
        Ok(None) => Err(DurationFormatError::NoUnits { text: text.to_owned() }),
        Err(digits) => Err(DurationFormatError::OutOfRange { digits: digits.to_owned() }),
    }
}

/// The sum of all numbers with units; none if the text has none. The error has the digits of a
/// number that does not fit.
fn parse_scala(text: &str) -> Result<Option<i64>, &str> {
    let mut sum = None;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let number = &rest[start..];
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let (digits, after) = number.split_at(end);
        let after = after.trim_start_matches(['\t', '\n', '\x0c', '\r', ' ']);
        let end = after.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(after.len());
        rest = &after[end..];
        if end == 0 {
            continue;
        }
        let factor: i64 = digits.parse().map_err(|_| digits)?;
        if let Some(unit) = unit_of(&after[..end].to_lowercase()) {
            // The sum wraps, as in Go.
            sum = Some(sum.unwrap_or(0_i64).wrapping_add(factor.wrapping_mul(unit)));
        }
    }
    Ok(sum)
}

fn unit_of(unit: &str) -> Option<i64> {
    const UNITS: [(&[&str], &str, u64); 8] = [
        (&["ns"], "nano", 1),
        (&["us", "µs"], "micro", 1_000),
        (&["ms"], "milli", 1_000_000),
        (&["s"], "sec", SECOND),
        (&["m"], "min", 60 * SECOND),
        (&["h", "hr"], "hour", 3600 * SECOND),
        (&["d"], "day", 86_400 * SECOND),
        (&["w", "wk"], "week", 7 * 86_400 * SECOND),
    ];
    let found = UNITS
        .iter()
        .find(|(exact, prefix, _)| exact.contains(&unit) || unit.starts_with(prefix))?;
    Some(found.2.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_format_accepts_more_than_go() {
        for (text, nanoseconds) in [
            ("1h30m", Some(5_400_000_000_000)),
            ("3 days", Some(259_200_000_000_000)),
            ("22 ns", Some(22)),
            ("in 1 week and 2 hr, 5hrs", Some(612_000_000_000_000)),
            ("1 2 sec", Some(2_000_000_000)),
            ("9999999999999h", Some(-1_651_468_507_389_927_424)),
            ("5 weekends", Some(3_024_000_000_000_000)),
            ("", None),
            ("x", None),
            ("5", None),
            ("5 parsecs", None),
            ("99999999999999999999 days", None),
        ] {
            assert_eq!(parse(text).ok(), nanoseconds, "{text}");
        }
    }
}
