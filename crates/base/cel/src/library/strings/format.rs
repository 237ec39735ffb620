//! `"%s is %d".format([name, count])`: how clauses are filled in.
//!
//! Up to version 3 numbers are written for American readers (`1,234.5`, `1.5×10⁰³`) and what is in
//! lists as the language writes it; version 4 writes all in the plainest way. Oddities of upstream
//! are kept, since texts become part of messages.

use super::clause::Clause;
use super::error::FormatError;
use super::{format_v4, numbers};
use crate::library::args::{LONGEST, exactly, made, str};
use crate::library::standard::convert::to_string;
use crate::value::{
    Error, ListValue, MapEntries, MapValue, ObjectValue, Value, ValueResult, WorkBudget,
};
use mainstay_gocompat::{quote, quote_bytes};
use std::fmt::Write as _;

/// `format` of versions 1 to 3.
pub(super) fn format<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    fill(args, american, work)
}

/// `format` from version 4 on.
pub(super) fn format_plainly<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    fill(args, format_v4::write, work)
}

/// Writes an argument as its clause says; fails with what is wrong with it.
type Writer = fn(&mut String, Clause, &Value<'_>, &WorkBudget) -> Result<(), FormatError>;

fn fill<'a>(args: &[Value<'a>], write: Writer, work: &WorkBudget) -> ValueResult<'a> {
    let [text, list] = exactly(args)?;
    let Value::List(list) = list else { return Err(Error::NoSuchOverload) };
    let mut rest = str(text)?;
    let mut out = String::with_capacity(rest.len());
    let mut next = 0;
    while let Some(percent) = rest.find('%') {
        out.push_str(&rest[..percent]);
        rest = &rest[percent + 1..];
        if let Some(behind) = rest.strip_prefix('%') {
            out.push('%');
            rest = behind;
            continue;
        }
        let Some(value) = list.get(next, work).transpose()? else {
            return Err(Error::text(format!("index {next} out of range"), work));
        };
        if rest.is_empty() {
            return Err(Error::fixed("unexpected end of string"));
        }
        let (clause, length) =
            Clause::read(rest.as_bytes()).map_err(|error| Error::text(error.to_string(), work))?;
        write(&mut out, clause, &value, work)
            .map_err(|error| Error::text(format!("error during formatting: {error}"), work))?;
        within_limit(out.len()).map_err(|error| Error::text(error.to_string(), work))?;
        rest = &rest[length..];
        next += 1;
    }
    out.push_str(rest);
    Ok(made(out))
}

/// Stops before more is written than a text may have: values that are made may hold one value many
/// times.
pub(super) fn within_limit(length: usize) -> Result<(), FormatError> {
    if length > LONGEST { Err(FormatError::TooLong) } else { Ok(()) }
}

/// What clauses of all versions refuse.
pub(super) const STRING: &str = "string clause can only be used on strings, bools, bytes, ints, \
                                 doubles, maps, lists, types, durations, and timestamps";

/// What a clause takes, and what it was given.
pub(super) fn refused<T>(takes: &'static str, value: &Value<'_>) -> Result<T, FormatError> {
    Err(FormatError::Type { takes, given: value.type_name().to_string() })
}

/// A number in another base, a minus before those below zero.
pub(super) fn in_base(out: &mut String, clause: Clause, value: &Value<'_>) -> Option<()> {
    let (minus, number) = match value {
        Value::Int(number) => (*number < 0, number.unsigned_abs()),
        Value::Uint(number) => (false, *number),
        Value::Bool(bit) if clause == Clause::Binary => (false, u64::from(*bit)),
        _ => return None,
    };
    if minus {
        out.push('-');
    }
    // Writing to a string does not fail.
    let _ = match clause {
        Clause::Binary => write!(out, "{number:b}"),
        Clause::Octal => write!(out, "{number:o}"),
        Clause::Hex { upper: true } => write!(out, "{number:X}"),
        Clause::Hex { upper: false } => write!(out, "{number:x}"),
        _ => write!(out, "{number}"),
    };
    Some(())
}

/// The bytes of a string or of bytes in hexadecimal digits.
pub(super) fn bytes_in_hex(out: &mut String, upper: bool, value: &Value<'_>) -> Option<()> {
    let bytes = match value {
        Value::String(text) => text.as_bytes(),
        Value::Bytes(bytes) => bytes,
        _ => return None,
    };
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = if upper { write!(out, "{byte:02X}") } else { write!(out, "{byte:02x}") };
    }
    Some(())
}

