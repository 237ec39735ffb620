//! Amounts: `quantity("100Mi").add(quantity("2k")).isLessThan(quantity("1Gi"))`.

use crate::library::args::{exactly, int, opaque, same, str, wrap};
use crate::library::{FunctionLibrary, Overload};
use crate::types::Type;
use crate::value::{Error, Opaque, Value, ValueResult, WorkBudget};
use mainstay_quantity::Quantity;
use std::any::Any;
use std::cmp::Ordering;

/// `quantity`, `isQuantity`, and the methods of amounts.
pub static LIBRARY: FunctionLibrary =
    FunctionLibrary { name: "kubernetes.quantity", overloads, macros: &[], types: Vec::new };

/// The name of the type.
const NAME: &str = "kubernetes.Quantity";

/// An amount as a value.
#[derive(Debug)]
struct Amount {
    value: Quantity,
    /// Whether it was computed. Upstream cannot compare anything *with* such an amount by `==`,
    /// only such an amount with another: rules that do must fail here, too.
    computed: bool,
}

impl Opaque for Amount {
    fn cel_type(&self) -> Type {
        Type::object(NAME)
    }

    fn equals(&self, other: &Value<'_>) -> Result<bool, Error> {
        if opaque::<Self>(other)?.computed {
            return Err(Error::NoSuchOverload);
        }
        same(other, |other: &Self| self.value == other.value)
    }

    fn go_type(&self) -> Option<&'static str> {
        self.computed.then_some("*cel.Quantity")
    }

    fn go_inside(&self) -> Option<String> {
        // Upstream has the suffix that it was written with; here that is not kept.
        Some(match self.value.as_integer() {
            Some(integer) => format!("(*resource.Quantity){integer}"),
            None => format!("(*resource.Quantity){}", self.value.as_float()),
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn overloads() -> Vec<Overload> {
    let amount = || Type::object(NAME);
    let two = || vec![amount(), amount()];
    let with_int = || vec![amount(), Type::Int];
    vec![
        Overload::function("quantity", "string_to_quantity", vec![Type::String], amount(), parse),
        Overload::function("isQuantity", "is_quantity_string", vec![Type::String], Type::Bool, is),
        Overload::function("sign", "quantity_sign", vec![amount()], Type::Int, sign),
        Overload::method(
            "isGreaterThan",
            "quantity_is_greater_than",
            two(),
            Type::Bool,
            |args, _| Ok(Value::Bool(compare(args)?.is_gt())),
        ),
        Overload::method("isLessThan", "quantity_is_less_than", two(), Type::Bool, |args, _| {
            Ok(Value::Bool(compare(args)?.is_lt()))
        }),
        Overload::method("compareTo", "quantity_compare_to", two(), Type::Int, |args, _| {
            Ok(Value::Int(compare(args)? as i64))
        }),
        Overload::method(
            "asApproximateFloat",
            "quantity_get_float",
            vec![amount()],
            Type::Double,
            |args, _| Ok(Value::Double(one(args)?.as_float())),
        ),
        Overload::method("asInteger", "quantity_get_int", vec![amount()], Type::Int, as_integer),
        Overload::method(
            "isInteger",
            "quantity_is_integer",
            vec![amount()],
            Type::Bool,
            |args, _| Ok(Value::Bool(one(args)?.as_integer().is_some())),
        ),
        Overload::method("add", "quantity_add", two(), amount(), |args, _| {
            let [one, other] = amounts(args)?;
            computed(one.add(other))
        }),
        Overload::method("add", "quantity_add_int", with_int(), amount(), |args, _| {
            let (one, other) = amount_and_int(args)?;
            computed(one.add(&other))
        }),
        Overload::method("sub", "quantity_sub", two(), amount(), |args, _| {
            let [one, other] = amounts(args)?;
            computed(one.sub(other))
        }),
        Overload::method("sub", "quantity_sub_int", with_int(), amount(), |args, _| {
            let (one, other) = amount_and_int(args)?;
            computed(one.sub(&other))
        }),
    ]
}

fn one<'v>(args: &'v [Value<'_>]) -> Result<&'v Quantity, Error> {
    let [amount] = exactly(args)?;
    opaque(amount).map(|amount: &Amount| &amount.value)
}

fn amounts<'v>(args: &'v [Value<'_>]) -> Result<[&'v Quantity; 2], Error> {
    let [one, other] = exactly(args)?;
    Ok([&opaque::<Amount>(one)?.value, &opaque::<Amount>(other)?.value])
}

fn amount_and_int<'v>(args: &'v [Value<'_>]) -> Result<(&'v Quantity, Quantity), Error> {
    let [amount, number] = exactly(args)?;
    Ok((&opaque::<Amount>(amount)?.value, Quantity::integer(int(number)?)))
}

fn parse<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [written] = exactly(args)?;
    match Quantity::parse(str(written)?) {
        Ok(value) => Ok(wrap(Amount { value, computed: false })),
        Err(why) => Err(Error::text(why.to_string(), work)),
    }
}

fn is<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [written] = exactly(args)?;
    Ok(Value::Bool(Quantity::parse(str(written)?).is_ok()))
}

fn sign<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    Ok(Value::Int(one(args)?.sign()))
}

fn as_integer<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    match one(args)?.as_integer() {
        Some(number) => Ok(Value::Int(number)),
        None => Err(Error::fixed("cannot convert value to integer")),
    }
}

fn compare(args: &[Value<'_>]) -> Result<Ordering, Error> {
    let [one, other] = amounts(args)?;
    Ok(one.cmp(other))
}

fn computed<'a>(value: Option<Quantity>) -> ValueResult<'a> {
    match value {
        Some(value) => Ok(wrap(Amount { value, computed: true })),
        None => Err(Error::fixed("quantity has too many digits")),
    }
}
