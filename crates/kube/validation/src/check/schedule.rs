//! Parsers of cron schedules, time zones and Job indexes, with the errors of the upstream parsers.

use jiff::tz::TimeZoneDatabase;
use mainstay_gocompat::quote;
use mainstay_object::duration;
use std::sync::LazyLock;

/// Ranges and names of the five fields of a schedule.
const FIELDS: [(u64, u64, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// An invalid cron schedule; the text is that of the upstream parser.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct InvalidSchedule(String);

/// Invalid Job indexes; the text is that of the upstream parser.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct InvalidIndexes(String);

/// A string is no integer; the text is that of Go's `strconv.Atoi`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("strconv.Atoi: parsing {}: {reason}", quote(text))]
struct AtoiError {
    text: String,
    reason: &'static str,
}

/// Validates a schedule: five fields, or a descriptor such as `@daily`.
pub(super) fn cron(text: &str) -> Result<(), InvalidSchedule> {
    let mut rest = text;
    for prefix in ["TZ=", "CRON_TZ="] {
        let Some(time_zone) = text.strip_prefix(prefix) else { continue };
        let Some((time_zone, line)) = time_zone.split_once(' ') else {
            return Err(InvalidSchedule("invalid schedule".to_owned()));
        };
        if !is_time_zone(time_zone) {
            return refuse(format!(
                "provided bad location {time_zone}: unknown time zone {time_zone}"
            ));
        }
        rest = line.trim();
    }
    if rest.starts_with('@') {
        return descriptor(rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return refuse(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    for (field, bounds) in fields.iter().zip(FIELDS) {
        for part in field.split(',').filter(|part| !part.is_empty()) {
            range(part, bounds)?;
        }
    }
    Ok(())
}

const fn refuse<T>(reason: String) -> Result<T, InvalidSchedule> {
    Err(InvalidSchedule(reason))
}

fn descriptor(text: &str) -> Result<(), InvalidSchedule> {
    const DESCRIPTORS: [&str; 7] =
        ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    if let Some(duration) = text.strip_prefix("@every ") {
        return match duration::parse(duration) {
            Ok(_) => Ok(()),
            Err(error) => refuse(format!("failed to parse duration {text}: {error}")),
        };
    }
    if DESCRIPTORS.contains(&text) {
        Ok(())
    } else {
        refuse(format!("unrecognized descriptor: {text}"))
    }
}

fn range(text: &str, (min, max, names): (u64, u64, &[&str])) -> Result<(), InvalidSchedule> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let value = |text: &str| {
        let lower = text.to_lowercase();
        match names.iter().position(|name| *name == lower) {
            Some(at) => Ok(min + at as u64),
            None => integer(text),
        }
    };
    let (start, mut end) = if matches!(ends[0], "*" | "?") {
        (min, max)
    } else {
        let start = value(ends[0])?;
        match ends.as_slice() {
            [_] => (start, start),
            [_, end] => (start, value(end)?),
            _ => return refuse(format!("too many hyphens: {text}")),
        }
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = integer(step)?;
            if ends.len() == 1 {
                end = max;
            }
            step
        }
        _ => return refuse(format!("too many slashes: {text}")),
    };
    if start < min {
        return refuse(format!("beginning of range ({start}) below minimum ({min}): {text}"));
    }
    if end > max {
        return refuse(format!("end of range ({end}) above maximum ({max}): {text}"));
    }
    if start > end {
        return refuse(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return refuse(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn integer(text: &str) -> Result<u64, InvalidSchedule> {
    match atoi(text) {
        Err(error) => refuse(format!("failed to parse int from {text}: {error}")),
        Ok(number) => u64::try_from(number).map_err(|_| {
            InvalidSchedule(format!("negative number ({number}) not allowed: {text}"))
        }),
    }
}

/// Go's `strconv.Atoi`.
fn atoi(text: &str) -> Result<i64, AtoiError> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let well_formed = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    text.parse().map_err(|_| {
        let reason = if well_formed { "value out of range" } else { "invalid syntax" };
        AtoiError { text: text.to_owned(), reason }
    })
}

/// The embedded IANA database. (Kubernetes uses that of its host.)
static TIME_ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

fn is_time_zone(name: &str) -> bool {
    matches!(name, "" | "UTC" | "Local")
        || TIME_ZONES.available().any(|time_zone| time_zone.as_str() == name)
}

/// The problems of a time zone.
pub(super) fn time_zone(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["timeZone must be nil or non-empty string".to_owned()];
    }
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+');
    let mut found = Vec::new();
    for part in name.split('/') {
        let is_well_formed = (1..=14).contains(&part.len()) && part.bytes().all(letter);
        if matches!(part, "." | "..") || part.starts_with('-') || !is_well_formed {
            found.push(format!("unknown time zone {name}"));
            return found;
        }
    }
    if name.eq_ignore_ascii_case("local") {
        found.push(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
                .to_owned(),
        );
    }
    if !is_time_zone(name) {
        found.push(format!("unknown time zone {name}"));
    }
    found
}

/// The number of indexes in a text such as `0-3,7`.
pub(super) fn indexes(text: &str, completions: i64) -> Result<i64, InvalidIndexes> {
    let unordered = |previous: i64, current: i64| {
        let detail = format!("non-increasing order, previous: {previous}, current: {current}");
        Err(InvalidIndexes(detail))
    };
    let mut last: Option<i64> = None;
    let mut total = 0;
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let parts: Vec<&str> = interval.split('-').collect();
        if parts.len() > 2 {
            return Err(InvalidIndexes(format!(
                "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
                quote(interval)
            )));
        }
        let index = |text: &str| {
            let number = atoi(text).map_err(|_| {
                let detail = "cannot convert string to integer for index";
                InvalidIndexes(format!("{detail}: {}", quote(text)))
            })?;
            if number >= completions {
                return Err(InvalidIndexes(format!("too large index: {}", quote(text))));
            }
            Ok(number)
        };
        let first = index(parts[0])?;
        let end = match parts.get(1) {
            None => first,
            Some(text) => {
                let end = index(text)?;
                if first >= end {
                    return unordered(first, end);
                }
                end
            }
        };
        if let Some(last) = last.filter(|last| *last >= first) {
            return unordered(last, first);
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_schedules_have_the_errors_of_the_upstream_parser() {
        for valid in
            ["* * * * *", "*/5 0-6 1,15 jan-mar MON", "@daily", "@every 1h30m", "0 0 ? * *"]
        {
            assert_eq!(cron(valid), Ok(()), "{valid}");
        }
        for (invalid, expected) in [
            ("x", "expected exactly 5 fields, found 1: [x]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            (
                "a * * * *",
                "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax",
            ),
            ("@often", "unrecognized descriptor: @often"),
            ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
        ] {
            assert_eq!(cron(invalid), Err(InvalidSchedule(expected.to_owned())), "{invalid}");
        }
    }

    #[test]
    fn indexes_must_be_in_order_and_are_counted() {
        assert_eq!(indexes("0-2,4", 5), Ok(4));
        assert_eq!(indexes("", 5), Ok(0));
        for invalid in ["5", "1-1", "2,1", "a", "1-2-3", "0-9"] {
            assert!(indexes(invalid, 5).is_err(), "{invalid}");
        }
    }
}
