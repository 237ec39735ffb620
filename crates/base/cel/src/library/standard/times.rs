//! Parts of durations and timestamps, in any time zone.
//!
//! The program contains the time zone database, so an expression has the same result on every
//! machine.

use crate::library::args::str;
use crate::library::{Overload, StrictFunction};
use crate::types::Type;
use crate::value::time::{self, Civil};
use crate::value::{Error, Timestamp, Value, ValueResult, WorkBudget};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use mainstay_gocompat::quote;
use std::sync::LazyLock;

pub(super) fn overloads() -> Vec<Overload> {
    let mut all = Vec::new();
    let times: [(&'static str, &'static str, &'static str, StrictFunction); 10] = [
        ("getFullYear", "timestamp_to_year", "timestamp_to_year_with_tz", |args, work| {
            time_part(args, work, |at, _| at.year)
        }),
        ("getMonth", "timestamp_to_month", "timestamp_to_month_with_tz", |args, work| {
            time_part(args, work, |at, _| at.month - 1)
        }),
        (
            "getDayOfYear",
            "timestamp_to_day_of_year",
            "timestamp_to_day_of_year_with_tz",
            |args, work| time_part(args, work, |at, _| at.days - time::days(at.year, 1, 1)),
        ),
        (
            "getDayOfMonth",
            "timestamp_to_day_of_month",
            "timestamp_to_day_of_month_with_tz",
            |args, work| time_part(args, work, |at, _| at.day - 1),
        ),
        (
            "getDate",
            "timestamp_to_day_of_month_1_based",
            "timestamp_to_day_of_month_1_based_with_tz",
            |args, work| time_part(args, work, |at, _| at.day),
        ),
        (
            "getDayOfWeek",
            "timestamp_to_day_of_week",
            "timestamp_to_day_of_week_with_tz",
            // 1970 began on a Thursday.
            |args, work| time_part(args, work, |at, _| (at.days + 4).rem_euclid(7)),
        ),
        ("getHours", "timestamp_to_hours", "timestamp_to_hours_with_tz", |args, work| {
            time_part(args, work, |at, _| at.second / 3600)
        }),
        ("getMinutes", "timestamp_to_minutes", "timestamp_to_minutes_with_tz", |args, work| {
            time_part(args, work, |at, _| at.second / 60 % 60)
        }),
        ("getSeconds", "timestamp_to_seconds", "timestamp_to_seconds_tz", |args, work| {
            time_part(args, work, |at, _| at.second % 60)
        }),
        (
            "getMilliseconds",
            "timestamp_to_milliseconds",
            "timestamp_to_milliseconds_with_tz",
            |args, work| time_part(args, work, |_, nanos| i64::from(nanos / 1_000_000)),
        ),
    ];
    let durations: [(&'static str, &'static str, StrictFunction); 4] = [
        ("getHours", "duration_to_hours", |args, _| duration_units(args, 3_600_000_000_000)),
        ("getMinutes", "duration_to_minutes", |args, _| duration_units(args, 60_000_000_000)),
        ("getSeconds", "duration_to_seconds", |args, _| duration_units(args, 1_000_000_000)),
        ("getMilliseconds", "duration_to_milliseconds", |args, _| match args {
            [Value::Duration(duration)] => Ok(Value::Int(duration / 1_000_000)),
            _ => Err(Error::NoSuchOverload),
        }),
    ];
    for (function, plain, zoned, run) in times {
        let mut add = |id, params| all.push(Overload::method(function, id, params, Type::Int, run));
        add(plain, vec![Type::Timestamp]);
        add(zoned, vec![Type::Timestamp, Type::String]);
        for (_, id, run) in durations.iter().filter(|(name, ..)| *name == function) {
            all.push(Overload::method(function, id, vec![Type::Duration], Type::Int, *run));
        }
    }
    all
}

/// A part of a timestamp, in the zone of the optional second argument.
fn time_part<'a>(
    args: &[Value<'a>],
    work: &WorkBudget,
    read: fn(Civil, u32) -> i64,
) -> ValueResult<'a> {
    let (time, offset) = match args {
        [Value::Timestamp(time)] => (*time, 0),
        [Value::Timestamp(time), zone] => (*time, utc_offset(*time, str(zone)?, work)?),
        _ => return Err(Error::NoSuchOverload),
    };
    Ok(Value::Int(read(time.civil(offset), time.nanos)))
}

/// The number of units in a duration, truncated to zero. As in Go it is computed as a double.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "Go's arithmetic; the result is smaller than the duration"
)]
fn duration_units<'a>(args: &[Value<'a>], unit: i64) -> ValueResult<'a> {
    match args {
        [Value::Duration(duration)] => {
            let double = (duration / unit) as f64 + (duration % unit) as f64 / unit as f64;
            Ok(Value::Int(double as i64))
        }
        _ => Err(Error::NoSuchOverload),
    }
}

/// The UTC offset in seconds of a zone at a time: `Europe/Berlin`, `+02:00`.
fn utc_offset(time: Timestamp, zone: &str, work: &WorkBudget) -> Result<i64, Error> {
    if let Some((hours, minutes)) = zone.split_once(':') {
        let hours = atoi(hours, work)?;
        let minutes = atoi(minutes, work)?;
        let minutes = if zone.starts_with('-') { minutes.wrapping_neg() } else { minutes };
        let minutes = hours.wrapping_mul(60).wrapping_add(minutes);
        return Ok(minutes.wrapping_mul(60_000_000_000) / 1_000_000_000);
    }
    // The local zone is UTC on every machine.
    if matches!(zone, "" | "UTC" | "Local") {
        return Ok(0);
    }
    if zone.starts_with(['/', '\\']) || zone.contains("..") || zone.contains('\\') {
        return Err(Error::fixed("time: invalid location name"));
    }
    let found = find_zone(zone).ok_or_else(|| unknown_zone_error(zone, work))?;
    // The last hours of the year 9999 are beyond the range of the database, and no offset changes
    // in them.
    let at = jiff::Timestamp::from_second(time.seconds).unwrap_or(jiff::Timestamp::MAX);
    Ok(found.to_offset(at).seconds().into())
}

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A zone of the database. Its name is case-sensitive, like the name of a file.
fn find_zone(zone: &str) -> Option<TimeZone> {
    ZONES.get(zone).ok().filter(|found| found.iana_name() == Some(zone))
}

/// The error for an unknown zone. Go reads files, so its messages are about files.
#[cold]
fn unknown_zone_error(zone: &str, work: &WorkBudget) -> Error {
    let is_folder = |zone: &str| {
        let within = |name: &str| name.strip_prefix(zone).is_some_and(|rest| rest.starts_with('/'));
        ZONES.available().any(|name| within(name.as_str()))
    };
    if is_folder(zone) {
        return Error::fixed("is a directory");
    }
    if zone.match_indices('/').any(|(at, _)| find_zone(&zone[..at]).is_some()) {
        return Error::fixed("not a directory");
    }
    Error::text(format!("unknown time zone {zone}"), work)
}

/// Parses a number like Go's `strconv.Atoi`.
fn atoi(text: &str, work: &WorkBudget) -> Result<i64, Error> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let what = if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        "invalid syntax"
    } else {
        "value out of range"
    };
    text.parse()
        .map_err(|_| Error::text(format!("strconv.Atoi: parsing {}: {what}", quote(text)), work))
}
