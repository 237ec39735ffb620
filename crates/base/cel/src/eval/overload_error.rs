//! What functions say to arguments that they do not take.
//!
//! cel-go has three ways to bind a function, and each refuses in its own words: one function for
//! all overloads says no more than "no such overload", or names the operator if the first argument
//! has nothing to do with it; a function for each overload names all that it was called with.

use crate::types::Type;
use crate::value::{Error, Value, WorkBudget};

/// How a function refuses arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OverloadErrorStyle {
    /// `no such overload`
    Plain,
    /// As [`Self::Plain`] if the first argument is of a kind that the operator is for, else
    /// `no such overload: _+_`.
    Operator(OperandKinds),
    /// `no such overload: f(int, string)`
    Signature,
    /// `no such overload: f`, of a function that does not exist.
    Unknown,
}

/// Kinds of values that operators are for (cel-go's traits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperandKinds {
    /// What `+` adds.
    Added,
    /// What `-` subtracts from.
    Subtracted,
    /// What `*` and `/` are for.
    Scaled,
    /// What `%` is for.
    Modulo,
    /// What `-x` is for.
    Negated,
    /// What has an order.
    Ordered,
    /// What has a size.
    Sized,
    /// What regular expressions are for.
    Matched,
    /// Lists.
    Listed,
}

impl OperandKinds {
    const fn contain(self, value: &Value<'_>) -> bool {
        use Value::{
            Bool, Bytes, Double, Duration, Int, List, Map, Object, String, Timestamp, Uint,
        };
        match self {
            Self::Added => matches!(
                value,
                Int(_)
                    | Uint(_)
                    | Double(_)
                    | String(_)
                    | Bytes(_)
                    | List(_)
                    | Duration(_)
                    | Timestamp(_)
            ),
            Self::Subtracted => {
                matches!(value, Int(_) | Uint(_) | Double(_) | Duration(_) | Timestamp(_))
            }
            Self::Scaled => matches!(value, Int(_) | Uint(_) | Double(_)),
            Self::Modulo => matches!(value, Int(_) | Uint(_)),
            Self::Negated => matches!(value, Int(_) | Double(_) | Bool(_) | Duration(_)),
            Self::Ordered => matches!(
                value,
                Bool(_)
                    | Int(_)
                    | Uint(_)
                    | Double(_)
                    | String(_)
                    | Bytes(_)
                    | Duration(_)
                    | Timestamp(_)
            ),
            Self::Sized => {
                matches!(value, String(_) | Bytes(_) | List(_) | Map(_) | Object(_))
            }
            Self::Matched => matches!(value, String(_)),
            Self::Listed => matches!(value, List(_)),
        }
    }
}

impl OverloadErrorStyle {
    /// How a function of this name refuses.
    pub(super) fn of(function: &str) -> Self {
        match function {
            "_+_" => Self::Operator(OperandKinds::Added),
            "_-_" => Self::Operator(OperandKinds::Subtracted),
            "_*_" | "_/_" => Self::Operator(OperandKinds::Scaled),
            "_%_" => Self::Operator(OperandKinds::Modulo),
            "-_" => Self::Operator(OperandKinds::Negated),
            "_<_" | "_<=_" | "_>_" | "_>=_" => Self::Operator(OperandKinds::Ordered),
            "size" => Self::Operator(OperandKinds::Sized),
            "matches" => Self::Operator(OperandKinds::Matched),
            "sort" | "@sortByAssociatedKeys" => Self::Operator(OperandKinds::Listed),
            "!_" | "@in" | "type" | "dyn" | "contains" | "startsWith" | "endsWith" | "flatten" => {
                Self::Plain
            }
            _ => Self::Signature,
        }
    }

    /// The refusal of these arguments by a function of this name.
    #[cold]
    pub(super) fn error(self, function: &str, args: &[Value<'_>]) -> Error {
        let receives = |value: &Value<'_>| {
            matches!(value, Value::String(_) | Value::Duration(_) | Value::Timestamp(_))
        };
        match (self, args.first()) {
            // Strings and times have methods of their own, and find none of this name.
            (Self::Operator(kinds), Some(first)) if !kinds.contain(first) && !receives(first) => {
                Error::NoSuchOverloadOf(function.to_owned().into())
            }
            (Self::Unknown, Some(first)) if !receives(first) => {
                Error::NoSuchOverloadOf(function.to_owned().into())
            }
            (Self::Signature, _) => {
                let types: Vec<_> = args.iter().map(|arg| arg.type_name().to_string()).collect();
                Error::NoSuchOverloadOf(format!("{function}({})", types.join(", ")).into())
            }
            _ => Error::NoSuchOverload,
        }
    }
}

/// Whether values are of the types that a function takes: lists and maps are judged by their first
/// elements, types of libraries by their names.
pub(super) fn takes(params: &[Type], args: &[Value<'_>], work: &WorkBudget) -> bool {
    params.len() == args.len()
        && params.iter().zip(args).all(|(param, arg)| is_of(param, arg, work))
}

fn is_of(param: &Type, value: &Value<'_>, work: &WorkBudget) -> bool {
    match (param, value) {
        (Type::Dyn | Type::Any | Type::Param(_) | Type::Var(_), _)
        | (Type::Null, Value::Null)
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::Uint(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Type(_), Value::Type(_)) => true,
        (Type::List(element), Value::List(list)) => match list.get(0, work) {
            Some(Ok(first)) => is_of(element, &first, work),
            Some(Err(_)) => false,
            None => true,
        },
        (Type::Map(of), Value::Map(map)) => first_is_of(of, map.iter(work).next(), work),
        (Type::Map(of), Value::Object(object @ crate::value::ObjectValue::Json { .. })) => {
            first_is_of(of, object.iter(work).next(), work)
        }
        (Type::Opaque(_) | Type::Object(_), _) => *param.name() == *value.type_name(),
        _ => false,
    }
}

fn first_is_of(
    of: &(Type, Type),
    first: Option<(Value<'_>, crate::value::ValueResult<'_>)>,
    work: &WorkBudget,
) -> bool {
    match first {
        Some((key, Ok(value))) => is_of(&of.0, &key, work) && is_of(&of.1, &value, work),
        Some((_, Err(_))) => false,
        None => true,
    }
}
