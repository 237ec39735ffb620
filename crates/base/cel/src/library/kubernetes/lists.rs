//! Lists of values that have an order or a sum: `self.ports.sum()`, `self.names.isSorted()`.

use crate::library::args::exactly;
use crate::library::{FunctionLibrary, Overload, StrictFunction};
use crate::types::Type;
use crate::value::{Error, ListValue, Value, ValueResult, WorkBudget};
use std::cmp::Ordering;

/// `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`.
pub static LIBRARY: FunctionLibrary =
    FunctionLibrary { name: "kubernetes.lists", overloads, macros: &[], types: Vec::new };

/// An error of elements, not of the call.
const MIXED: Error = Error::fixed("no such overload");

/// A type of elements.
trait Element {
    /// Whether a value has it.
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

/// The overloads for one type of elements: how upstream names it, and its type.
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

/// A list whose elements have a type, as far as the first tells: the others are not looked at
/// before they are needed.
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

/// Values that have no order between them are taken for sorted.
fn is_sorted<'a, E: Element>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let mut before: Option<Value<'a>> = None;
    for value in list_of::<E>(args, work)?.iter(work) {
        let value = value?;
        if !is_ordered(&value) {
            return Err(MIXED);
        }
        if before.is_some_and(|before| before.compare(&value) == Ok(Ordering::Greater)) {
            return Ok(Value::Bool(false));
        }
        before = Some(value);
    }
    Ok(Value::Bool(true))
}

/// The first of the elements that no other passes by `order`.
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
            return Err(MIXED);
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
        _ => return Err(MIXED),
    })
}

/// What cannot be compared is not the element that is looked for.
fn position<'a>(args: &[Value<'a>], last: bool, work: &WorkBudget) -> ValueResult<'a> {
    let [Value::List(list), wanted] = exactly::<2>(args)? else {
        return Err(Error::NoSuchOverload);
    };
    let mut is_it =
        |value: ValueResult<'a>| value.and_then(|value| value.equals(wanted, work)) == Ok(true);
    let mut values = list.iter(work);
    let found = if last { values.rposition(&mut is_it) } else { values.position(is_it) };
    Ok(Value::Int(found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)))
}
