//! Scalars: the implicit types of YAML 1.1 as in Go's `yaml.v2`.
//!
//! The first type that matches wins: fixed words, integers in Go's notation, decimal floats, and
//! text. Integers have underscores anywhere but in front, prefixes `0x`, `0o` and `0b`, and a
//! leading zero for octal. Dates stay text.

use crate::{NodeFault, Options, error::TagFault, json::json_number};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Number, Value};

/// A scalar with its type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer above the range of `i64`.
    Uint(u64),
    Float(f64),
    Text,
    /// Text that was decoded from the scalar (`!!binary`).
    Decoded(String),
}

impl Scalar {
    /// The short name of the YAML tag, for messages.
    fn tag(&self) -> &'static str {
        match self {
            Self::Null => "!!null",
            Self::Bool(_) => "!!bool",
            Self::Int(_) | Self::Uint(_) => "!!int",
            Self::Float(_) => "!!float",
            Self::Text | Self::Decoded(_) => "!!str",
        }
    }

    /// The JSON value. Numbers without a fraction become integers, as Go writes them.
    pub(crate) fn value(self, text: &str, options: &Options) -> Result<Value, NodeFault> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(flag),
            Self::Int(number) => number.into(),
            Self::Uint(number) => number.into(),
            Self::Float(number) => json_number(number, options)
                .map(Value::Number)
                .ok_or_else(|| NodeFault::Number { number: go_special(number) })?,
            Self::Text => Value::String(text.to_owned()),
            Self::Decoded(text) => Value::String(text),
        })
    }

    /// The name of the JSON field for this scalar as a mapping key.
    pub(crate) fn key(self, text: &str) -> Result<String, NodeFault> {
        Ok(match self {
            Self::Bool(flag) => flag.to_string(),
            Self::Int(number) => number.to_string(),
            Self::Float(number) => go_float32(number),
            Self::Text => text.to_owned(),
            Self::Decoded(text) => text,
            Self::Null => return Err(NodeFault::NullKey),
            Self::Uint(number) => return Err(NodeFault::LargeKey { number }),
        })
    }
}

/// Resolves the type of a scalar. `tag` is the name of a tag of the YAML repertoire (`str`, `int`,
/// …), empty for any other tag, `None` without one. `plain` says that the scalar has no quotes.
pub(crate) fn resolve(text: &str, tag: Option<&str>, plain: bool) -> Result<Scalar, NodeFault> {
    let wanted = match tag {
        None if !plain => return Ok(Scalar::Text),
        None => return Ok(implicit(text)),
        Some("binary") => {
            let base64: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
            let bytes = STANDARD.decode(base64.as_bytes()).map_err(|_| NodeFault::Binary)?;
            return Ok(Scalar::Decoded(String::from_utf8_lossy(&bytes).into_owned()));
        }
        Some(wanted @ ("int" | "float" | "bool" | "null" | "timestamp")) => wanted,
        Some(_) => return Ok(Scalar::Text),
    };
    let found = implicit(text);
    let fits = match (wanted, &found) {
        ("timestamp", Scalar::Text) => {
            text.len() >= 5
                && text.as_bytes()[..4].iter().all(u8::is_ascii_digit)
                && text.as_bytes()[4] == b'-'
        }
        ("float", Scalar::Int(_) | Scalar::Uint(_) | Scalar::Float(_)) => true,
        _ => found.tag().strip_prefix("!!") == Some(wanted),
    };
    if fits {
        Ok(found)
    } else {
        let (text, tag) = (text.to_owned(), wanted.to_owned());
        Err(NodeFault::Tag(Box::new(TagFault { found: found.tag(), text, tag })))
    }
}

/// The type of a plain scalar without a tag.
fn implicit(text: &str) -> Scalar {
    let Some(&first) = text.as_bytes().first() else { return Scalar::Null };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => match text {
            "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
                Scalar::Bool(true)
            }
            "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off"
            | "OFF" => Scalar::Bool(false),
            "~" | "null" | "Null" | "NULL" => Scalar::Null,
            _ => Scalar::Text,
        },
        b'.' => match text {
            ".inf" | ".Inf" | ".INF" => Scalar::Float(f64::INFINITY),
            ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
            _ => float(text).map_or(Scalar::Text, Scalar::Float),
        },
        b'+' | b'-' | b'0'..=b'9' => match text {
            "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
            "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
            _ => number(text),
        },
        _ => Scalar::Text,
    }
}

/// Resolves a scalar that begins like a number.
fn number(text: &str) -> Scalar {
    // No number is this long; long scalars that begin with a digit are versions, addresses or
    // hashes.
    if text.len() > 512 {
        return Scalar::Text;
    }
    let joined;
    let plain = if text.contains('_') {
        joined = text.replace('_', "");
        &joined
    } else {
        text
    };
    integer(plain).or_else(|| float(plain).map(Scalar::Float)).unwrap_or(Scalar::Text)
}

