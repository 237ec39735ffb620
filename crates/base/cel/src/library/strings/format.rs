//! The function `format`: `"%s is %d".format([name, count])`.
//!
//! Versions 1 to 3 format numbers for American English (`1,234.5`, `1.5×10⁰³`), and elements of
//! lists as CEL literals; version 4 has a plain format. Peculiarities of upstream are kept, because
//! texts become part of messages.

use super::clause::Clause;
use super::error::FormatError;
use super::{format_v4, numbers};
use crate::library::args::{MAX_TEXT_BYTES, exactly, new_string, str};
use crate::library::standard::convert::to_string;
use crate::value::{
    Error, ListValue, MapEntries, MapValue, ObjectValue, Value, ValueResult, WorkBudget,
};
use mainstay_gocompat::{quote, quote_bytes};
use std::fmt::Write as _;

/// `format` of versions 1 to 3.
pub(super) fn format<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    format_with(args, write_american, work)
}

/// `format` from version 4 on.
pub(super) fn format_plainly<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    format_with(args, format_v4::write, work)
}

/// Writes an argument in the format of its clause.
type Writer = fn(&mut String, Clause, &Value<'_>, &WorkBudget) -> Result<(), FormatError>;

fn format_with<'a>(args: &[Value<'a>], write: Writer, work: &WorkBudget) -> ValueResult<'a> {
    let [text, list] = exactly(args)?;
    let Value::List(list) = list else { return Err(Error::NoSuchOverload) };
    let mut rest = str(text)?;
    let mut out = String::with_capacity(rest.len());
    let mut next = 0;
    while let Some(percent) = rest.find('%') {
        out.push_str(&rest[..percent]);
        rest = &rest[percent + 1..];
        if let Some(after_percent) = rest.strip_prefix('%') {
            out.push('%');
            rest = after_percent;
            continue;
        }
        let Some(value) = list.get(next, work).transpose()? else {
            return Err(Error::text(format!("index {next} out of range"), work));
        };
        if rest.is_empty() {
            return Err(Error::fixed("unexpected end of string"));
        }
        let (clause, length) =
            Clause::parse(rest.as_bytes()).map_err(|error| Error::text(error.to_string(), work))?;
        write(&mut out, clause, &value, work)
            .map_err(|error| Error::text(format!("error during formatting: {error}"), work))?;
        check_length(out.len()).map_err(|error| Error::text(error.to_string(), work))?;
        rest = &rest[length..];
        next += 1;
    }
    out.push_str(rest);
    Ok(new_string(out))
}

/// Checks the maximum length. A value may contain the same value many times, so the text can be far
/// larger than the value.
pub(super) fn check_length(length: usize) -> Result<(), FormatError> {
    if length > MAX_TEXT_BYTES { Err(FormatError::TooLong) } else { Ok(()) }
}

/// The message for a `%s` argument of another type, in all versions.
pub(super) const STRING: &str = "string clause can only be used on strings, bools, bytes, ints, \
                                 doubles, maps, lists, types, durations, and timestamps";

/// The error for an argument of a wrong type.
pub(super) fn type_error<T>(takes: &'static str, value: &Value<'_>) -> Result<T, FormatError> {
    Err(FormatError::Type { takes, given: value.type_name().to_string() })
}

