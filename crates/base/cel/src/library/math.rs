//! Math library (cel-go's `ext.Math`, version 2): `math.greatest(1, 2)`, rounding, bits.

use super::{FunctionLibrary, Overload, StrictFunction};
use crate::syntax::ast::{Expr, ExprKind, Literal};
use crate::syntax::{Expansion, Macro, MacroError, NodeFactory};
use crate::types::Type;
use crate::value::{Error, ListValue, Value, ValueResult, WorkBudget};
use std::cmp::Ordering;

/// The macros `math.least` and `math.greatest`, and all functions.
pub static LIBRARY: FunctionLibrary =
    FunctionLibrary { name: "cel.lib.ext.math", overloads, macros: MACROS, types: Vec::new };

const MACROS: &[Macro] = &[
    Macro { name: "least", receiver: true, args: None, expand: least_macro },
    Macro { name: "greatest", receiver: true, args: None, expand: greatest_macro },
];

fn least_macro(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expansion, MacroError> {
    extreme_macro(factory, target, args, "math.least()", "math.@min")
}

fn greatest_macro(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expansion, MacroError> {
    extreme_macro(factory, target, args, "math.greatest()", "math.@max")
}

fn extreme_macro(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    name: &str,
    function: &str,
) -> Result<Expansion, MacroError> {
    let Some(Expr { kind: ExprKind::Ident(namespace), at, .. }) = &target else {
        return Ok(Expansion::Unchanged(target, args));
    };
    if &**namespace != "math" {
        return Ok(Expansion::Unchanged(target, args));
    }
    let error = |at, why: &str| Err(MacroError { at, message: format!("{name} {why}") });
    match &*args {
        [] => return error(*at, "requires at least one argument"),
        [one] => {
            let list = matches!(&one.kind, ExprKind::List { elements, .. }
                if !elements.is_empty() && elements.iter().all(may_be_number));
            if !list && !may_be_number(one) {
                return error(one.at, "invalid single argument value");
            }
        }
        many => {
            if let Some(non_numeric) = many.iter().find(|arg| !may_be_number(arg)) {
                return error(non_numeric.at, "simple literal arguments must be numeric");
            }
        }
    }
    let args = if args.len() > 2 { vec![factory.list(args)] } else { args };
    Ok(Expansion::Replacement(factory.call(function, args)))
}

/// Whether an argument may be a number, by its syntax.
fn may_be_number(arg: &Expr) -> bool {
    match &arg.kind {
        ExprKind::Literal(literal) => {
            matches!(literal, Literal::Int(_) | Literal::Uint(_) | Literal::Double(_))
        }
        ExprKind::List { .. } | ExprKind::Map(_) | ExprKind::Struct { .. } => false,
        _ => true,
    }
}

/// The overloads of `math.@min` or `math.@max`.
macro_rules! extremes {
    ($all:ident, $function:literal, $id:literal, $run:expr) => {
        $all.extend(extreme_overloads(
            $function,
            [
                concat!($id, "_double"),
                concat!($id, "_int"),
                concat!($id, "_uint"),
                concat!($id, "_double_double"),
                concat!($id, "_int_int"),
                concat!($id, "_uint_uint"),
                concat!($id, "_int_uint"),
                concat!($id, "_int_double"),
                concat!($id, "_double_int"),
                concat!($id, "_double_uint"),
                concat!($id, "_uint_int"),
                concat!($id, "_uint_double"),
                concat!($id, "_list_double"),
                concat!($id, "_list_int"),
                concat!($id, "_list_uint"),
            ],
            $run,
        ))
    };
}

fn extreme_overloads(
    function: &'static str,
    ids: [&'static str; 15],
    run: StrictFunction,
) -> Vec<Overload> {
    use Type::{Double, Dyn, Int, Uint};
    let list = Type::list;
    let params = [
        (vec![Double], Double),
        (vec![Int], Int),
        (vec![Uint], Uint),
        (vec![Double, Double], Double),
        (vec![Int, Int], Int),
        (vec![Uint, Uint], Uint),
        (vec![Int, Uint], Dyn),
        (vec![Int, Double], Dyn),
        (vec![Double, Int], Dyn),
        (vec![Double, Uint], Dyn),
        (vec![Uint, Int], Dyn),
        (vec![Uint, Double], Dyn),
        (vec![list(Double)], Double),
        (vec![list(Int)], Int),
        (vec![list(Uint)], Uint),
    ];
    let overload = |(id, (params, result))| Overload::function(function, id, params, result, run);
    ids.into_iter().zip(params).map(overload).collect()
}

fn overloads() -> Vec<Overload> {
    use Type::{Bool, Double, Int, Uint};
    let function = Overload::function;
    let double = |name, id, run: StrictFunction| function(name, id, vec![Double], Double, run);
    let predicate = |name, id, run: StrictFunction| function(name, id, vec![Double], Bool, run);
    let same = |name, id, cel_type: Type, run: StrictFunction| {
        function(name, id, vec![cel_type.clone()], cel_type, run)
    };
    let bits = |name, id, cel_type: Type, run: StrictFunction| {
        function(name, id, vec![cel_type.clone(), cel_type.clone()], cel_type, run)
    };
    let shift = |name, id, cel_type: Type, run: StrictFunction| {
        function(name, id, vec![cel_type.clone(), Int], cel_type, run)
    };
    let mut all = Vec::new();
    extremes!(all, "math.@min", "math_@min", |args, work| {
        extreme(args, Ordering::Greater, "math.@min", work)
    });
    extremes!(all, "math.@max", "math_@max", |args, work| {
        extreme(args, Ordering::Less, "math.@max", work)
    });
    all.extend([
        double("math.ceil", "math_ceil_double", |args, _| round_with(args, f64::ceil)),
        double("math.floor", "math_floor_double", |args, _| round_with(args, f64::floor)),
        double("math.round", "math_round_double", |args, _| round_with(args, f64::round)),
        double("math.trunc", "math_trunc_double", |args, _| round_with(args, f64::trunc)),
        predicate("math.isInf", "math_isInf_double", |args, _| test_with(args, f64::is_infinite)),
        predicate("math.isNaN", "math_isNaN_double", |args, _| test_with(args, f64::is_nan)),
        predicate("math.isFinite", "math_isFinite_double", |args, _| {
            test_with(args, f64::is_finite)
        }),
        same("math.abs", "math_abs_double", Double, abs),
        same("math.abs", "math_abs_int", Int, abs),
        same("math.abs", "math_abs_uint", Uint, abs),
        same("math.sign", "math_sign_double", Double, sign),
        same("math.sign", "math_sign_int", Int, sign),
        same("math.sign", "math_sign_uint", Uint, sign),
        bits("math.bitAnd", "math_bitAnd_int_int", Int, and),
        bits("math.bitAnd", "math_bitAnd_uint_uint", Uint, and),
        bits("math.bitOr", "math_bitOr_int_int", Int, or),
        bits("math.bitOr", "math_bitOr_uint_uint", Uint, or),
        bits("math.bitXor", "math_bitXor_int_int", Int, xor),
        bits("math.bitXor", "math_bitXor_uint_uint", Uint, xor),
        same("math.bitNot", "math_bitNot_int_int", Int, not),
        same("math.bitNot", "math_bitNot_uint_uint", Uint, not),
        shift("math.bitShiftLeft", "math_bitShiftLeft_int_int", Int, shift_left),
        shift("math.bitShiftLeft", "math_bitShiftLeft_uint_int", Uint, shift_left),
        shift("math.bitShiftRight", "math_bitShiftRight_int_int", Int, shift_right),
        shift("math.bitShiftRight", "math_bitShiftRight_uint_int", Uint, shift_right),
        function("math.sqrt", "math_sqrt_double", vec![Double], Double, sqrt),
        function("math.sqrt", "math_sqrt_int", vec![Int], Double, sqrt),
        function("math.sqrt", "math_sqrt_uint", vec![Uint], Double, sqrt),
    ]);
    all
}

/// The minimum or maximum of numbers, by `order`.
fn extreme<'a>(
    args: &[Value<'a>],
    order: Ordering,
    name: &str,
    work: &WorkBudget,
) -> ValueResult<'a> {
    match args {
        [Value::List(list)] => extreme_of_list(list, order, name, work),
        [one] if is_number(one) => Ok(one.clone()),
        [one, other] if is_number(one) && is_number(other) => {
            more_extreme(one, other, order, name, work)
        }
        _ => Err(Error::NoSuchOverload),
    }
}

fn extreme_of_list<'a>(
    list: &ListValue<'a>,
    order: Ordering,
    name: &str,
    work: &WorkBudget,
) -> ValueResult<'a> {
    let mut values = list.iter(work);
    let Some(first) = values.next() else {
        return Err(Error::text(format!("{name}(list) argument must not be empty"), work));
    };
    let other = || Error::text(format!("no such overload: {name}"), work);
    let mut best = first?;
    if !is_number(&best) {
        return Err(Error::NoSuchOverload);
    }
    for value in values {
        let value = value?;
        if !is_number(&value) {
            return Err(other());
        }
        best = more_extreme(&best, &value, order, name, work).map_err(|_| other())?;
    }
    Ok(best)
}

