//! Cron schedules: five fields with short names, and `@every`.
//!
//! The rules are those of the cron library that kube-controller-manager uses. A day matches if day
//! of month and day of week both match, or one of them if neither is a star. Times that a change of
//! clocks skips do not occur.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan};

/// How many years ahead [`Schedule::next`] searches.
const YEARS: i16 = 5;

/// A parsed schedule.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Schedule {
    /// The five cron fields.
    Fields(Box<Fields>),
    /// An interval in seconds after the last time.
    Every(i64),
}

/// The five cron fields as bit sets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fields {
    minute: u64,
    hour: u64,
    day: u64,
    month: u64,
    weekday: u64,
    /// Whether the day of the month and the day of the week are stars.
    any_day: bool,
    any_weekday: bool,
    zone: TimeZone,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Schedule {
    /// Parses a schedule; `zone` is the name of its time zone, UTC if none. The text may name a
    /// zone itself. None if the schedule or the zone is invalid.
    pub(super) fn parse(text: &str, zone: Option<&str>) -> Option<Self> {
        let zone_text = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="));
        let (zone, text) = match zone_text {
            Some(zone_text) => {
                let (zone, rest) = zone_text.split_once(' ')?;
                (Some(zone), rest.trim())
            }
            None => (zone, text.trim()),
        };
        let zone = match zone {
            None | Some("" | "UTC" | "Local") => TimeZone::UTC,
            Some(name) => TimeZone::get(name).ok()?,
        };
        let text = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => match other.strip_prefix("@every ") {
                Some(duration) => return Some(Self::Every(seconds(duration)?)),
                None => other,
            },
        };
        let parts: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = parts.as_slice() else { return None };
        let is_star = |field: &str| {
            field.split(',').any(|part| {
                matches!(part.split('/').next(), Some("*" | "?")) && !part.contains('/')
                    || matches!(part.split_once('/'), Some(("*" | "?", "1")))
            })
        };
        Some(Self::Fields(Box::new(Fields {
            minute: bits(minute, 0, 59, &[])?,
            hour: bits(hour, 0, 23, &[])?,
            day: bits(day, 1, 31, &[])?,
            month: bits(month, 1, 12, &MONTHS)?,
            weekday: bits(weekday, 0, 6, &WEEKDAYS)?,
            any_day: is_star(day),
            any_weekday: is_star(weekday),
            zone,
        })))
    }

    /// The first time after `after`; none if there is none in the next years.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(seconds) => {
                let whole = Timestamp::from_second(after.as_second()).ok()?;
                whole.checked_add(SignedDuration::from_secs(*seconds)).ok()
            }
            Self::Fields(fields) => fields.next(after),
        }
    }
}

impl Fields {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let start = self.zone.to_datetime(after);
        let mut day = start.date();
        let last = day.year().checked_add(YEARS)?;
        while day.year() <= last {
            if self.has_month(day) && self.has_day(day) {
                let found = self.times().find_map(|time| {
                    let at = self.instant(day.to_datetime(time))?;
                    (at > after).then_some(at)
                });
                if found.is_some() {
                    return found;
                }
            }
            day = if self.has_month(day) {
                day.tomorrow().ok()?
            } else {
                day.last_of_month().tomorrow().ok()?
            };
        }
        None
    }

    fn has_month(&self, day: Date) -> bool {
        has(self.month, i64::from(day.month()))
    }

    fn has_day(&self, day: Date) -> bool {
        let in_month = has(self.day, i64::from(day.day()));
        let in_week = has(self.weekday, i64::from(day.weekday().to_sunday_zero_offset()));
        if self.any_day || self.any_weekday { in_month && in_week } else { in_month || in_week }
    }

    fn times(&self) -> impl Iterator<Item = Time> {
        let hours = (0..24_i8).filter(|hour| has(self.hour, i64::from(*hour)));
        hours.flat_map(|hour| {
            let minutes = (0..60_i8).filter(|minute| has(self.minute, i64::from(*minute)));
            minutes.filter_map(move |minute| Time::new(hour, minute, 0, 0).ok())
        })
    }

    /// A wall-clock time as an instant: none if clocks skip it, the earlier one if it occurs twice.
    fn instant(&self, at: DateTime) -> Option<Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(at);
        if matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. }) {
            return None;
        }
        ambiguous.compatible().ok()
    }
}

fn has(bits: u64, value: i64) -> bool {
    u32::try_from(value).is_ok_and(|value| bits.checked_shr(value).is_some_and(|bit| bit & 1 == 1))
}