/// Writes a number in the base of a clause, with a minus sign if it is negative.
pub(super) fn write_in_base(out: &mut String, clause: Clause, value: &Value<'_>) -> Option<()> {
    let (is_negative, number) = match value {
        Value::Int(number) => (*number < 0, number.unsigned_abs()),
        Value::Uint(number) => (false, *number),
        Value::Bool(bit) if clause == Clause::Binary => (false, u64::from(*bit)),
        _ => return None,
    };
    if is_negative {
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

/// Writes the bytes of a string or of bytes in hexadecimal digits.
pub(super) fn write_hex_bytes(out: &mut String, upper: bool, value: &Value<'_>) -> Option<()> {
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

fn write_american(
    out: &mut String,
    clause: Clause,
    value: &Value<'_>,
    work: &WorkBudget,
) -> Result<(), FormatError> {
    match clause {
        Clause::String => write_text(out, value, work),
        Clause::Decimal => match value {
            Value::Int(_) | Value::Uint(_) => write_in_base(out, clause, value),
            _ => None,
        }
        .map_or_else(|| type_error("decimal clause can only be used on integers", value), Ok),
        Clause::Fixed(digits) => match double(value) {
            Some(number) => {
                numbers::write_fixed(out, number, digits.unwrap_or(6));
                Ok(())
            }
            None => type_error("fixed-point clause can only be used on doubles", value),
        },
        Clause::Scientific(width) => match double(value) {
            Some(number) => {
                numbers::write_scientific(out, number, width.unwrap_or(6));
                Ok(())
            }
            None => type_error("scientific clause can only be used on doubles", value),
        },
        Clause::Binary => write_in_base(out, clause, value).map_or_else(
            || type_error("only integers and bools can be formatted as binary", value),
            Ok,
        ),
        Clause::Octal => write_in_base(out, clause, value)
            .map_or_else(|| type_error("octal clause can only be used on integers", value), Ok),
        Clause::Hex { upper } => write_in_base(out, clause, value)
            .or_else(|| write_hex_bytes(out, upper, value))
            .map_or_else(
                || {
                    let takes = "only integers, byte buffers, and strings can be formatted as hex";
                    type_error(takes, value)
                },
                Ok,
            ),
    }
}

/// A double argument, or a string that names a special value.
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

/// Takes the work of writing a value, which is not part of the cost.
pub(super) fn take_work(value: &Value<'_>, work: &WorkBudget) -> Result<(), FormatError> {
    let size = match value {
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    work.take(1)?;
    Ok(work.create_text(size)?)
}

/// `%s`
fn write_text(out: &mut String, value: &Value<'_>, work: &WorkBudget) -> Result<(), FormatError> {
    take_work(value, work)?;
    match value {
        Value::List(values) => write_list(out, values, work),
        Value::Map(MapValue::Json { .. } | MapValue::Values(_))
        | Value::Object(ObjectValue::Json { .. }) => write_map(out, entries_of(value, work), work),
        Value::Null => {
            out.push_str("null");
            Ok(())
        }
        Value::Type(cel_type) => {
            out.push_str(cel_type.name());
            Ok(())
        }
        Value::Optional(_) | Value::Opaque(_) | Value::Object(_) | Value::Preserved(_) => {
            type_error(STRING, value)
        }
        value => {
            out.push_str(&convert_to_string(value, work)?);
            Ok(())
        }
    }
}

/// The result of `string(…)`.
fn convert_to_string(value: &Value<'_>, work: &WorkBudget) -> Result<String, FormatError> {
    match to_string(value, work) {
        Ok(Value::String(text)) => Ok(text.as_str().to_owned()),
        Ok(_) => type_error(STRING, value),
        Err(error) => Err(FormatError::Convert(error)),
    }
}

/// The entries of a map or of an object.
pub(super) fn entries_of<'v, 'a>(
    value: &'v Value<'a>,
    work: &'v WorkBudget,
) -> Option<MapEntries<'v, 'a>> {
    match value {
        Value::Map(map) => Some(map.iter(work)),
        Value::Object(object @ ObjectValue::Json { .. }) => Some(object.iter(work)),
        _ => None,
    }
}

fn write_list(
    out: &mut String,
    values: &ListValue<'_>,
    work: &WorkBudget,
) -> Result<(), FormatError> {
    out.push('[');
    for (at, value) in values.iter(work).enumerate() {
        check_length(out.len())?;
        out.push_str(if at == 0 { "" } else { ", " });
        write_element(out, &value?, work)?;
    }
    out.push(']');
    Ok(())
}

fn write_map(
    out: &mut String,
    entries: Option<MapEntries<'_, '_>>,
    work: &WorkBudget,
) -> Result<(), FormatError> {
    let mut formatted_entries = Vec::new();
    let mut length = out.len();
    for (key, value) in entries.into_iter().flatten() {
        let mut entry = (String::new(), String::new());
        write_element(&mut entry.0, &key, work)?;
        write_element(&mut entry.1, &value?, work)?;
        length += entry.0.len() + entry.1.len();
        check_length(length)?;
        formatted_entries.push(entry);
    }
    formatted_entries.sort_by(|one, other| one.0.cmp(&other.0));
    out.push('{');
    for (at, (key, value)) in formatted_entries.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { ", " });
        out.push_str(key);
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
    Ok(())
}

/// Writes an element of a list or map as a CEL literal.
fn write_element(
    out: &mut String,
    value: &Value<'_>,
    work: &WorkBudget,
) -> Result<(), FormatError> {
    take_work(value, work)?;
    match value {
        Value::String(text) => out.push_str(&quote(text)),
        Value::Bytes(_) => {
            out.push('b');
            out.push_str(&quote_bytes(convert_to_string(value, work)?.as_bytes()));
        }
        Value::Timestamp(_) => {
            out.push_str("timestamp(");
            out.push_str(&quote(&convert_to_string(value, work)?));
            out.push(')');
        }
        Value::Duration(_) => {
            out.push_str("duration(");
            out.push_str(&quote(&convert_to_string(value, work)?));
            out.push(')');
        }
        Value::Double(number) if number.is_finite() => numbers::write_exact(out, *number, 6),
        Value::Double(number) if number.is_nan() => out.push_str("\"NaN\""),
        Value::Double(number) => out.push_str(if *number > 0.0 { "\"+Inf\"" } else { "\"-Inf\"" }),
        Value::Optional(_)
        | Value::Opaque(_)
        | Value::Object(ObjectValue::Values { .. })
        | Value::Preserved(_) => {
            return Err(FormatError::Element { given: value.type_name().to_string() });
        }
        value => write_text(out, value, work)?,
    }
    Ok(())
}
