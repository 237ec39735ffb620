//! Durations and timestamps: parsing, formatting, and the formats of schemas.

mod go_error;

pub use mainstay_formats::duration::{format_go as go_duration, parse_go as parse_duration};

use super::{Error, Timestamp, Value, ValueResult, WorkBudget};
use mainstay_formats::duration;
use std::cmp::Ordering;
use std::fmt;

const SECOND: u64 = 1_000_000_000;
/// The first second of the year 1.
const FIRST: i64 = -62_135_596_800;
/// The last second of the year 9999.
const LAST: i64 = 253_402_300_799;
const DAY: i64 = 86_400;

/// The error for a timestamp outside of the years 1 to 9999.
pub(crate) const TIMESTAMP_OVERFLOW: Error = Error::fixed("timestamp overflow");

impl Timestamp {
    /// A point in time in UTC; none outside of the years 1 to 9999.
    pub fn new(seconds: i64, nanos: u32) -> Option<Self> {
        let fits = (FIRST..=LAST).contains(&seconds) && u64::from(nanos) < SECOND;
        fits.then_some(Self { seconds, nanos, offset: 0 })
    }

    /// Parses RFC 3339 with Go's liberties: hours of one digit, a comma before fractions. The year
    /// may be 0.
    pub fn parse(text: &str) -> Option<Self> {
        let (time, zone) = parse_date_time(text)?;
        if zone == "Z" {
            return Some(time);
        }
        let bytes = zone.as_bytes();
        let sign = match bytes.first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        if bytes.len() != 6 || bytes[3] != b':' {
            return None;
        }
        let hours = parse_number(zone.get(1..3)?).filter(|hours| *hours <= 24)?;
        let minutes = parse_number(zone.get(4..6)?).filter(|minutes| *minutes <= 60)?;
        let offset = sign * (hours * 60 + minutes) * 60;
        Some(Self {
            seconds: time.seconds - offset,
            // At most 25 hours.
            offset: i32::try_from(offset).unwrap_or_default(),
            ..time
        })
    }

    /// Whether it is within the years 1 to 9999.
    pub fn in_range(self) -> bool {
        (FIRST..=LAST).contains(&self.seconds)
    }

    /// A later point in time in the same zone; none outside of the years 1 to 9999.
    pub fn checked_add(self, nanoseconds: i64) -> Option<Self> {
        let all = i128::from(self.seconds) * i128::from(SECOND)
            + i128::from(self.nanos)
            + i128::from(nanoseconds);
        let seconds = i64::try_from(all.div_euclid(i128::from(SECOND))).ok()?;
        let nanos = u32::try_from(all.rem_euclid(i128::from(SECOND))).ok()?;
        Some(Self { seconds, nanos, ..self }).filter(|time| time.in_range())
    }

    /// The nanoseconds since another time; none if they do not fit.
    pub fn since(self, other: Self) -> Option<i64> {
        // As in cel-go, the whole seconds alone must fit too.
        let seconds = self.seconds.checked_sub(other.seconds)?.checked_mul(SECOND.cast_signed())?;
        seconds.checked_add(i64::from(self.nanos) - i64::from(other.nanos))
    }

    /// Date and time of the day at an offset from UTC in seconds.
    pub(crate) fn civil(self, offset: i64) -> Civil {
        let seconds = self.seconds + offset;
        let days = seconds.div_euclid(DAY);
        let (year, month, day) = date_of_days(days);
        Civil { year, month, day, days, second: seconds.rem_euclid(DAY) }
    }
}

/// A date and a time of the day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// From one.
    pub(crate) month: i64,
    /// From one.
    pub(crate) day: i64,
    /// Days since 1970.
    pub(crate) days: i64,
    /// Second of the day.
    pub(crate) second: i64,
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The zone is ignored.
impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

/// RFC 3339 in the original zone, with the shortest fraction.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.civil(self.offset.into());
        let (hour, minute, second) = (at.second / 3600, at.second / 60 % 60, at.second % 60);
        write!(
            f,
            "{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}",
            at.year, at.month, at.day
        )?;
        if self.nanos > 0 {
            let digits = format!("{:09}", self.nanos);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        if self.offset == 0 {
            return f.write_str("Z");
        }
        let minutes = self.offset / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        write!(f, "{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
    }
}

