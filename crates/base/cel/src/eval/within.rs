//! Sets of constants, for `x in ["a", "b"]`.

use crate::value::{List, Value};
use std::collections::HashSet;

/// Strings, numbers and truth values that something is looked for in.
#[derive(Debug, Default)]
pub(super) struct Set {
    strings: HashSet<Box<str>>,
    ints: HashSet<i128>,
    /// Those that are no whole numbers, by their bits.
    doubles: HashSet<u64>,
    bools: [bool; 2],
}

/// A number as a set has it.
enum Number {
    Whole(i128),
    Fraction(u64),
    Nothing,
}

impl Number {
    fn of(double: f64) -> Self {
        // Whole numbers beyond this are no `int` and no `uint`, but equal to themselves as bits.
        const END: f64 = 18_446_744_073_709_551_616.0;
        if double.is_nan() {
            Self::Nothing
        } else if double.fract() == 0.0 && double.abs() < END {
            #[expect(clippy::cast_possible_truncation, reason = "a whole number of few bits")]
            Self::Whole(double as i128)
        } else {
            Self::Fraction(double.to_bits())
        }
    }
}

impl Set {
    /// The set of the elements of a list; none if one is neither string nor number nor truth
    /// value, which is not looked for in this way.
    pub(super) fn of(list: &List<'_>) -> Option<Self> {
        let mut set = Self::default();
        for value in list.iter() {
            match value.ok()? {
                Value::String(text) => {
                    set.strings.insert(text.as_str().into());
                }
                Value::Int(int) => {
                    set.ints.insert(int.into());
                }
                Value::Uint(uint) => {
                    set.ints.insert(uint.into());
                }
                Value::Bool(value) => set.bools[usize::from(value)] = true,
                Value::Double(double) => match Number::of(double) {
                    Number::Whole(int) => {
                        set.ints.insert(int);
                    }
                    Number::Fraction(bits) => {
                        set.doubles.insert(bits);
                    }
                    Number::Nothing => {}
                },
                _ => return None,
            }
        }
        Some(set)
    }

    /// Whether a value is equal to one of the set.
    pub(super) fn contains(&self, value: &Value<'_>) -> bool {
        match value {
            Value::String(text) => self.strings.contains(text.as_str()),
            Value::Int(int) => self.ints.contains(&i128::from(*int)),
            Value::Uint(uint) => self.ints.contains(&i128::from(*uint)),
            Value::Bool(value) => self.bools[usize::from(*value)],
            Value::Double(double) => match Number::of(*double) {
                Number::Whole(int) => self.ints.contains(&int),
                Number::Fraction(bits) => self.doubles.contains(&bits),
                Number::Nothing => false,
            },
            _ => false,
        }
    }
}
