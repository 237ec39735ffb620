//! Plain formatting of `format` version 4.

use super::clause::Clause;
use super::error::FormatError;
use super::format::{
    STRING, check_length, entries_of, take_work, type_error, write_hex_bytes, write_in_base,
};
use super::numbers;
use crate::value::{Value, WorkBudget, time};
use std::fmt::Write as _;

/// Writes an argument in the format of its clause.
pub(super) fn write(
    out: &mut String,
    clause: Clause,
    value: &Value<'_>,
    work: &WorkBudget,
) -> Result<(), FormatError> {
    let written = match clause {
        Clause::String => return write_text(out, value, work),
        Clause::Decimal => match value {
            Value::Double(number) => {
                write_double(out, *number);
                Some(())
            }
            Value::Bool(_) => None,
            _ => write_in_base(out, clause, value),
        },
        Clause::Fixed(digits) => write_number(out, value, 'f', digits.unwrap_or(6))?,
        Clause::Scientific(digits) => write_number(out, value, 'e', digits.unwrap_or(6))?,
        Clause::Binary | Clause::Octal => write_in_base(out, clause, value),
        Clause::Hex { upper } => {
            write_in_base(out, clause, value).or_else(|| write_hex_bytes(out, upper, value))
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
    written.map_or_else(|| type_error(takes, value), Ok)
}

/// Writes a double with the shortest digits and without an exponent.
fn write_double(out: &mut String, number: f64) {
    match special_name(number) {
        Some(name) => out.push_str(name),
        None => {
            // Writing to a string does not fail.
            let _ = write!(out, "{number}");
        }
    }
}

/// The name of a special value.
fn special_name(number: f64) -> Option<&'static str> {
    if number.is_nan() {
        Some("NaN")
    } else if number.is_infinite() {
        Some(if number > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        None
    }
}

/// Writes `%f` and `%e`. Integers count as doubles by the specification; upstream fails its tests
/// for that.
fn write_number(
    out: &mut String,
    value: &Value<'_>,
    letter: char,
    digits: i64,
) -> Result<Option<()>, FormatError> {
    let Some(digits) =
        usize::try_from(digits).ok().filter(|digits| *digits <= numbers::MAX_PRECISION)
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
    match (special_name(number), letter) {
        (Some(name), _) => out.push_str(name),
        (None, 'e') => numbers::write_with_exponent(out, number, digits),
        (None, _) => numbers::write_exact(out, number, digits),
    }
    Ok(Some(()))
}

/// `%s`
fn write_text(out: &mut String, value: &Value<'_>, work: &WorkBudget) -> Result<(), FormatError> {
    take_work(value, work)?;
    // Writing to a string does not fail.
    let _ = match value {
        Value::Bool(value) => write!(out, "{value}"),
        Value::Int(value) => write!(out, "{value}"),
        Value::Uint(value) => write!(out, "{value}"),
        Value::Double(value) => {
            write_double(out, *value);
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
                check_length(out.len())?;
                out.push_str(if at == 0 { "" } else { ", " });
                write_text(out, &value?, work)?;
            }
            out.push(']');
            Ok(())
        }
        _ => {
            let Some(entries) = entries_of(value, work) else { return type_error(STRING, value) };
            let mut formatted_entries = Vec::new();
            let mut length = out.len();
            for (key, value) in entries {
                let mut entry = (String::new(), String::new());
                write_text(&mut entry.0, &key, work)?;
                write_text(&mut entry.1, &value?, work)?;
                length += entry.0.len() + entry.1.len();
                check_length(length)?;
                formatted_entries.push(entry);
            }
            formatted_entries.sort_by(|one, other| one.0.cmp(&other.0));
            let formatted_entries: Vec<String> = formatted_entries
                .into_iter()
                .map(|(key, value)| format!("{key}: {value}"))
                .collect();
            write!(out, "{{{}}}", formatted_entries.join(", "))
        }
    };
    Ok(())
}
