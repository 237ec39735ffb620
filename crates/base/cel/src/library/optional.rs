//! Optional library (cel-go's `cel.OptionalTypes`).
//!
//! The evaluator implements `a.?b`, `a[?b]`, `or` and `orValue`, which do not evaluate all
//! arguments; `optMap` and `optFlatMap` are macros.

use super::{FunctionLibrary, Implementation, Overload};
use crate::syntax::ast::operator;
use crate::syntax::macros;
use crate::types::Type;
use crate::value::{Error, ListValue, Value, ValueResult, WorkBudget};

/// The optional library, version 2.
pub static LIBRARY: FunctionLibrary = FunctionLibrary {
    name: "cel.lib.optional",
    overloads,
    macros: macros::OPTIONAL,
    types: || vec![("optional_type", Type::opaque("optional_type", Vec::new()))],
};

fn overloads() -> Vec<Overload> {
    let function = Overload::function;
    let method = Overload::method;
    let value = || Type::param("V");
    let optional = || Type::optional(value());
    let list = || Type::list(value());
    let map = || Type::map(Type::param("K"), value());
    let key = || Type::param("K");
    vec![
        function("optional.of", "optional_of", vec![value()], optional(), of),
        function(
            "optional.ofNonZeroValue",
            "optional_ofNonZeroValue",
            vec![value()],
            optional(),
            of_non_zero,
        ),
        function("optional.none", "optional_none", vec![], optional(), none),
        method("value", "optional_value", vec![optional()], value(), optional_value),
        method("hasValue", "optional_hasValue", vec![optional()], Type::Bool, has_value),
        evaluator_method("or", "optional_or_optional", vec![optional(), optional()], optional()),
        evaluator_method("orValue", "optional_orValue_value", vec![optional(), value()], value()),
        evaluator_function(
            operator::OPT_SELECT,
            "select_optional_field",
            vec![Type::Dyn, Type::String],
            optional(),
        ),
        evaluator_function(
            operator::OPT_INDEX,
            "list_optindex_optional_int",
            vec![list(), Type::Int],
            optional(),
        ),
        evaluator_function(
            operator::OPT_INDEX,
            "optional_list_optindex_optional_int",
            vec![Type::optional(list()), Type::Int],
            optional(),
        ),
        evaluator_function(
            operator::OPT_INDEX,
            "map_optindex_optional_value",
            vec![map(), key()],
            optional(),
        ),
        evaluator_function(
            operator::OPT_INDEX,
            "optional_map_optindex_optional_value",
            vec![Type::optional(map()), key()],
            optional(),
        ),
        evaluator_function(
            operator::INDEX,
            "optional_list_index_int",
            vec![Type::optional(list()), Type::Int],
            optional(),
        ),
        evaluator_function(
            operator::INDEX,
            "optional_map_index_value",
            vec![Type::optional(map()), key()],
            optional(),
        ),
        method("last", "list_last", vec![list()], optional(), last),
        method("first", "list_first", vec![list()], optional(), first),
        function(
            "optional.unwrap",
            "optional_unwrap",
            vec![Type::list(optional())],
            list(),
            unwrap_list,
        ),
        method(
            "unwrapOpt",
            "optional_unwrapOpt",
            vec![Type::list(optional())],
            list(),
            unwrap_list,
        ),
    ]
}

/// A method that the evaluator implements.
fn evaluator_method(
    function: &'static str,
    id: &'static str,
    params: Vec<Type>,
    result: Type,
) -> Overload {
    Overload {
        id,
        function,
        receiver: true,
        params,
        result,
        run: Implementation::Evaluator,
        prepare: None,
    }
}

/// An operator that the evaluator implements.
fn evaluator_function(
    function: &'static str,
    id: &'static str,
    params: Vec<Type>,
    result: Type,
) -> Overload {
    Overload { receiver: false, ..evaluator_method(function, id, params, result) }
}

fn of<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [value] = args else { return Err(Error::NoSuchOverload) };
    Ok(Value::some(value.clone()))
}

fn of_non_zero<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [value] = args else { return Err(Error::NoSuchOverload) };
    Ok(if value.is_zero() { Value::Optional(None) } else { Value::some(value.clone()) })
}

fn none<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    if args.is_empty() { Ok(Value::Optional(None)) } else { Err(Error::NoSuchOverload) }
}

fn optional_value<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    match args {
        [Value::Optional(Some(value))] => (**value).clone().into_result(),
        [Value::Optional(None)] => Err(Error::fixed("optional.none() dereference")),
        _ => Err(Error::NoSuchOverload),
    }
}

fn has_value<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    match args {
        [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
        _ => Err(Error::NoSuchOverload),
    }
}

fn first<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [Value::List(list)] = args else { return Err(Error::NoSuchOverload) };
    Ok(list.get(0, work).transpose()?.map_or(Value::Optional(None), Value::some))
}

fn last<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [Value::List(list)] = args else { return Err(Error::NoSuchOverload) };
    let last = list.len().checked_sub(1).and_then(|at| list.get(at, work));
    Ok(last.transpose()?.map_or(Value::Optional(None), Value::some))
}

fn unwrap_list<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [Value::List(list)] = args else { return Err(Error::NoSuchOverload) };
    let mut values = Vec::with_capacity(list.len());
    for value in list.iter(work) {
        match value? {
            Value::Optional(Some(value)) => values.push((*value).clone().into_result()?),
            Value::Optional(None) => {}
            other => {
                return Err(Error::text(
                    format!("value {} is not optional", other.display(work)),
                    work,
                ));
            }
        }
    }
    Ok(Value::List(ListValue::of(values)))
}