fn american(
    out: &mut String,
    clause: Clause,
    value: &Value<'_>,
    work: &WorkBudget,
) -> Result<(), FormatError> {
    match clause {
        Clause::String => text(out, value, work),
        Clause::Decimal => match value {
            Value::Int(_) | Value::Uint(_) => in_base(out, clause, value),
            _ => None,
        }
        .map_or_else(|| refused("decimal clause can only be used on integers", value), Ok),
        Clause::Fixed(digits) => match double(value) {
            Some(number) => {
                numbers::fixed(out, number, digits.unwrap_or(6));
                Ok(())
            }
            None => refused("fixed-point clause can only be used on doubles", value),
        },
        Clause::Scientific(width) => match double(value) {
            Some(number) => {
                numbers::scientific(out, number, width.unwrap_or(6));
                Ok(())
            }
            None => refused("scientific clause can only be used on doubles", value),
        },
        Clause::Binary => in_base(out, clause, value).map_or_else(
            || refused("only integers and bools can be formatted as binary", value),
            Ok,
        ),
        Clause::Octal => in_base(out, clause, value)
            .map_or_else(|| refused("octal clause can only be used on integers", value), Ok),
        Clause::Hex { upper } => {
            in_base(out, clause, value).or_else(|| bytes_in_hex(out, upper, value)).map_or_else(
                || {
                    let takes = "only integers, byte buffers, and strings can be formatted as hex";
                    refused(takes, value)
                },
                Ok,
            )
        }
    }
}

/// A double; strings may mean those that have no digits.
fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// Takes the work of writing a value: costs go by the text that it is written into alone.
pub(super) fn take_work(value: &Value<'_>, work: &WorkBudget) -> Result<(), FormatError> {
    let size = match value {
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    work.take(1)?;
    Ok(work.make_text(size)?)
}

/// `%s`
fn text(out: &mut String, value: &Value<'_>, work: &WorkBudget) -> Result<(), FormatError> {
    take_work(value, work)?;
    match value {
        Value::List(values) => list(out, values, work),
        Value::Map(MapValue::Json { .. } | MapValue::Values(_))
        | Value::Object(ObjectValue::Json { .. }) => map(out, entries(value, work), work),
        Value::Null => {
            out.push_str("null");
            Ok(())
        }
        Value::Type(of) => {
            out.push_str(of.name());
            Ok(())
        }
        Value::Optional(_) | Value::Opaque(_) | Value::Object(_) | Value::Preserved(_) => {
            refused(STRING, value)
        }
        value => {
            out.push_str(&converted(value, work)?);
            Ok(())
        }
    }
}

/// What `string(…)` gives.
fn converted(value: &Value<'_>, work: &WorkBudget) -> Result<String, FormatError> {
    match to_string(value, work) {
        Ok(Value::String(text)) => Ok(text.as_str().to_owned()),
        Ok(_) => refused(STRING, value),
        Err(error) => Err(FormatError::Convert(error)),
    }
}

/// The entries of what is a map for the language.
pub(super) fn entries<'v, 'a>(
    value: &'v Value<'a>,
    work: &'v WorkBudget,
) -> Option<MapEntries<'v, 'a>> {
    match value {
        Value::Map(map) => Some(map.iter(work)),
        Value::Object(object @ ObjectValue::Json { .. }) => Some(object.iter(work)),
        _ => None,
    }
}

fn list(out: &mut String, values: &ListValue<'_>, work: &WorkBudget) -> Result<(), FormatError> {
    out.push('[');
    for (at, value) in values.iter(work).enumerate() {
        within_limit(out.len())?;
        out.push_str(if at == 0 { "" } else { ", " });
        element(out, &value?, work)?;
    }
    out.push(']');
    Ok(())
}

fn map(
    out: &mut String,
    entries: Option<MapEntries<'_, '_>>,
    work: &WorkBudget,
) -> Result<(), FormatError> {
    let mut shown = Vec::new();
    let mut length = out.len();
    for (key, value) in entries.into_iter().flatten() {
        let mut entry = (String::new(), String::new());
        element(&mut entry.0, &key, work)?;
        element(&mut entry.1, &value?, work)?;
        length += entry.0.len() + entry.1.len();
        within_limit(length)?;
        shown.push(entry);
    }
    shown.sort_by(|one, other| one.0.cmp(&other.0));
    out.push('{');
    for (at, (key, value)) in shown.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { ", " });
        out.push_str(key);
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
    Ok(())
}

/// What is in a list or a map: as the language would write it.
fn element(out: &mut String, value: &Value<'_>, work: &WorkBudget) -> Result<(), FormatError> {
    take_work(value, work)?;
    match value {
        Value::String(text) => out.push_str(&quote(text)),
        Value::Bytes(_) => {
            out.push('b');
            out.push_str(&quote_bytes(converted(value, work)?.as_bytes()));
        }
        Value::Timestamp(_) => {
            out.push_str("timestamp(");
            out.push_str(&quote(&converted(value, work)?));
            out.push(')');
        }
        Value::Duration(_) => {
            out.push_str("duration(");
            out.push_str(&quote(&converted(value, work)?));
            out.push(')');
        }
        Value::Double(number) if number.is_finite() => numbers::exact(out, *number, 6),
        Value::Double(number) if number.is_nan() => out.push_str("\"NaN\""),
        Value::Double(number) => out.push_str(if *number > 0.0 { "\"+Inf\"" } else { "\"-Inf\"" }),
        Value::Optional(_)
        | Value::Opaque(_)
        | Value::Object(ObjectValue::Values { .. })
        | Value::Preserved(_) => {
            return Err(FormatError::Element { given: value.type_name().to_string() });
        }
        value => text(out, value, work)?,
    }
    Ok(())
}
