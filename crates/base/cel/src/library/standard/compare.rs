//! Comparison operators, `[]`, `in` and `size`.

use crate::library::{Overload, StrictFunction};
use crate::syntax::ast::operator;
use crate::types::Type;
use crate::value::{Error, Value, ValueResult, WorkBudget};

/// The ids of overloads that compare [`ordered_types`] values.
macro_rules! overload_ids {
    ($function:literal) => {
        [
            concat!($function, "_bool"),
            concat!($function, "_int64"),
            concat!($function, "_int64_double"),
            concat!($function, "_int64_uint64"),
            concat!($function, "_uint64"),
            concat!($function, "_uint64_double"),
            concat!($function, "_uint64_int64"),
            concat!($function, "_double"),
            concat!($function, "_double_int64"),
            concat!($function, "_double_uint64"),
            concat!($function, "_string"),
            concat!($function, "_bytes"),
            concat!($function, "_timestamp"),
            concat!($function, "_duration"),
        ]
    };
}

/// The pairs of types that can be compared.
fn ordered_types() -> [[Type; 2]; 14] {
    use Type::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    [
        [Bool, Bool],
        [Int, Int],
        [Int, Double],
        [Int, Uint],
        [Uint, Uint],
        [Uint, Double],
        [Uint, Int],
        [Double, Double],
        [Double, Int],
        [Double, Uint],
        [String, String],
        [Bytes, Bytes],
        [Timestamp, Timestamp],
        [Duration, Duration],
    ]
}

pub(super) fn overloads() -> Vec<Overload> {
    let type_a = || Type::param("A");
    let list = || Type::list(Type::param("A"));
    let map = || Type::map(Type::param("A"), Type::param("B"));
    let function = Overload::function;
    let equals: StrictFunction = |args, work| match args {
        [left, right] => Ok(Value::Bool(left.equals(right, work)?)),
        _ => Err(Error::NoSuchOverload),
    };
    let not_equals: StrictFunction = |args, work| match args {
        [left, right] => Ok(Value::Bool(!left.equals(right, work)?)),
        _ => Err(Error::NoSuchOverload),
    };
    let index: StrictFunction = |args, work| match args {
        [container, key] => container.index(key, work),
        _ => Err(Error::NoSuchOverload),
    };
    let is_in: StrictFunction = |args, work| match args {
        [value, container] => Ok(Value::Bool(value.is_in(container, work)?)),
        _ => Err(Error::NoSuchOverload),
    };
    let mut all = vec![
        function(operator::EQUALS, "equals", vec![type_a(), type_a()], Type::Bool, equals),
        function(
            operator::NOT_EQUALS,
            "not_equals",
            vec![type_a(), type_a()],
            Type::Bool,
            not_equals,
        ),
    ];
    for (name, ids, run) in [
        (operator::LESS, overload_ids!("less"), (|args, _| relation(args, less)) as StrictFunction),
        (operator::LESS_EQUALS, overload_ids!("less_equals"), |args, _| {
            relation(args, less_equals)
        }),
        (operator::GREATER, overload_ids!("greater"), |args, _| relation(args, greater)),
        (operator::GREATER_EQUALS, overload_ids!("greater_equals"), |args, _| {
            relation(args, greater_equals)
        }),
    ] {
        for (params, id) in ordered_types().into_iter().zip(ids) {
            all.push(function(name, id, params.into(), Type::Bool, run));
        }
    }
    all.extend([
        function(operator::INDEX, "index_list", vec![list(), Type::Int], type_a(), index),
        function(operator::INDEX, "index_map", vec![map(), type_a()], Type::param("B"), index),
        function(operator::IN, "in_list", vec![type_a(), list()], Type::Bool, is_in),
        function(operator::IN, "in_map", vec![type_a(), map()], Type::Bool, is_in),
    ]);
    for (operand_type, function_id, method) in [
        (Type::Bytes, "size_bytes", "bytes_size"),
        (list(), "size_list", "list_size"),
        (map(), "size_map", "map_size"),
        (Type::String, "size_string", "string_size"),
    ] {
        all.push(function("size", function_id, vec![operand_type.clone()], Type::Int, size));
        all.push(Overload::method("size", method, vec![operand_type], Type::Int, size));
    }
    all
}

type Relation = fn(&Value<'_>, &Value<'_>) -> Result<bool, Error>;

fn relation<'a>(args: &[Value<'a>], run: Relation) -> ValueResult<'a> {
    match args {
        [left, right] => Ok(Value::Bool(run(left, right)?)),
        _ => Err(Error::NoSuchOverload),
    }
}

/// `left < right`
///
/// # Errors
///
/// If the values cannot be compared.
pub fn less(left: &Value<'_>, right: &Value<'_>) -> Result<bool, Error> {
    Ok(left.compare(right)?.is_lt())
}

/// `left <= right`
///
/// # Errors
///
/// If the values cannot be compared.
pub fn less_equals(left: &Value<'_>, right: &Value<'_>) -> Result<bool, Error> {
    Ok(left.compare(right)?.is_le())
}

/// `left > right`
///
/// # Errors
///
/// If the values cannot be compared.
pub fn greater(left: &Value<'_>, right: &Value<'_>) -> Result<bool, Error> {
    Ok(left.compare(right)?.is_gt())
}

/// `left >= right`
///
/// # Errors
///
/// If the values cannot be compared.
pub fn greater_equals(left: &Value<'_>, right: &Value<'_>) -> Result<bool, Error> {
    Ok(left.compare(right)?.is_ge())
}

/// `size(value)`
fn size<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [value] = args else { return Err(Error::NoSuchOverload) };
    let size = value.size().ok_or(Error::NoSuchOverload)?;
    // Nothing in memory has more than 2^63 elements.
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}
