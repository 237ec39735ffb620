//! Numbers of three types, compared by what they are worth.

use super::{Error, Value};
use std::cmp::Ordering;

/// The whole number that a double is; none if it has a fraction or fits neither `int` nor `uint`
/// (the least `int` does not count, as in cel-go).
pub(super) fn whole(double: f64) -> Option<i128> {
    let fits = double > -2f64.powi(63) && double < 2f64.powi(64) && double.fract() == 0.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is a whole number of fewer bits")]
    fits.then_some(double as i128)
}

/// `NaN` has no order.
pub(super) const NOT_ORDERED: Error = Error::fixed("NaN values cannot be ordered");

/// A double beside an integer. As in cel-go the integer becomes a double, so that neighbours above
/// 2^53 are equal.
#[expect(clippy::cast_precision_loss, reason = "the rule")]
pub(super) fn double_to_int(double: f64, int: i64) -> Ordering {
    if double < i64::MIN as f64 {
        Ordering::Less
    } else if double > i64::MAX as f64 {
        Ordering::Greater
    } else {
        // Neither is NaN.
        double.partial_cmp(&(int as f64)).unwrap_or(Ordering::Equal)
    }
}

/// As [`double_to_int`].
#[expect(clippy::cast_precision_loss, reason = "the rule")]
pub(super) fn double_to_uint(double: f64, uint: u64) -> Ordering {
    if double < 0.0 {
        Ordering::Less
    } else if double > u64::MAX as f64 {
        Ordering::Greater
    } else {
        double.partial_cmp(&(uint as f64)).unwrap_or(Ordering::Equal)
    }
}

/// How two numbers compare; none if one of them is no number, an error if one is `NaN`.
pub(super) fn compare(one: &Value<'_>, other: &Value<'_>) -> Option<Result<Ordering, Error>> {
    let nan = |value: &Value<'_>| matches!(value, Value::Double(double) if double.is_nan());
    let order = match (one, other) {
        (Value::Int(one), Value::Int(other)) => one.cmp(other),
        (Value::Uint(one), Value::Uint(other)) => one.cmp(other),
        (Value::Int(one), Value::Uint(other)) => i128::from(*one).cmp(&i128::from(*other)),
        (Value::Uint(one), Value::Int(other)) => i128::from(*one).cmp(&i128::from(*other)),
        (Value::Double(one), Value::Double(other)) => match one.partial_cmp(other) {
            Some(order) => order,
            None => return Some(Err(NOT_ORDERED)),
        },
        (Value::Double(_), Value::Int(_) | Value::Uint(_)) if nan(one) => {
            return Some(Err(NOT_ORDERED));
        }
        (Value::Int(_) | Value::Uint(_), Value::Double(_)) if nan(other) => {
            return Some(Err(NOT_ORDERED));
        }
        (Value::Double(one), Value::Int(other)) => double_to_int(*one, *other),
        (Value::Double(one), Value::Uint(other)) => double_to_uint(*one, *other),
        (Value::Int(one), Value::Double(other)) => double_to_int(*other, *one).reverse(),
        (Value::Uint(one), Value::Double(other)) => double_to_uint(*other, *one).reverse(),
        _ => return None,
    };
    Some(Ok(order))
}