fn is_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

fn more_extreme<'a>(
    one: &Value<'a>,
    other: &Value<'a>,
    order: Ordering,
    name: &str,
    work: &WorkBudget,
) -> ValueResult<'a> {
    match one.compare(other) {
        Ok(found) if found == order => Ok(other.clone()),
        Ok(_) => Ok(one.clone()),
        Err(why) => Err(Error::text(format!("{why}: {name}"), work)),
    }
}

fn round_with<'a>(args: &[Value<'a>], round: fn(f64) -> f64) -> ValueResult<'a> {
    match args {
        [Value::Double(number)] => Ok(Value::Double(round(*number))),
        _ => Err(Error::NoSuchOverload),
    }
}

fn test_with<'a>(args: &[Value<'a>], test: fn(f64) -> bool) -> ValueResult<'a> {
    match args {
        [Value::Double(number)] => Ok(Value::Bool(test(*number))),
        _ => Err(Error::NoSuchOverload),
    }
}

fn abs<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    match args {
        [Value::Double(number)] => Ok(Value::Double(number.abs())),
        [Value::Int(number)] => {
            number.checked_abs().map(Value::Int).ok_or(Error::fixed("integer overflow"))
        }
        [Value::Uint(number)] => Ok(Value::Uint(*number)),
        _ => Err(Error::NoSuchOverload),
    }
}

