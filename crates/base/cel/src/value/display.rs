//! Text of values in messages: cel-go's values formatted with Go's `%v`.

use super::{MapValue, ObjectValue, Value, WorkBudget, time};
use crate::types::Type;
use std::fmt;

/// A double as Go's `%g` and `%v`, which is also the result of `string(...)`: the shortest digits,
/// with an exponent below -4 and from 6 on.
pub fn go_double(double: f64) -> String {
    if double.is_nan() {
        return "NaN".to_owned();
    }
    if double.is_infinite() {
        return if double > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let (digits, exponent) = shortest(double);
    if (-4..6).contains(&exponent) {
        return plain(&digits, exponent);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// A finite double without an exponent, as Go's `strconv.FormatFloat(double, 'f', -1, 64)`.
pub fn go_decimal(double: f64) -> String {
    let (digits, exponent) = shortest(double);
    plain(&digits, exponent)
}

/// The shortest digits of a finite double, such as `-1.5`, and their power of ten.
///
/// If two texts of that length are equally close, Go takes the even one, Rust the greater.
fn shortest(double: f64) -> (String, i32) {
    let text = format!("{double:e}");
    // Rust writes every finite number as `1.5e3`.
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let count = digits.bytes().filter(u8::is_ascii_digit).count();
    if count >= 15 {
        // This is exact: no double of this size has more digits.
        let exact = format!("{double:.60e}");
        let exact = exact.split_once('e').map_or("", |(digits, _)| digits);
        if let Some((down, rest)) = exact.split_at_checked(digits.len())
            && rest.starts_with('5')
            && rest[1..].bytes().all(|digit| digit == b'0')
            && down.ends_with(['0', '2', '4', '6', '8'])
            && format!("{down}e{exponent}").parse() == Ok(double)
        {
            let down = down.trim_end_matches('0').trim_end_matches('.');
            return (down.to_owned(), exponent);
        }
    }
    (digits.to_owned(), exponent)
}

/// Formats digits such as `-1.5`, times a power of ten, without an exponent.
fn plain(digits: &str, exponent: i32) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    let mut all = digits.replace('.', "");
    let Ok(point) = usize::try_from(exponent + 1) else {
        // The exponent of a double has three digits.
        let zeros = usize::try_from(-exponent - 1).unwrap_or_default();
        return format!("{sign}0.{}{all}", "0".repeat(zeros));
    };
    if point == 0 {
        return format!("{sign}0.{all}");
    }
    if all.len() <= point {
        all.extend(std::iter::repeat_n('0', point - all.len()));
    } else {
        all.insert(point, '.');
    }
    format!("{sign}{all}")
}

/// The end of a truncated text.
const ELLIPSIS: &str = "…";

impl<'a> Value<'a> {
    /// The text of a value for a message of an evaluation, which costs work.
    pub const fn display<'v>(&'v self, work: &'v WorkBudget) -> Display<'v, 'a> {
        Display { value: self, work }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, work: &WorkBudget) -> fmt::Result {
        match self {
            // The number of protobuf's `NullValue`.
            Self::Null => f.write_str("0"),
            Self::Bool(bool) => write!(f, "{bool}"),
            Self::Int(int) => write!(f, "{int}"),
            Self::Uint(uint) => write!(f, "{uint}"),
            Self::Double(double) => f.write_str(&go_double(*double)),
            Self::String(text) => {
                if work.create_text(text.len()).is_err() {
                    return f.write_str(ELLIPSIS);
                }
                f.write_str(text)
            }
            Self::Bytes(bytes) => {
                f.write_str("[")?;
                for (at, byte) in bytes.iter().enumerate() {
                    write!(f, "{}{byte}", if at == 0 { "" } else { " " })?;
                }
                f.write_str("]")
            }
            Self::Duration(duration) => f.write_str(&time::go_duration(*duration)),
            Self::Timestamp(time) => f.write_str(&format_go_time(*time)),
            Self::Type(cel_type) => f.write_str(&type_text(cel_type)),
            Self::List(list) => {
                f.write_str("[")?;
                for (at, value) in list.iter(work).enumerate() {
                    if work.take(1).is_err() {
                        return f.write_str(ELLIPSIS);
                    }
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    write_result(f, value, work)?;
                }
                f.write_str("]")
            }
            Self::Map(map @ (MapValue::Json { .. } | MapValue::Values(_))) => {
                write_entries(f, map.iter(work), work)
            }
            Self::Object(object @ (ObjectValue::Json { .. } | ObjectValue::Values { .. })) => {
                write_entries(f, object.iter(work), work)
            }
            Self::Optional(None) => f.write_str("optional.none()"),
            Self::Optional(Some(value)) => write!(f, "optional({})", value.display(work)),
            Self::Opaque(opaque) => write!(f, "{opaque:?}"),
            Self::Preserved(json) => write!(f, "{json}"),
        }
    }
}

/// For messages outside of evaluations. Evaluations use [`Value::display`], which limits the work.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &WorkBudget::unlimited())
    }
}

/// A value whose text takes work from an evaluation ([`Value::display`]). The text is truncated if
/// no work remains.
#[derive(Debug)]
pub struct Display<'v, 'a> {
    value: &'v Value<'a>,
    work: &'v WorkBudget,
}

impl fmt::Display for Display<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.write(f, self.work)
    }
}

/// A point in time as Go prints it: its zone as an offset, and again as a name if the zone has no
/// name.
fn format_go_time(time: super::Timestamp) -> String {
    let text = time.to_string().replacen('T', " ", 1);
    if let Some(text) = text.strip_suffix('Z') {
        return format!("{text} +0000 UTC");
    }
    // The text ends with `+01:00`.
    let (text, zone) = text.split_at(text.len() - 6);
    let zone = zone.replace(':', "");
    format!("{text} {zone} {zone}")
}

fn write_result(
    f: &mut fmt::Formatter<'_>,
    value: super::ValueResult<'_>,
    work: &WorkBudget,
) -> fmt::Result {
    match value {
        Ok(value) => value.write(f, work),
        Err(error) => write!(f, "{error}"),
    }
}

fn write_entries(
    f: &mut fmt::Formatter<'_>,
    entries: super::MapEntries<'_, '_>,
    work: &WorkBudget,
) -> fmt::Result {
    f.write_str("{")?;
    for (at, (key, value)) in entries.enumerate() {
        if work.take(1).is_err() {
            return f.write_str(ELLIPSIS);
        }
        write!(f, "{}{}: ", if at == 0 { "" } else { ", " }, key.display(work))?;
        write_result(f, value, work)?;
    }
    f.write_str("}")
}

/// The text of a value's type in messages, without parameters.
pub(crate) fn type_text(cel_type: &Type) -> String {
    match cel_type {
        Type::List(_) => "list(dyn)".to_owned(),
        Type::Map(_) => "map(dyn, dyn)".to_owned(),
        _ => cel_type.name().to_owned(),
    }
}