/// Parses a field: values, ranges and steps, separated by commas.
fn bits(field: &str, min: u32, max: u32, names: &[&str]) -> Option<u64> {
    let number = |text: &str| -> Option<u32> {
        let lower = text.to_ascii_lowercase();
        match names.iter().position(|name| *name == lower) {
            Some(at) => u32::try_from(at).ok().map(|at| at + min),
            None => text.parse().ok(),
        }
    };
    let mut all = 0_u64;
    for part in field.split(',').filter(|part| !part.is_empty()) {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => {
                (range, Some(step.parse::<u32>().ok().filter(|step| *step > 0)?))
            }
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if matches!(range, "*" | "?") => (min, max),
            Some((first, last)) => (number(first)?, number(last)?),
            None => {
                let first = number(range)?;
                (first, if step.is_some() { max } else { first })
            }
        };
        if first < min || last > max || first > last {
            return None;
        }
        let step = usize::try_from(step.unwrap_or(1)).ok()?;
        for value in (first..=last).step_by(step) {
            all |= 1_u64 << value;
        }
    }
    Some(all)
}

/// A duration as Go writes it, such as `1h30m`, in whole seconds and at least one.
fn seconds(text: &str) -> Option<i64> {
    let mut total = 0.0_f64;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let amount: f64 = rest[..end].parse().ok()?;
        let units =
            [("ms", 0.001), ("us", 1e-6), ("ns", 1e-9), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];
        let (unit, scale) = units.into_iter().find(|(unit, _)| rest[end..].starts_with(unit))?;
        total += amount * scale;
        rest = &rest[end + unit.len()..];
    }
    let whole: i64 = format!("{:.0}", total.floor()).parse().ok()?;
    // An interval of more than a century never elapses.
    let max = 100.years().get_years();
    Some(whole.clamp(1, i64::from(max) * 366 * 86_400))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(text: &str, zone: Option<&str>, after: &str) -> Option<String> {
        let schedule = Schedule::parse(text, zone).expect(text);
        schedule.next(after.parse().unwrap()).map(|next| next.to_string())
    }

    #[test]
    fn the_next_time_matches_every_field() {
        for (text, after, expected) in [
            ("*/15 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z"),
            ("*/15 * * * *", "2026-01-01T00:45:01Z", "2026-01-01T01:00:00Z"),
            ("30 6-16/4 * * 1-5", "2026-01-02T15:00:00Z", "2026-01-05T06:30:00Z"),
            ("0 0 1 1 *", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
            // Either day matches where both are given.
            ("0 0 13 * FRI", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
            ("0 0 13 * *", "2026-01-01T00:00:00Z", "2026-01-13T00:00:00Z"),
            ("5,10 3 * feb ?", "2026-01-01T00:00:00Z", "2026-02-01T03:05:00Z"),
            ("@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
            ("@every 1h30m", "2026-01-01T00:00:00.5Z", "2026-01-01T01:30:00Z"),
            ("TZ=Asia/Tokyo 0 9 * * *", "2026-01-01T01:00:00Z", "2026-01-02T00:00:00Z"),
        ] {
            assert_eq!(next(text, None, after).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(next("0 0 31 2 *", None, "2026-01-01T00:00:00Z"), None);
    }

    #[test]
    fn clock_changes_skip_a_time_or_run_it_once() {
        let zone = Some("Europe/Berlin");
        // On 29 March there is no 02:30; on 25 October there are two.
        assert_eq!(
            next("30 2 * * *", zone, "2026-03-28T12:00:00Z").as_deref(),
            Some("2026-03-30T00:30:00Z")
        );
        assert_eq!(
            next("30 2 * * *", zone, "2026-10-24T12:00:00Z").as_deref(),
            Some("2026-10-25T00:30:00Z")
        );
        assert_eq!(
            next("30 2 * * *", zone, "2026-10-25T00:30:00Z").as_deref(),
            Some("2026-10-26T01:30:00Z")
        );
    }

    #[test]
    fn invalid_schedules_are_refused() {
        for text in
            ["", "* * * *", "60 * * * *", "5-1 * * * *", "* * * * 7", "*/0 * * * *", "@often"]
        {
            assert_eq!(Schedule::parse(text, None), None, "{text}");
        }
        assert_eq!(Schedule::parse("* * * * *", Some("Mars/Olympus")), None);
    }
}
