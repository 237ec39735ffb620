//! Values in server-side apply: their order, their equality, and their texts as Go prints them.
//!
//! The equality of `serde_json` does not fit, because `1` and `1.0` are one value in apply. As in
//! Go's decoder, integers beyond 64 signed bits are floating point numbers.

use mainstay_gocompat::quote;
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::fmt::Write as _;

/// Orders any values: numbers, strings, booleans, lists, maps, null.
pub(super) fn order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Number(left), Value::Number(right)) => order_numbers(left, right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => left
            .iter()
            .zip(right)
            .map(|(left, right)| order(left, right))
            .find(|found| found.is_ne())
            .unwrap_or_else(|| left.len().cmp(&right.len())),
        (Value::Object(left), Value::Object(right)) => left
            .iter()
            .zip(right)
            .map(|(left, right)| left.0.cmp(right.0).then_with(|| order(left.1, right.1)))
            .find(|found| found.is_ne())
            .unwrap_or_else(|| left.len().cmp(&right.len())),
        _ => rank(left).cmp(&rank(right)),
    }
}

const fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn order_numbers(left: &Number, right: &Number) -> Ordering {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => float(left).partial_cmp(&float(right)).unwrap_or(Ordering::Equal),
    }
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

/// Whether two values are equal; numbers by their value, not by their form.
pub(super) fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => order_numbers(left, right).is_eq(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| is_equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| left.0 == right.0 && is_equal(left.1, right.1))
        }
        _ => left == right,
    }
}

/// Writes a value in a path, as in `[name="a"]`.
pub(super) fn write_in_path(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => out.push_str(&quote(text)),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_in_path(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                out.push_str(name);
                out.push('=');
                write_in_path(out, field);
            }
        }
    }
}

/// Writes a number as Go's `%v` prints a `float64`, the type of numbers in stored field sets and
/// applied configurations. It has the shortest digits, with an exponent below 10⁻⁴ and from 10⁶ on.
fn write_number(out: &mut String, number: &Number) {
    let number = float(number);
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        let _ = write!(out, "{number}");
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{digits}e{sign}{:02}", exponent.abs());
    }
}

/// Writes a decoded JSON value as Go's `%v` prints it.
pub(super) fn write_go_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::String(text) => out.push_str(text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write_go_value(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push_str("map[");
            for (index, (name, field)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                let _ = write!(out, "{name}:");
                write_go_value(out, field);
            }
            out.push(']');
        }
        Value::Bool(_) | Value::Number(_) => write_in_path(out, value),
    }
}

/// Writes a decoded JSON value as Go's `%#v` prints it.
pub(super) fn write_go_syntax(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::Array(items) => {
            out.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_go_syntax(out, item);
            }
            out.push('}');
        }
        Value::Object(fields) => {
            out.push_str("map[string]interface {}{");
            for (index, (name, field)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                out.push_str(&quote(name));
                out.push(':');
                write_go_syntax(out, field);
            }
            out.push('}');
        }
        Value::String(_) | Value::Bool(_) | Value::Number(_) => write_in_path(out, value),
    }
}

/// The Go type of a decoded JSON value (`%T`).
pub(super) const fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
