//! `+`, `-`, `*`, `/`, `%`: numbers do not wrap, texts and lists grow, times move.

use crate::library::args::LONGEST;
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
    let same = |id, of: Type| (id, [of.clone(), of.clone()], of);
    let mut all = Vec::new();
    all.extend(all_of(
        operator::ADD,
        |args, work| match args {
            [left, right] => add(left, right, work),
            _ => Err(Error::NoSuchOverload),
        },
        vec![
            same("add_bytes", Bytes),
            same("add_double", Double),
            same("add_duration_duration", Duration),
            ("add_duration_timestamp", [Duration, Timestamp], Timestamp),
            ("add_timestamp_duration", [Timestamp, Duration], Timestamp),
            same("add_int64", Int),
            same("add_list", Type::list(Type::param("A"))),
            same("add_string", String),
            same("add_uint64", Uint),
        ],
    ));
    all.extend(all_of(
        operator::DIVIDE,
        |args, _| both(args, divide),
        vec![same("divide_double", Double), same("divide_int64", Int), same("divide_uint64", Uint)],
    ));
    all.extend(all_of(
        operator::MODULO,
        |args, _| both(args, modulo),
        vec![same("modulo_int64", Int), same("modulo_uint64", Uint)],
    ));
    all.extend(all_of(
        operator::MULTIPLY,
        |args, _| both(args, multiply),
        vec![
            same("multiply_double", Double),
            same("multiply_int64", Int),
            same("multiply_uint64", Uint),
        ],
    ));
    for (id, of) in [("negate_double", Double), ("negate_int64", Int)] {
        all.push(Overload::function(operator::NEGATE, id, vec![of.clone()], of, |args, _| {
            args.first().map_or(Err(Error::NoSuchOverload), negate)
        }));
    }
    all.extend(all_of(
        operator::SUBTRACT,
        |args, _| both(args, subtract),
        vec![
            same("subtract_double", Double),
            same("subtract_duration_duration", Duration),
            same("subtract_int64", Int),
            ("subtract_timestamp_duration", [Timestamp, Duration], Timestamp),
            ("subtract_timestamp_timestamp", [Timestamp, Timestamp], Duration),
            same("subtract_uint64", Uint),
        ],
    ));
    all
}

fn both<'a>(
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
            fits(left.len(), right.len())?;
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
    fits(left.len(), right.len())?;
    Ok(Value::text([left.as_str(), right.as_str()].concat()))
}

/// Memory is bounded also where no budget is.
fn fits(left: usize, right: usize) -> Result<(), Error> {
    if left.saturating_add(right) > LONGEST {
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
            // The least duration has no opposite.
            let back = duration.checked_neg().ok_or(INT_OVERFLOW)?;
            timestamp(time.checked_add(back))
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

/// `left / right`; what is left over of whole numbers is dropped, towards zero.
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
/// If the divisor is zero, or the values are no whole numbers of one type.
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
/// If it is the least of its type, or has no opposite.
pub fn negate<'a>(value: &Value<'a>) -> ValueResult<'a> {
    match value {
        Value::Int(value) => int(value.checked_neg()),
        Value::Double(value) => Ok(Value::Double(-value)),
        // No overload says so, but values without a type at compile time can do it.
        Value::Duration(value) => duration(value.checked_neg()),
        _ => Err(Error::NoSuchOverload),
    }
}
