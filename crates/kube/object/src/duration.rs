//! Durations as Go writes them: `1h2m3.5s`.

use mainstay_gocompat::quote;
use std::time::Duration;

/// A text is no duration; the messages are those of Go's `time` package.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseDurationError {
    /// A number is missing, malformed or too large.
    #[error("time: invalid duration {}", quote(text))]
    Invalid {
        /// The text.
        text: String,
    },
    /// A number has no unit.
    #[error("time: missing unit in duration {}", quote(text))]
    MissingUnit {
        /// The text.
        text: String,
    },
    /// A number has a unit that Go does not know.
    #[error("time: unknown unit {} in duration {}", quote(unit), quote(text))]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The text.
        text: String,
    },
}

/// Parses a duration (`time.ParseDuration`). A negative duration is `None`.
///
/// # Errors
///
/// The text is no duration.
pub fn parse(text: &str) -> Result<Option<Duration>, ParseDurationError> {
    let invalid = || ParseDurationError::Invalid { text: text.to_owned() };
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(Some(Duration::ZERO));
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        // Digits with at most one point.
        let mut points = 0;
        let end = rest.find(|c: char| {
            points += usize::from(c == '.');
            !c.is_ascii_digit() && c != '.' || points > 1
        });
        let (number, tail) = rest.split_at(end.unwrap_or(rest.len()));
        if !number.bytes().any(|b| b.is_ascii_digit()) {
            return Err(invalid());
        }
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let one: u128 = match unit {
            "" => return Err(ParseDurationError::MissingUnit { text: text.to_owned() }),
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => {
                let (unit, text) = (unit.to_owned(), text.to_owned());
                return Err(ParseDurationError::UnknownUnit { unit, text });
            }
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let whole: u128 =
            if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        // Digits after the eighteenth are less than a nanosecond for each unit.
        let part = &part[..part.len().min(18)];
        let tenths = 10_u128.pow(u32::try_from(part.len()).unwrap_or(18));
        let part: u128 = if part.is_empty() { 0 } else { part.parse().map_err(|_| invalid())? };
        nanos = whole
            .checked_mul(one)
            .and_then(|whole| nanos.checked_add(whole + part * one / tenths))
            .filter(|nanos| *nanos <= i64::MAX.unsigned_abs().into())
            .ok_or_else(invalid)?;
        rest = tail;
    }
    let nanos = u64::try_from(nanos).map_err(|_| invalid())?;
    Ok((!negative).then(|| Duration::from_nanos(nanos)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse_as_in_go() {
        for (text, expected) in [
            ("10s", Ok(Some(10_000_000_000))),
            ("1h2m3.5s", Ok(Some(3_723_500_000_000))),
            ("0", Ok(Some(0))),
            (".5ms", Ok(Some(500_000))),
            ("-1s", Ok(None)),
            ("", Err("time: invalid duration \"\"")),
            ("abc", Err("time: invalid duration \"abc\"")),
            ("10", Err("time: missing unit in duration \"10\"")),
            ("10x", Err("time: unknown unit \"x\" in duration \"10x\"")),
            ("9999999999h", Err("time: invalid duration \"9999999999h\"")),
        ] {
            let expected = expected.map(|nanos| nanos.map(Duration::from_nanos));
            let found = parse(text).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{text}");
        }
    }
}
