//! Comparison of numbers of different types.

use super::{Error, Value};
use std::cmp::Ordering;

/// The whole number equal to a double; none if it has a fraction or fits neither `int` nor `uint`.
/// The smallest `int` is excluded, as in cel-go.
pub(super) fn whole(double: f64) -> Option<i128> {
    let fits = double > -2f64.powi(63) && double < 2f64.powi(64) && double.fract() == 0.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is a whole number of fewer bits")]
    fits.then_some(double as i128)
}

/// The error for comparing `NaN`.
pub(super) const NOT_ORDERED: Error = Error::fixed("NaN values cannot be ordered");

/// Compares a double with an integer. As in cel-go the integer becomes a double, so adjacent
/// integers above 2^53 are equal.
#[expect(clippy::cast_precision_loss, reason = "the rule")]
pub(super) fn compare_double_with_int(double: f64, int: i64) -> Ordering {
    if double < i64::MIN as f64 {
        Ordering::Less
    } else if double > i64::MAX as f64 {
        Ordering::Greater
    } else {
        // Neither is NaN.
        double.partial_cmp(&(int as f64)).unwrap_or(Ordering::Equal)
    }
}

/// As [`compare_double_with_int`].
#[expect(clippy::cast_precision_loss, reason = "the rule")]
pub(super) fn compare_double_with_uint(double: f64, uint: u64) -> Ordering {
    if double < 0.0 {
        Ordering::Less
    } else if double > u64::MAX as f64 {
        Ordering::Greater
    } else {
        double.partial_cmp(&(uint as f64)).unwrap_or(Ordering::Equal)
    }
}

/// Compares two numbers; none if one is not a number, an error if one is `NaN`.
pub(super) fn compare(one: &Value<'_>, other: &Value<'_>) -> Option<Result<Ordering, Error>> {
    let is_nan = |value: &Value<'_>| matches!(value, Value::Double(double) if double.is_nan());
    let order = match (one, other) {
        (Value::Int(one), Value::Int(other)) => one.cmp(other),
        (Value::Uint(one), Value::Uint(other)) => one.cmp(other),
        (Value::Int(one), Value::Uint(other)) => i128::from(*one).cmp(&i128::from(*other)),
        (Value::Uint(one), Value::Int(other)) => i128::from(*one).cmp(&i128::from(*other)),
        (Value::Double(one), Value::Double(other)) => match one.partial_cmp(other) {
            Some(order) => order,
            None => return Some(Err(NOT_ORDERED)),
        },
        (Value::Double(_), Value::Int(_) | Value::Uint(_)) if is_nan(one) => {
            return Some(Err(NOT_ORDERED));
        }
        (Value::Int(_) | Value::Uint(_), Value::Double(_)) if is_nan(other) => {
            return Some(Err(NOT_ORDERED));
        }
        (Value::Double(one), Value::Int(other)) => compare_double_with_int(*one, *other),
        (Value::Double(one), Value::Uint(other)) => compare_double_with_uint(*one, *other),
        (Value::Int(one), Value::Double(other)) => compare_double_with_int(*other, *one).reverse(),
        (Value::Uint(one), Value::Double(other)) => {
            compare_double_with_uint(*other, *one).reverse()
        }
        _ => return None,
    };
    Some(Ok(order))
}
