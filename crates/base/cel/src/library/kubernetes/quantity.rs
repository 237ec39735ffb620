//! Quantity library: `quantity("100Mi").add(quantity("2k")).isLessThan(quantity("1Gi"))`.

use crate::library::args::{compare_opaque, exactly, int, opaque, str, wrap};
use crate::library::{FunctionLibrary, Overload};
use crate::types::Type;
use crate::value::{Error, Opaque, Value, ValueResult, WorkBudget};
use mainstay_quantity::Quantity;
use std::any::Any;
use std::cmp::Ordering;

/// `quantity`, `isQuantity`, and the methods of quantities.
pub static LIBRARY: FunctionLibrary =
    FunctionLibrary { name: "kubernetes.quantity", overloads, macros: &[], types: Vec::new };

/// The name of the type.
const NAME: &str = "kubernetes.Quantity";

/// A quantity as a value.
#[derive(Debug)]
struct QuantityValue {
    value: Quantity,
    /// Whether it was computed. In upstream `==` fails if its right side is a computed quantity, so
    /// Mainstay fails too.
    computed: bool,
}

impl Opaque for QuantityValue {
    fn cel_type(&self) -> Type {
        Type::object(NAME)
    }

    fn equals(&self, other: &Value<'_>) -> Result<bool, Error> {
        if opaque::<Self>(other)?.computed {
            return Err(Error::NoSuchOverload);
        }
        compare_opaque(other, |other: &Self| self.value == other.value)
    }

    fn go_type(&self) -> Option<&'static str> {
        self.computed.then_some("*cel.Quantity")
    }

    fn go_inside(&self) -> Option<String> {
        // Upstream prints the original suffix, which Mainstay does not keep.
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
    let quantity_type = || Type::object(NAME);
    let two = || vec![quantity_type(), quantity_type()];
    let with_int = || vec![quantity_type(), Type::Int];
    vec![
        Overload::function(
            "quantity",
            "string_to_quantity",
            vec![Type::String],
            quantity_type(),
            parse_quantity,
        ),
        Overload::function(
            "isQuantity",
            "is_quantity_string",
            vec![Type::String],
            Type::Bool,
            is_quantity,
        ),
        Overload::function("sign", "quantity_sign", vec![quantity_type()], Type::Int, sign),
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
            vec![quantity_type()],
            Type::Double,
            |args, _| Ok(Value::Double(one_quantity(args)?.as_float())),
        ),
        Overload::method(
            "asInteger",
            "quantity_get_int",
            vec![quantity_type()],
            Type::Int,
            as_integer,
        ),
        Overload::method(
            "isInteger",
            "quantity_is_integer",
            vec![quantity_type()],
            Type::Bool,
            |args, _| Ok(Value::Bool(one_quantity(args)?.as_integer().is_some())),
        ),
        Overload::method("add", "quantity_add", two(), quantity_type(), |args, _| {
            let [one, other] = two_quantities(args)?;
            computed_quantity(one.add(other))
        }),
        Overload::method("add", "quantity_add_int", with_int(), quantity_type(), |args, _| {
            let (one, other) = quantity_and_int(args)?;
            computed_quantity(one.add(&other))
        }),
        Overload::method("sub", "quantity_sub", two(), quantity_type(), |args, _| {
            let [one, other] = two_quantities(args)?;
            computed_quantity(one.sub(other))
        }),
        Overload::method("sub", "quantity_sub_int", with_int(), quantity_type(), |args, _| {
            let (one, other) = quantity_and_int(args)?;
            computed_quantity(one.sub(&other))
        }),
    ]
}

fn one_quantity<'v>(args: &'v [Value<'_>]) -> Result<&'v Quantity, Error> {
    let [quantity] = exactly(args)?;
    opaque(quantity).map(|quantity: &QuantityValue| &quantity.value)
}

fn two_quantities<'v>(args: &'v [Value<'_>]) -> Result<[&'v Quantity; 2], Error> {
    let [one, other] = exactly(args)?;
    Ok([&opaque::<QuantityValue>(one)?.value, &opaque::<QuantityValue>(other)?.value])
}

fn quantity_and_int<'v>(args: &'v [Value<'_>]) -> Result<(&'v Quantity, Quantity), Error> {
    let [quantity, number] = exactly(args)?;
    Ok((&opaque::<QuantityValue>(quantity)?.value, Quantity::integer(int(number)?)))
}

fn parse_quantity<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [text] = exactly(args)?;
    match Quantity::parse(str(text)?) {
        Ok(value) => Ok(wrap(QuantityValue { value, computed: false })),
        Err(why) => Err(Error::text(why.to_string(), work)),
    }
}

fn is_quantity<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [text] = exactly(args)?;
    Ok(Value::Bool(Quantity::parse(str(text)?).is_ok()))
}

fn sign<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    Ok(Value::Int(one_quantity(args)?.sign()))
}

fn as_integer<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    match one_quantity(args)?.as_integer() {
        Some(number) => Ok(Value::Int(number)),
        None => Err(Error::fixed("cannot convert value to integer")),
    }
}

fn compare(args: &[Value<'_>]) -> Result<Ordering, Error> {
    let [one, other] = two_quantities(args)?;
    Ok(one.cmp(other))
}

fn computed_quantity<'a>(value: Option<Quantity>) -> ValueResult<'a> {
    match value {
        Some(value) => Ok(wrap(QuantityValue { value, computed: true })),
        None => Err(Error::fixed("quantity has too many digits")),
    }
}
