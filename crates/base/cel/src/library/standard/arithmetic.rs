//! Arithmetic operators `+`, `-`, `*`, `/` and `%`, with errors on overflow.

use crate::library::args::MAX_TEXT_BYTES;
use crate::library::{Overload, StrictFunction};
use crate::syntax::ast::operator;
use crate::types::Type;
use crate::value::{Error, StringValue, Value, ValueResult, WorkBudget, time};

const INT_OVERFLOW: Error = Error::fixed("integer overflow");
const UINT_OVERFLOW: Error = Error::fixed("unsigned integer overflow");
const DIVISION_BY_ZERO: Error = Error::fixed("division by zero");
const MODULUS_BY_ZERO: Error = Error::fixed("modulus by zero");

pub(super) fn overloads() -> Vec<Overload> {
    use Type::{Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let all_of =
        |function, run: StrictFunction, overloads: Vec<(&'static str, [Type; 2], Type)>| {
            overloads.into_iter().map(move |(id, params, result)| {
                Overload::function(function, id, params.into(), result, run)
            })
        };
    let same_types = |id, cel_type: Type| (id, [cel_type.clone(), cel_type.clone()], cel_type);
    let mut all = Vec::new();
    all.extend(all_of(
        operator::ADD,
        |args, work| match args {
            [left, right] => add(left, right, work),
            _ => Err(Error::NoSuchOverload),
        },
        vec![
            same_types("add_bytes", Bytes),
            same_types("add_double", Double),
            same_types("add_duration_duration", Duration),
            ("add_duration_timestamp", [Duration, Timestamp], Timestamp),
            ("add_timestamp_duration", [Timestamp, Duration], Timestamp),
            same_types("add_int64", Int),
            same_types("add_list", Type::list(Type::param("A"))),
            same_types("add_string", String),
            same_types("add_uint64", Uint),
        ],
    ));
    all.extend(all_of(
        operator::DIVIDE,
        |args, _| apply_to_two(args, divide),
        vec![
            same_types("divide_double", Double),
            same_types("divide_int64", Int),
            same_types("divide_uint64", Uint),
        ],
    ));
    all.extend(all_of(
        operator::MODULO,
        |args, _| apply_to_two(args, modulo),
        vec![same_types("modulo_int64", Int), same_types("modulo_uint64", Uint)],
    ));
    all.extend(all_of(
        operator::MULTIPLY,
        |args, _| apply_to_two(args, multiply),
        vec![
            same_types("multiply_double", Double),
            same_types("multiply_int64", Int),
            same_types("multiply_uint64", Uint),
        ],
    ));
    for (id, cel_type) in [("negate_double", Double), ("negate_int64", Int)] {
        all.push(Overload::function(
            operator::NEGATE,
            id,
            vec![cel_type.clone()],
            cel_type,
            |args, _| args.first().map_or(Err(Error::NoSuchOverload), negate),
        ));
    }
    all.extend(all_of(
        operator::SUBTRACT,
        |args, _| apply_to_two(args, subtract),
        vec![
            same_types("subtract_double", Double),
            same_types("subtract_duration_duration", Duration),
            same_types("subtract_int64", Int),
            ("subtract_timestamp_duration", [Timestamp, Duration], Timestamp),
            ("subtract_timestamp_timestamp", [Timestamp, Timestamp], Duration),
            same_types("subtract_uint64", Uint),
        ],
    ));
    all
}

fn apply_to_two<'a>(
    args: &[Value<'a>],
    run: fn(&Value<'a>, &Value<'a>) -> ValueResult<'a>,
) -> ValueResult<'a> {
    match args {
        [left, right] => run(left, right),
        _ => Err(Error::NoSuchOverload),
    }
}

fn int<'a>(result: Option<i64>) -> ValueResult<'a> {
    result.map(Value::Int).ok_or(INT_OVERFLOW)
}

fn uint<'a>(result: Option<u64>) -> ValueResult<'a> {
    result.map(Value::Uint).ok_or(UINT_OVERFLOW)
}

fn duration<'a>(result: Option<i64>) -> ValueResult<'a> {
    result.map(Value::Duration).ok_or(INT_OVERFLOW)
}

fn timestamp<'a>(result: Option<crate::value::Timestamp>) -> ValueResult<'a> {
    result.map(Value::Timestamp).ok_or(time::TIMESTAMP_OVERFLOW)
}