fn sign<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    match args {
        [Value::Double(number)] if number.is_nan() => Ok(Value::Double(*number)),
        [Value::Double(number)] if *number == 0.0 => Ok(Value::Double(0.0)),
        [Value::Double(number)] => Ok(Value::Double(number.signum())),
        [Value::Int(number)] => Ok(Value::Int(number.signum())),
        [Value::Uint(number)] => Ok(Value::Uint((*number).min(1))),
        _ => Err(Error::NoSuchOverload),
    }
}

fn and<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    match args {
        [Value::Int(one), Value::Int(other)] => Ok(Value::Int(one & other)),
        [Value::Uint(one), Value::Uint(other)] => Ok(Value::Uint(one & other)),
        _ => Err(Error::NoSuchOverload),
    }
}

fn or<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    match args {
        [Value::Int(one), Value::Int(other)] => Ok(Value::Int(one | other)),
        [Value::Uint(one), Value::Uint(other)] => Ok(Value::Uint(one | other)),
        _ => Err(Error::NoSuchOverload),
    }
}

fn xor<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    match args {
        [Value::Int(one), Value::Int(other)] => Ok(Value::Int(one ^ other)),
        [Value::Uint(one), Value::Uint(other)] => Ok(Value::Uint(one ^ other)),
        _ => Err(Error::NoSuchOverload),
    }
}

fn not<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    match args {
        [Value::Int(number)] => Ok(Value::Int(!number)),
        [Value::Uint(number)] => Ok(Value::Uint(!number)),
        _ => Err(Error::NoSuchOverload),
    }
}

/// The number of bits to shift; beyond 64 bits the result is zero.
fn shift_bits(offset: i64, name: &str, work: &WorkBudget) -> Result<u32, Error> {
    if offset < 0 {
        return Err(Error::text(format!("{name}() negative offset: {offset}"), work));
    }
    Ok(u32::try_from(offset).unwrap_or(u32::MAX))
}

fn shift_left<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    const NAME: &str = "math.bitShiftLeft";
    match args {
        [Value::Int(number), Value::Int(offset)] => {
            Ok(Value::Int(number.checked_shl(shift_bits(*offset, NAME, work)?).unwrap_or(0)))
        }
        [Value::Uint(number), Value::Int(offset)] => {
            Ok(Value::Uint(number.checked_shl(shift_bits(*offset, NAME, work)?).unwrap_or(0)))
        }
        _ => Err(Error::NoSuchOverload),
    }
}

/// The shift is logical, also for negative numbers.
fn shift_right<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    const NAME: &str = "math.bitShiftRight";
    match args {
        [Value::Int(number), Value::Int(offset)] => {
            let shifted =
                number.cast_unsigned().checked_shr(shift_bits(*offset, NAME, work)?).unwrap_or(0);
            Ok(Value::Int(shifted.cast_signed()))
        }
        [Value::Uint(number), Value::Int(offset)] => {
            Ok(Value::Uint(number.checked_shr(shift_bits(*offset, NAME, work)?).unwrap_or(0)))
        }
        _ => Err(Error::NoSuchOverload),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the root is a double")]
fn sqrt<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let number = match args {
        [Value::Double(number)] => *number,
        [Value::Int(number)] => *number as f64,
        [Value::Uint(number)] => *number as f64,
        _ => return Err(Error::NoSuchOverload),
    };
    Ok(Value::Double(number.sqrt()))
}
