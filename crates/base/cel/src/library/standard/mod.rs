//! Standard library: operators, sizes, conversions, strings, durations and timestamps.
//!
//! An operator has one function for all its overloads, which checks its arguments. The evaluator
//! calls it directly if it knows the overload.

pub mod arithmetic;
pub mod compare;
pub mod convert;
mod float;
mod strings;
mod times;

pub(crate) use strings::{Pattern, cached_regex};

use super::{FunctionLibrary, Implementation, Overload};
use crate::syntax::ast::operator;
use crate::syntax::macros;
use crate::types::Type;
use crate::value::{Error, Value};

/// The standard functions, macros and types.
pub const LIBRARY: FunctionLibrary =
    FunctionLibrary { name: "standard", overloads, macros: macros::STANDARD, types };

fn overloads() -> Vec<Overload> {
    let mut all = logic();
    all.extend(arithmetic::overloads());
    all.extend(compare::overloads());
    all.extend(convert::overloads());
    all.extend(strings::overloads());
    all.extend(times::overloads());
    all
}

fn types() -> Vec<(&'static str, Type)> {
    vec![
        ("bool", Type::Bool),
        ("bytes", Type::Bytes),
        ("double", Type::Double),
        ("google.protobuf.Duration", Type::Duration),
        ("int", Type::Int),
        ("list", Type::list(Type::param("A"))),
        ("map", Type::map(Type::param("A"), Type::param("B"))),
        ("null_type", Type::Null),
        ("string", Type::String),
        ("google.protobuf.Timestamp", Type::Timestamp),
        ("type", Type::Type(None)),
        ("uint", Type::Uint),
    ]
}

/// Operators that do not evaluate all arguments, and negation.
fn logic() -> Vec<Overload> {
    let evaluator = |function, id, params, result| Overload {
        id,
        function,
        receiver: false,
        params,
        result,
        run: Implementation::Evaluator,
        prepare: None,
    };
    let a = || Type::param("A");
    vec![
        evaluator(operator::CONDITIONAL, "conditional", vec![Type::Bool, a(), a()], a()),
        evaluator(operator::AND, "logical_and", vec![Type::Bool, Type::Bool], Type::Bool),
        evaluator(operator::OR, "logical_or", vec![Type::Bool, Type::Bool], Type::Bool),
        Overload::function(
            operator::NOT,
            "logical_not",
            vec![Type::Bool],
            Type::Bool,
            |args, _| match args {
                [Value::Bool(bool)] => Ok(Value::Bool(!bool)),
                _ => Err(Error::NoSuchOverload),
            },
        ),
        evaluator(operator::NOT_STRICTLY_FALSE, "not_strictly_false", vec![Type::Bool], Type::Bool),
    ]
}
