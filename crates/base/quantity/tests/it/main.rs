//! Tests of the values of quantities.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use mainstay_quantity::{ParseQuantityError, Quantity};
use proptest::prelude::*;
use std::cmp::Ordering;

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

#[test]
fn quantities_compare_by_value_whatever_their_suffix() {
    for (one, other, order) in [
        ("200M", "0.2G", Ordering::Equal),
        ("50M", "50Mi", Ordering::Less),
        ("1e3", "1k", Ordering::Equal),
        ("0", "-0", Ordering::Equal),
        ("-1", "1m", Ordering::Less),
        ("1n", "0.0000000001", Ordering::Equal),
        ("100000000000000000000E", "1e300", Ordering::Less),
        ("1e300", "1e299", Ordering::Greater),
        ("-1e300", "-1e299", Ordering::Less),
        // With a binary suffix, the maximum is the greatest i64.
        ("100Ei", "9223372036854775807", Ordering::Equal),
    ] {
        assert_eq!(quantity(one).cmp(&quantity(other)), order, "{one} {other}");
        assert_eq!(quantity(other).cmp(&quantity(one)), order.reverse(), "{other} {one}");
    }
}

#[test]
fn only_short_amounts_without_a_fraction_are_integers() {
    for (text, integer) in [
        ("1", Some(1)),
        ("-2k", Some(-2000)),
        ("1Mi", Some(1 << 20)),
        ("5e3", Some(5000)),
        ("1000m", None),
        ("1.0", None),
        ("9223372036854775807", None),
        ("99E", None),
        ("9E", Some(9_000_000_000_000_000_000)),
    ] {
        assert_eq!(quantity(text).as_integer(), integer, "{text}");
    }
}

#[test]
fn sums_and_differences_are_exact() {
    for (one, other, sum, difference) in [
        ("50k", "20k", "70k", "30k"),
        ("1", "1n", "1.000000001", "0.999999999"),
        ("9223372036854775807", "1", "9223372036854775808", "9223372036854775806"),
        ("-1", "1", "0", "-2"),
        ("1e30", "1", "1000000000000000000000000000001", "999999999999999999999999999999"),
    ] {
        let (one, other) = (quantity(one), quantity(other));
        assert_eq!(one.add(&other).unwrap(), quantity(sum));
        assert_eq!(one.sub(&other).unwrap(), quantity(difference));
    }
    // A sum that needs millions of digits is not computed.
    assert!(quantity("1e2000000").add(&quantity("1")).is_none());
}

#[test]
fn each_kind_of_invalid_quantity_has_its_own_error() {
    for (text, why) in [
        ("", ParseQuantityError::Format),
        ("1 Gi", ParseQuantityError::Format),
        ("1mi", ParseQuantityError::Suffix),
        ("e-10", ParseQuantityError::Number),
        ("1.00000000000000000000e2000000", ParseQuantityError::Digits),
    ] {
        assert_eq!(Quantity::parse(text).unwrap_err(), why, "{text}");
    }
}

proptest! {
    #[test]
    fn arithmetic_agrees_with_that_of_integers(one in -1_000_000_000_000_i64..1_000_000_000_000, other: i32) {
        let (left, right) = (quantity(&one.to_string()), quantity(&other.to_string()));
        let number = |value: i64| quantity(&value.to_string());
        prop_assert_eq!(left.add(&right).unwrap(), number(one + i64::from(other)));
        prop_assert_eq!(left.sub(&right).unwrap(), number(one - i64::from(other)));
        prop_assert_eq!(left.cmp(&right), one.cmp(&i64::from(other)));
        prop_assert_eq!(left.sign(), one.signum());
        #[expect(clippy::cast_precision_loss, reason = "it fits")]
        let float = one as f64;
        prop_assert_eq!(left.as_float().to_bits(), float.to_bits());
    }

    #[test]
    fn subtraction_reverts_addition(
        one in "[+-]?[0-9]{1,30}(\\.[0-9]{0,9})?(n|m|k|E|Ki|Ei|e-?[0-9]{1,2})?",
        other in "[+-]?[0-9]{1,30}(\\.[0-9]{0,9})?(n|m|k|E|Ki|Ei|e-?[0-9]{1,2})?",
    ) {
        let (one, other) = (quantity(&one), quantity(&other));
        prop_assert_eq!(one.add(&other).unwrap().sub(&other).unwrap(), one);
    }

    #[test]
    fn no_text_causes_a_panic(text in "\\PC{0,20}", like in "[+-]?[0-9.]{0,9}[eEinumkKMGTP]{0,3}[+-]?[0-9]{0,10}") {
        for text in [text, like] {
            if let Ok(quantity) = Quantity::parse(&text) {
                let _ = (quantity.as_float(), quantity.as_integer(), quantity.sign());
            }
        }
    }
}
