//! Constant sets for `x in ["a", "b"]`.

use crate::value::{ListValue, Value, WorkBudget};

/// A set of strings, numbers and booleans; each kind is sorted.
#[derive(Debug, Default)]
pub(super) struct ConstantSet {
    strings: Vec<Box<str>>,
    ints: Vec<i128>,
    /// Doubles that are not whole numbers, by their bits.
    doubles: Vec<u64>,
    bools: [bool; 2],
}

/// A number in a set.
enum Number {
    Whole(i128),
    Fraction(u64),
    Nan,
}

impl Number {
    fn of(double: f64) -> Self {
        // Whole numbers from here on are neither `int` nor `uint`, but their bits are comparable.
        const END: f64 = 18_446_744_073_709_551_616.0;
        if double.is_nan() {
            Self::Nan
        } else if double.fract() == 0.0 && double.abs() < END {
            #[expect(clippy::cast_possible_truncation, reason = "a whole number of few bits")]
            Self::Whole(double as i128)
        } else {
            Self::Fraction(double.to_bits())
        }
    }
}

impl ConstantSet {
    /// The set of a list's elements; none if one is neither string nor number nor boolean.
    pub(super) fn of(list: &ListValue<'_>) -> Option<Self> {
        let work = WorkBudget::unlimited();
        let mut set = Self::default();
        for value in list.iter(&work) {
            match value.ok()? {
                Value::String(text) => set.strings.push(text.as_str().into()),
                Value::Int(int) => set.ints.push(int.into()),
                Value::Uint(uint) => set.ints.push(uint.into()),
                Value::Bool(value) => set.bools[usize::from(value)] = true,
                Value::Double(double) => match Number::of(double) {
                    Number::Whole(int) => set.ints.push(int),
                    Number::Fraction(bits) => set.doubles.push(bits),
                    Number::Nan => {}
                },
                _ => return None,
            }
        }
        set.strings.sort_unstable();
        set.ints.sort_unstable();
        set.doubles.sort_unstable();
        Some(set)
    }

    /// Whether a value equals an element of the set.
    pub(super) fn contains(&self, value: &Value<'_>) -> bool {
        let int = |int: i128| self.ints.binary_search(&int).is_ok();
        match value {
            Value::String(text) => {
                self.strings.binary_search_by(|element| (**element).cmp(text.as_str())).is_ok()
            }
            Value::Int(value) => int((*value).into()),
            Value::Uint(value) => int((*value).into()),
            Value::Bool(value) => self.bools[usize::from(*value)],
            Value::Double(double) => match Number::of(*double) {
                Number::Whole(value) => int(value),
                Number::Fraction(bits) => self.doubles.binary_search(&bits).is_ok(),
                Number::Nan => false,
            },
            _ => false,
        }
    }
}