/// Parses an integer in Go's notation (`strconv.ParseInt` with base 0).
fn integer(plain: &str) -> Option<Scalar> {
    let (signed, negative, digits) = match plain.as_bytes().first()? {
        b'+' => (true, false, &plain[1..]),
        b'-' => (true, true, &plain[1..]),
        _ => (false, false, plain),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // The standard parser would accept a second sign.
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        return 0i64.checked_sub_unsigned(magnitude).map(Scalar::Int);
    }
    match i64::try_from(magnitude) {
        Ok(number) => Some(Scalar::Int(number)),
        Err(_) if !signed => Some(Scalar::Uint(magnitude)),
        Err(_) => None,
    }
}

/// Parses a decimal number with a point or an exponent; `None` if it is too large.
fn float(plain: &str) -> Option<f64> {
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(plain);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let valid = digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| {
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !exponent.is_empty() && digits(exponent)
        });
    if !valid {
        return None;
    }
    plain.parse::<f64>().ok().filter(|number| number.is_finite())
}

/// A JSON number as Go writes it and reads it back: an integer if it is whole and fits.
pub(crate) fn go_json_number(number: f64) -> Option<Number> {
    // 2^63 is the first float beyond i64.
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    if number.fract() == 0.0 && (-BOUND..BOUND).contains(&number) {
        #[expect(clippy::cast_possible_truncation, reason = "whole and inside the range of i64")]
        return Some((number as i64).into());
    }
    Number::from_f64(number)
}

fn go_special(number: f64) -> &'static str {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    }
}

/// A float as a field name: Go's `%g` with 32 bits of precision.
fn go_float32(number: f64) -> String {
    if number.is_nan() {
        return ".nan".to_owned();
    }
    #[expect(clippy::cast_possible_truncation, reason = "upstream formats keys as 32-bit floats")]
    let number = number as f32;
    if number.is_infinite() {
        return if number > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    go_general(&format!("{number:e}"), || number.to_string())
}

/// Formats a float as Go's `%g`: without an exponent if that is -4 to 5. `scientific` is Rust's
/// `{:e}`, whose digits are the shortest that read back.
fn go_general(scientific: &str, plain: impl FnOnce() -> String) -> String {
    let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        plain()
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exponent.abs())
    }
}

/// Formats a float as Go's YAML encoder.
pub(crate) fn go_float64(number: f64) -> String {
    go_general(&format!("{number:e}"), || number.to_string())
}

/// Whether a text stays text as a plain scalar, also for readers that know dates and numbers of
/// base 60.
pub(crate) fn is_plain_text(text: &str) -> bool {
    !text.is_empty() && implicit(text) == Scalar::Text && !is_timestamp(text) && !is_base60(text)
}

/// `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`
fn is_base60(text: &str) -> bool {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !body.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let mut parts = body.split(':');
    let first = parts.next().is_some_and(is_digits);
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else { return false };
    let (last, fraction) = last.split_once('.').unwrap_or((last, ""));
    let sixty = |part: &str| match part.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten, one] => (b'0'..=b'5').contains(ten) && one.is_ascii_digit(),
        _ => false,
    };
    first && is_digits(fraction) && sixty(last) && middle.iter().all(|part| sixty(part))
}

/// Whether Go's decoder reads a text as a date: `2006-1-2`, with a time after ` ` or `T`; after `T`
/// a zone follows.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 8 || !bytes[..4].iter().all(u8::is_ascii_digit) || bytes[4] != b'-' {
        return false;
    }
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some((bytes[at], &text[at + 1..]))),
        None => (text, None),
    };
    let number = |part: &str, widths: std::ops::RangeInclusive<usize>| {
        (widths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| part.parse::<u32>().ok())
            .flatten()
    };
    let mut parts = date.split('-');
    let (year, month, day) = (
        parts.next().and_then(|part| number(part, 4..=4)),
        parts.next().and_then(|part| number(part, 1..=2)),
        parts.next().and_then(|part| number(part, 1..=2)),
    );
    let (Some(year), Some(month), Some(day), None) = (year, month, day, parts.next()) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    if day == 0 || day > days {
        return false;
    }
    let Some((separator, time)) = time else { return true };
    let (clock, zone) = match time.find(['Z', '+', '-']) {
        Some(at) => (&time[..at], Some(&time[at..])),
        None => (time, None),
    };
    let (clock, fraction) = match clock.split_once(['.', ',']) {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (clock, None),
    };
    let mut parts = clock.split(':');
    let mut below = |bound, widths| {
        parts.next().and_then(|part| number(part, widths)).is_some_and(|part| part < bound)
    };
    let valid = below(24, 1..=2) && below(60, 1..=2) && below(60, 1..=2) && parts.next().is_none();
    let valid = valid
        && fraction.is_none_or(|fraction| {
            !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit())
        });
    let zoned = match zone {
        None => separator == b' ',
        Some(_) if separator == b' ' => false,
        Some("Z") => true,
        Some(zone) => zone[1..].split_once(':').is_some_and(|(hours, minutes)| {
            number(hours, 2..=2).is_some_and(|hours| hours <= 24)
                && number(minutes, 2..=2).is_some_and(|minutes| minutes < 60)
        }),
    };
    valid && zoned
}
