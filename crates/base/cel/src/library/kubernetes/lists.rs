//! Kubernetes list library: `self.ports.sum()`, `self.names.isSorted()`.

use crate::library::args::exactly;
use crate::library::{FunctionLibrary, Overload, StrictFunction};
use crate::types::Type;
use crate::value::{Error, ListValue, Value, ValueResult, WorkBudget};
use std::cmp::Ordering;

/// `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`.
pub static LIBRARY: FunctionLibrary =
    FunctionLibrary { name: "kubernetes.lists", overloads, macros: &[], types: Vec::new };

/// The error for an element of another type, as opposed to an argument of another type.
const ELEMENT_TYPE_ERROR: Error = Error::fixed("no such overload");

/// A type of elements.
trait Element {
    /// Whether a value has this type.
    fn is(value: &Value<'_>) -> bool;
}

macro_rules! elements {
    ($($type:ident),*) => {
        $(struct $type;

        impl Element for $type {
            fn is(value: &Value<'_>) -> bool {
                matches!(value, Value::$type(_))
            }
        })*
    };
}

elements!(Int, Uint, Double, Bool, Duration, Timestamp, String, Bytes);

/// The overloads for each element type, with its name in ids.
macro_rules! ordered {
    ($all:ident, $($element:ident $name:literal),*) => {
        $($all.extend([
            method(
                "isSorted",
                concat!("list_", $name, "_is_sorted_bool"),
                Type::$element,
                Type::Bool,
                is_sorted::<$element>,
            ),
            method(
                "max",
                concat!("list_", $name, "_max_", $name),
                Type::$element,
                Type::$element,
                |args, work| {
                    let empty = "max called on empty list";
                    extreme::<$element>(args, Ordering::Less, empty, work)
                },
            ),
            method(
                "min",
                concat!("list_", $name, "_min_", $name),
                Type::$element,
                Type::$element,
                |args, work| {
                    let empty = "min called on empty list";
                    extreme::<$element>(args, Ordering::Greater, empty, work)
                },
            ),
        ]);)*
    };
}

fn method(
    function: &'static str,
    id: &'static str,
    element: Type,
    result: Type,
    run: StrictFunction,
) -> Overload {
    Overload::method(function, id, vec![Type::list(element)], result, run)
}

fn overloads() -> Vec<Overload> {
    let any = || Type::param("A");
    let mut all = vec![
        method("sum", "list_int_sum_int", Type::Int, Type::Int, |args, work| {
            sum::<Int>(args, Value::Int(0), work)
        }),
        method("sum", "list_uint_sum_uint", Type::Uint, Type::Uint, |args, work| {
            sum::<Uint>(args, Value::Uint(0), work)
        }),
        method("sum", "list_double_sum_double", Type::Double, Type::Double, |args, work| {
            sum::<Double>(args, Value::Double(0.0), work)
        }),
        method(
            "sum",
            "list_duration_sum_duration",
            Type::Duration,
            Type::Duration,
            |args, work| sum::<Duration>(args, Value::Duration(0), work),
        ),
        Overload::method(
            "indexOf",
            "list_a_index_of_int",
            vec![Type::list(any()), any()],
            Type::Int,
            |args, work| position(args, false, work),
        ),
        Overload::method(
            "lastIndexOf",
            "list_a_last_index_of_int",
            vec![Type::list(any()), any()],
            Type::Int,
            |args, work| position(args, true, work),
        ),
    ];
    ordered!(
        all,
        Int "int",
        Uint "uint",
        Double "double",
        Bool "bool",
        Duration "duration",
        Timestamp "timestamp",
        String "string",
        Bytes "bytes"
    );
    all
}

/// The list argument. Only the type of the first element is checked here; the others are checked
/// when they are needed.
fn list_of<'v, 'a, E: Element>(
    args: &'v [Value<'a>],
    work: &WorkBudget,
) -> Result<&'v ListValue<'a>, Error> {
    let [Value::List(list)] = args else { return Err(Error::NoSuchOverload) };
    match list.get(0, work).transpose()? {
        Some(first) if !E::is(&first) => Err(Error::NoSuchOverload),
        _ => Ok(list),
    }
}

fn is_ordered(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::Bool(_)
            | Value::Duration(_)
            | Value::Timestamp(_)
            | Value::String(_)
            | Value::Bytes(_)
    )
}

/// Values without an order count as sorted.
fn is_sorted<'a, E: Element>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let mut before: Option<Value<'a>> = None;
    for value in list_of::<E>(args, work)?.iter(work) {
        let value = value?;
        if !is_ordered(&value) {
            return Err(ELEMENT_TYPE_ERROR);
        }
        if before.is_some_and(|before| before.compare(&value) == Ok(Ordering::Greater)) {
            return Ok(Value::Bool(false));
        }
        before = Some(value);
    }
    Ok(Value::Bool(true))
}

/// The first minimum or maximum, by `order`.
fn extreme<'a, E: Element>(
    args: &[Value<'a>],
    order: Ordering,
    empty: &'static str,
    work: &WorkBudget,
) -> ValueResult<'a> {
    let mut best: Option<Value<'a>> = None;
    for value in list_of::<E>(args, work)?.iter(work) {
        let value = value?;
        if !is_ordered(&value) {
            return Err(ELEMENT_TYPE_ERROR);
        }
        if best.as_ref().is_none_or(|best| best.compare(&value) == Ok(order)) {
            best = Some(value);
        }
    }
    best.ok_or(Error::fixed(empty))
}

fn sum<'a, E: Element>(args: &[Value<'a>], zero: Value<'a>, work: &WorkBudget) -> ValueResult<'a> {
    list_of::<E>(args, work)?.iter(work).try_fold(zero, |sum, value| add(&sum, &value?))
}

fn add<'a>(one: &Value<'a>, other: &Value<'a>) -> ValueResult<'a> {
    Ok(match (one, other) {
        (Value::Int(one), Value::Int(other)) => {
            Value::Int(one.checked_add(*other).ok_or(Error::fixed("integer overflow"))?)
        }
        (Value::Uint(one), Value::Uint(other)) => {
            Value::Uint(one.checked_add(*other).ok_or(Error::fixed("unsigned integer overflow"))?)
        }
        (Value::Double(one), Value::Double(other)) => Value::Double(one + other),
        (Value::Duration(one), Value::Duration(other)) => {
            Value::Duration(one.checked_add(*other).ok_or(Error::fixed("integer overflow"))?)
        }
        (Value::Duration(duration), Value::Timestamp(time))
        | (Value::Timestamp(time), Value::Duration(duration)) => {
            Value::Timestamp(time.checked_add(*duration).ok_or(Error::fixed("timestamp overflow"))?)
        }
        _ => return Err(ELEMENT_TYPE_ERROR),
    })
}

/// An element that cannot be compared does not match.
fn position<'a>(args: &[Value<'a>], last: bool, work: &WorkBudget) -> ValueResult<'a> {
    let [Value::List(list), sought] = exactly::<2>(args)? else {
        return Err(Error::NoSuchOverload);
    };
    let mut is_sought =
        |value: ValueResult<'a>| value.and_then(|value| value.equals(sought, work)) == Ok(true);
    let mut values = list.iter(work);
    let found = if last { values.rposition(&mut is_sought) } else { values.position(is_sought) };
    Ok(Value::Int(found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)))
}
