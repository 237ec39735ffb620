//! Sets of constants, for `x in ["a", "b"]`.

use crate::value::{ListValue, Value, WorkBudget};

/// Strings, numbers and truth values that something is looked for in; each kind in order.
#[derive(Debug, Default)]
pub(super) struct Set {
    strings: Vec<Box<str>>,
    ints: Vec<i128>,
    /// Those that are no whole numbers, by their bits.
    doubles: Vec<u64>,
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
                    Number::Nothing => {}
                },
                _ => return None,
            }
        }
        set.strings.sort_unstable();
        set.ints.sort_unstable();
        set.doubles.sort_unstable();
        Some(set)
    }

    /// Whether a value is equal to one of the set.
    pub(super) fn contains(&self, value: &Value<'_>) -> bool {
        let int = |int: i128| self.ints.binary_search(&int).is_ok();
        match value {
            Value::String(text) => {
                self.strings.binary_search_by(|known| (**known).cmp(text.as_str())).is_ok()
            }
            Value::Int(value) => int((*value).into()),
            Value::Uint(value) => int((*value).into()),
            Value::Bool(value) => self.bools[usize::from(*value)],
            Value::Double(double) => match Number::of(*double) {
                Number::Whole(value) => int(value),
                Number::Fraction(bits) => self.doubles.binary_search(&bits).is_ok(),
                Number::Nothing => false,
            },
            _ => false,
        }
    }
}