/// The days since 1970 of a date in the Gregorian calendar.
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so the leap day is the last one.
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn date_of_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day = days.rem_euclid(146_097);
    let of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * of_era + of_era / 4 - of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = (from_march + 2) % 12 + 1;
    let year = era * 400 + of_era + i64::from(month <= 2);
    (year, month, of_year - (153 * from_march + 2) / 5 + 1)
}

fn parse_number(digits: &str) -> Option<i64> {
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| digits.parse().ok()).flatten()
}

/// `2006-01-02`
fn parse_date(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let year = parse_number(text.get(..4)?)?;
    let month = parse_number(text.get(5..7)?).filter(|month| (1..=12).contains(month))?;
    let day = parse_number(text.get(8..)?).filter(|day| *day > 0)?;
    let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    let days_of_month = days(next.0, next.1, 1) - days(year, month, 1);
    (day <= days_of_month).then(|| days(year, month, day))
}

/// Parses `2006-01-02T15:04:05.999`; also returns the rest.
fn parse_date_time(text: &str) -> Option<(Timestamp, &str)> {
    let days = parse_date(text.get(..10)?)?;
    let rest = text[10..].strip_prefix('T')?;
    let (hour, rest) = rest.split_once(':')?;
    if hour.len() > 2 {
        return None;
    }
    let hour = parse_number(hour).filter(|hour| *hour < 24)?;
    let minute = parse_number(rest.get(..2)?).filter(|minute| *minute < 60)?;
    let rest = rest[2..].strip_prefix(':')?;
    let second = parse_number(rest.get(..2)?).filter(|second| *second < 60)?;
    let mut rest = &rest[2..];
    let mut nanos = 0;
    if let Some(fraction) = rest.strip_prefix(['.', ','])
        && fraction.starts_with(|c: char| c.is_ascii_digit())
    {
        let length = fraction.bytes().take_while(u8::is_ascii_digit).count();
        let digits = fraction[..length.min(9)].bytes();
        nanos = digits
            .chain(std::iter::repeat(b'0'))
            .take(9)
            .fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'));
        rest = &fraction[length..];
    }
    let seconds = days * DAY + hour * 3600 + minute * 60 + second;
    Some((Timestamp { seconds, nanos, offset: 0 }, rest))
}

/// A duration as `string(...)` formats it: its seconds, computed as a double (`5400.5s`).
pub fn format_seconds(nanoseconds: i64) -> String {
    let second = SECOND.cast_signed();
    #[expect(clippy::cast_precision_loss, reason = "Go's arithmetic")]
    let (whole, rest) = ((nanoseconds / second) as f64, (nanoseconds % second) as f64);
    super::go_decimal(whole + rest / 1e9) + "s"
}

/// `format: duration`
pub(crate) fn schema_duration(text: &str, work: &WorkBudget) -> ValueResult<'static> {
    duration::parse(text)
        .map(Value::Duration)
        .map_err(|why| Error::text(format!("Invalid duration {text}: {why}"), work))
}

/// `format: date`
pub(crate) fn schema_date(text: &str, work: &WorkBudget) -> ValueResult<'static> {
    if let Some(days) = parse_date(text) {
        return Ok(Value::Timestamp(Timestamp { seconds: days * DAY, nanos: 0, offset: 0 }));
    }
    let why = go_error::date_error(text);
    Err(Error::text(format!("Invalid date formatted string {text}: {why}"), work))
}

/// `format: date-time`: RFC 3339, also without a zone. An empty text is 1970.
pub(crate) fn schema_date_time(text: &str, work: &WorkBudget) -> ValueResult<'static> {
    let time = if text.is_empty() {
        Some(Timestamp { seconds: 0, nanos: 0, offset: 0 })
    } else {
        Timestamp::parse(text).or_else(|| {
            parse_date_time(text).filter(|(_, zone)| zone.is_empty()).map(|(time, _)| time)
        })
    };
    time.map(Value::Timestamp).ok_or_else(|| {
        let why = go_error::date_time_error(text);
        Error::text(format!("Invalid date-time formatted string {text}: {why}"), work)
    })
}
