//! What `format` of version 4 makes of arguments: all in the plainest way.

use super::clause::Clause;
use super::error::FormatError;
use super::format::{STRING, bytes_in_hex, entries, in_base, refused, take_work, within_limit};
use super::numbers;
use crate::value::{Value, WorkBudget, time};
use std::fmt::Write as _;

/// Writes an argument as its clause says.
pub(super) fn write(
    out: &mut String,
    clause: Clause,
    value: &Value<'_>,
    work: &WorkBudget,
) -> Result<(), FormatError> {
    let done = match clause {
        Clause::String => return text(out, value, work),
        Clause::Decimal => match value {
            Value::Double(number) => {
                double(out, *number);
                Some(())
            }
            Value::Bool(_) => None,
            _ => in_base(out, clause, value),
        },
        Clause::Fixed(digits) => number(out, value, 'f', digits.unwrap_or(6))?,
        Clause::Scientific(digits) => number(out, value, 'e', digits.unwrap_or(6))?,
        Clause::Binary | Clause::Octal => in_base(out, clause, value),
        Clause::Hex { upper } => {
            in_base(out, clause, value).or_else(|| bytes_in_hex(out, upper, value))
        }
    };
    let takes = match clause {
        Clause::String => STRING,
        Clause::Decimal => "decimal clause can only be used on ints, uints, and doubles",
        Clause::Fixed(_) => "fixed-point clause can only be used on ints, uints, and doubles",
        Clause::Scientific(_) => "scientific clause can only be used on ints, uints, and doubles",
        Clause::Binary => "only ints, uints, and bools can be formatted as binary",
        Clause::Octal => "octal clause can only be used on ints and uints",
        Clause::Hex { .. } => "only ints, uints, bytes, and strings can be formatted as hex",
    };
    done.map_or_else(|| refused(takes, value), Ok)
}

/// A double with its fewest digits and without exponent.
fn double(out: &mut String, number: f64) {
    match special(number) {
        Some(name) => out.push_str(name),
        None => {
            // Writing to a string does not fail.
            let _ = write!(out, "{number}");
        }
    }
}

/// The name of a number without digits.
fn special(number: f64) -> Option<&'static str> {
    if number.is_nan() {
        Some("NaN")
    } else if number.is_infinite() {
        Some(if number > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        None
    }
}

/// `%f` and `%e`, for which integers are doubles: so the specification, of whose tests upstream fails
/// these.
fn number(
    out: &mut String,
    value: &Value<'_>,
    letter: char,
    digits: i64,
) -> Result<Option<()>, FormatError> {
    let Some(digits) = usize::try_from(digits).ok().filter(|digits| *digits <= numbers::MOST)
    else {
        return Err(FormatError::Precision { digits });
    };
    #[expect(clippy::cast_precision_loss, reason = "the nearest double is meant")]
    let number = match value {
        Value::Double(number) => *number,
        Value::Int(number) => *number as f64,
        Value::Uint(number) => *number as f64,
        _ => return Ok(None),
    };
    match (special(number), letter) {
        (Some(name), _) => out.push_str(name),
        (None, 'e') => numbers::exponent(out, number, digits),
        (None, _) => numbers::exact(out, number, digits),
    }
    Ok(Some(()))
}

/// `%s`
fn text(out: &mut String, value: &Value<'_>, work: &WorkBudget) -> Result<(), FormatError> {
    take_work(value, work)?;
    // Writing to a string does not fail.
    let _ = match value {
        Value::Bool(value) => write!(out, "{value}"),
        Value::Int(value) => write!(out, "{value}"),
        Value::Uint(value) => write!(out, "{value}"),
        Value::Double(value) => {
            double(out, *value);
            Ok(())
        }
        Value::Bytes(value) => write!(out, "{}", String::from_utf8_lossy(value)),
        Value::String(value) => write!(out, "{value}"),
        Value::Duration(value) => write!(out, "{}", time::format_seconds(*value)),
        Value::Timestamp(value) => write!(out, "{value}"),
        Value::Null => write!(out, "null"),
        Value::Type(value) => write!(out, "{}", value.name()),
        Value::List(values) => {
            out.push('[');
            for (at, value) in values.iter(work).enumerate() {
                within_limit(out.len())?;
                out.push_str(if at == 0 { "" } else { ", " });
                text(out, &value?, work)?;
            }
            out.push(']');
            Ok(())
        }
        _ => {
            let Some(entries) = entries(value, work) else { return refused(STRING, value) };
            let mut shown = Vec::new();
            let mut length = out.len();
            for (key, value) in entries {
                let mut entry = (String::new(), String::new());
                text(&mut entry.0, &key, work)?;
                text(&mut entry.1, &value?, work)?;
                length += entry.0.len() + entry.1.len();
                within_limit(length)?;
                shown.push(entry);
            }
            shown.sort_by(|one, other| one.0.cmp(&other.0));
            let shown: Vec<String> =
                shown.into_iter().map(|(key, value)| format!("{key}: {value}")).collect();
            write!(out, "{{{}}}", shown.join(", "))
        }
    };
    Ok(())
}