/// `left + right`
///
/// # Errors
///
/// If the sum does not fit its type, or the values cannot be added.
pub fn add<'a>(left: &Value<'a>, right: &Value<'a>, work: &WorkBudget) -> ValueResult<'a> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_add(*right)),
        (Value::String(left), Value::String(right)) => concatenate(left, right),
        (Value::List(left), Value::List(right)) => {
            work.take(left.len())?;
            Ok(Value::List(left.clone().join(right, work)?))
        }
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left + right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_add(*right)),
        (Value::Bytes(left), Value::Bytes(right)) => {
            check_length(left.len(), right.len())?;
            Ok(Value::Bytes([left.as_slice(), right.as_slice()].concat().into()))
        }
        (Value::Duration(left), Value::Duration(right)) => duration(left.checked_add(*right)),
        (Value::Timestamp(time), Value::Duration(duration))
        | (Value::Duration(duration), Value::Timestamp(time)) => {
            timestamp(time.checked_add(*duration))
        }
        _ => Err(Error::NoSuchOverload),
    }
}

fn concatenate<'a>(left: &StringValue<'a>, right: &StringValue<'a>) -> ValueResult<'a> {
    if left.is_empty() {
        return Ok(Value::String(right.clone()));
    }
    if right.is_empty() {
        return Ok(Value::String(left.clone()));
    }
    check_length(left.len(), right.len())?;
    Ok(Value::text([left.as_str(), right.as_str()].concat()))
}

/// The maximum length limits memory even without a budget.
fn check_length(left: usize, right: usize) -> Result<(), Error> {
    if left.saturating_add(right) > MAX_TEXT_BYTES {
        return Err(Error::fixed("string is too long"));
    }
    Ok(())
}

/// `left - right`
///
/// # Errors
///
/// If the difference does not fit its type, or the values cannot be subtracted.
pub fn subtract<'a>(left: &Value<'a>, right: &Value<'a>) -> ValueResult<'a> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_sub(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left - right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_sub(*right)),
        (Value::Duration(left), Value::Duration(right)) => duration(left.checked_sub(*right)),
        (Value::Timestamp(left), Value::Timestamp(right)) => duration(left.since(*right)),
        (Value::Timestamp(time), Value::Duration(duration)) => {
            // The smallest duration cannot be negated.
            let negated = duration.checked_neg().ok_or(INT_OVERFLOW)?;
            timestamp(time.checked_add(negated))
        }
        _ => Err(Error::NoSuchOverload),
    }
}

/// `left * right`
///
/// # Errors
///
/// If the product does not fit its type, or the values cannot be multiplied.
pub fn multiply<'a>(left: &Value<'a>, right: &Value<'a>) -> ValueResult<'a> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_mul(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left * right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_mul(*right)),
        _ => Err(Error::NoSuchOverload),
    }
}

/// `left / right`; the quotient of whole numbers is truncated towards zero.
///
/// # Errors
///
/// If the divisor is the whole number zero, the quotient does not fit its type, or the values
/// cannot be divided.
pub fn divide<'a>(left: &Value<'a>, right: &Value<'a>) -> ValueResult<'a> {
    match (left, right) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(DIVISION_BY_ZERO),
        (Value::Int(left), Value::Int(right)) => int(left.checked_div(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left / right)),
        (Value::Uint(left), Value::Uint(right)) => Ok(Value::Uint(left / right)),
        _ => Err(Error::NoSuchOverload),
    }
}

/// `left % right`; it has the sign of the left side.
///
/// # Errors
///
/// If the divisor is zero, or the values are not whole numbers of one type.
pub fn modulo<'a>(left: &Value<'a>, right: &Value<'a>) -> ValueResult<'a> {
    match (left, right) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(MODULUS_BY_ZERO),
        (Value::Int(left), Value::Int(right)) => int(left.checked_rem(*right)),
        (Value::Uint(left), Value::Uint(right)) => Ok(Value::Uint(left % right)),
        _ => Err(Error::NoSuchOverload),
    }
}

/// `-value`
///
/// # Errors
///
/// If it is the smallest of its type, or cannot be negated.
pub fn negate<'a>(value: &Value<'a>) -> ValueResult<'a> {
    match value {
        Value::Int(value) => int(value.checked_neg()),
        Value::Double(value) => Ok(Value::Double(-value)),
        // No overload declares it, but values without a static type can be negated.
        Value::Duration(value) => duration(value.checked_neg()),
        _ => Err(Error::NoSuchOverload),
    }
}
