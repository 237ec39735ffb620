//! Comparison of JSON values with types, numbers and enums of a schema, as in upstream.

use super::{Kind, Schema};
use serde_json::Value;

/// The type of a value.
pub(super) fn kind_of(value: &Value) -> Kind {
    match value {
        Value::Bool(_) => Kind::Boolean,
        Value::Number(number) if number.is_i64() => Kind::Integer,
        Value::Number(_) => Kind::Number,
        Value::String(_) => Kind::String,
        Value::Array(_) => Kind::Array,
        Value::Object(_) | Value::Null => Kind::Object,
    }
}

/// Whether a value has the type of a schema.
pub(super) fn type_fits(schema: &Schema, int_or_string: bool, value: &Value) -> bool {
    let integral = |value: &Value| match value {
        Value::Number(number) => number.is_i64() || number.as_f64().is_some_and(is_whole),
        _ => false,
    };
    if int_or_string {
        return value.is_string() || integral(value);
    }
    match schema.kind {
        Some(Kind::Integer) => integral(value),
        Some(Kind::Number) => value.is_number(),
        Some(kind) => kind == kind_of(value),
        None => false,
    }
}

/// Whether a number counts as an integer: almost whole, and small enough to be exact.
fn is_whole(number: f64) -> bool {
    const EXACT: f64 = 9_007_199_254_740_991.0;
    if !number.is_finite() || number.abs() > EXACT {
        return false;
    }
    let whole = number.abs().round();
    let difference = (number.abs() - whole).abs();
    difference == 0.0 || difference < 1e-9 * whole
}

/// Whether a number is a multiple of another one.
pub(super) fn is_multiple(number: f64, factor: f64) -> bool {
    is_whole(if factor < 1.0 { 1.0 / factor * number } else { number / factor })
}

/// Whether a value equals an enum value. Upstream converts the value to the type of the enum value: a
/// fraction is truncated, and a number becomes the character with that code.
pub(super) fn equals_enum_value(allowed: &Value, value: &Value) -> bool {
    match (allowed, value) {
        _ if allowed == value => !value.is_null(),
        (Value::Number(allowed), Value::Number(number)) if allowed.is_i64() => {
            let number = number.as_f64().unwrap_or_default().trunc();
            allowed.as_f64() == Some(number)
        }
        (Value::Number(allowed), Value::Number(number)) => allowed.as_f64() == number.as_f64(),
        (Value::String(allowed), Value::Number(number)) => {
            let code = number.as_i64().and_then(|code| u32::try_from(code).ok());
            code.and_then(char::from_u32).is_some_and(|letter| *allowed == letter.to_string())
        }
        _ => false,
    }
}
