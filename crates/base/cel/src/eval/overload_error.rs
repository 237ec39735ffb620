//! Errors for calls without a matching overload.
//!
//! cel-go has three ways to bind a function, with three messages. A function for all overloads
//! fails with "no such overload", or with the name of the operator if its first argument is of an
//! unrelated kind. A function for each overload fails with all argument types.

use crate::types::Type;
use crate::value::{Error, Value, WorkBudget};

/// The style of a function's errors for wrong arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OverloadErrorStyle {
    /// `no such overload`
    Plain,
    /// As [`Self::Plain`] if the first argument has a kind of the operator, else `no such overload:
    /// _+_`.
    Operator(OperandKinds),
    /// `no such overload: f(int, string)`
    Signature,
    /// `no such overload: f`, for an unknown function.
    Unknown,
}

/// Kinds of operands (cel-go's traits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperandKinds {
    /// The operands of `+`.
    Added,
    /// The left operands of `-`.
    Subtracted,
    /// The operands of `*` and `/`.
    Scaled,
    /// The operands of `%`.
    Modulo,
    /// The operands of `-x`.
    Negated,
    /// Values with an order.
    Ordered,
    /// Values with a size.
    Sized,
    /// Strings for regular expressions.
    Matched,
    /// Lists.
    Listed,
}

impl OperandKinds {
    const fn contains(self, value: &Value<'_>) -> bool {
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
    /// The error style of a function.
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

    /// The error for these arguments.
    #[cold]
    pub(super) fn error(self, function: &str, args: &[Value<'_>]) -> Error {
        let has_own_methods = |value: &Value<'_>| {
            matches!(value, Value::String(_) | Value::Duration(_) | Value::Timestamp(_))
        };
        match (self, args.first()) {
            // Strings, durations and timestamps have methods of their own, none of this name.
            (Self::Operator(kinds), Some(first))
                if !kinds.contains(first) && !has_own_methods(first) =>
            {
                Error::NoSuchOverloadOf(function.to_owned().into())
            }
            (Self::Unknown, Some(first)) if !has_own_methods(first) => {
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

/// Whether values have the types that an overload accepts: lists and maps are compared by their first
/// elements, types of libraries by their names.
pub(super) fn accepts(params: &[Type], args: &[Value<'_>], work: &WorkBudget) -> bool {
    params.len() == args.len()
        && params.iter().zip(args).all(|(param, arg)| has_type(param, arg, work))
}

fn has_type(param: &Type, value: &Value<'_>, work: &WorkBudget) -> bool {
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
            Some(Ok(first)) => has_type(element, &first, work),
            Some(Err(_)) => false,
            None => true,
        },
        (Type::Map(entry_types), Value::Map(map)) => {
            first_entry_has_type(entry_types, map.iter(work).next(), work)
        }
        (
            Type::Map(entry_types),
            Value::Object(object @ crate::value::ObjectValue::Json { .. }),
        ) => first_entry_has_type(entry_types, object.iter(work).next(), work),
        (Type::Opaque(_) | Type::Object(_), _) => *param.name() == *value.type_name(),
        _ => false,
    }
}

fn first_entry_has_type(
    entry_types: &(Type, Type),
    first: Option<(Value<'_>, crate::value::ValueResult<'_>)>,
    work: &WorkBudget,
) -> bool {
    match first {
        Some((key, Ok(value))) => {
            has_type(&entry_types.0, &key, work) && has_type(&entry_types.1, &value, work)
        }
        Some((_, Err(_))) => false,
        None => true,
    }
}
