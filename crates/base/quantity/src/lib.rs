//! Resource quantities (`100m`, `2Gi`, `1e3`): their values, and their canonical form.
//!
//! The rules are those of `k8s.io/apimachinery/pkg/api/resource`. Amounts are exact. Short amounts are an
//! integer and a power of ten. Which amounts are short is visible, because [`Quantity::as_integer`]
//! returns no others; so the parser follows upstream step by step.

mod canonical;
mod decimal;
mod scan;
mod tally;

pub use canonical::canonical;
use decimal::Decimal;
use scan::{Family, Scanned};
use std::cmp::Ordering;
pub use tally::Tally;

/// The text is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// The text does not have the form of a quantity.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The number is invalid.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// The number has too many digits (upstream has no such limit).
    #[error("quantity has too many digits")]
    Digits,
}

/// A quantity: an exact amount.
#[derive(Clone, Debug)]
pub struct Quantity(Amount);

#[derive(Clone, Debug)]
enum Amount {
    /// `value · 10^power`
    Small { value: i64, power: i32 },
    /// Any other amount.
    Large(Decimal),
}

/// The maximum number of digits of a short amount.
const SMALL_DIGITS: usize = 18;
/// The smallest power of ten: a billionth.
const NANO: i32 = -9;

impl Quantity {
    /// Parses a quantity.
    ///
    /// # Errors
    ///
    /// The texts are those of upstream. Like upstream, a suffix or a sign without a number is zero.
    pub fn parse(text: &str) -> Result<Self, ParseQuantityError> {
        let scanned = scan::scan(text)?;
        let (family, shift, exponent) = scan::suffix(scanned.suffix)?;
        Ok(Self(match small(&scanned, family, shift, exponent) {
            Some(small) => small,
            None => Amount::Large(large(&scanned, family, shift, exponent)?),
        }))
    }

    /// The quantity of an integer.
    pub const fn integer(value: i64) -> Self {
        Self(Amount::Small { value, power: 0 })
    }

    /// The integer, if upstream would return one: only for short amounts without a fraction in their text
    /// (not for `1000m`, nor for `9223372036854775807`, which is long).
    pub fn as_integer(&self) -> Option<i64> {
        match &self.0 {
            Amount::Small { value, power } => scale_up(*value, (*power).try_into().ok()?),
            Amount::Large(_) => None,
        }
    }

    /// The nearest floating point number.
    pub fn as_float(&self) -> f64 {
        match &self.0 {
            #[expect(clippy::cast_precision_loss, reason = "wanted: the nearest number")]
            Amount::Small { value, power } => decimal::scaled(*value as f64, *power),
            Amount::Large(amount) => amount.as_float(),
        }
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i64 {
        match &self.0 {
            Amount::Small { value, .. } => value.signum(),
            Amount::Large(amount) => amount.sign(),
        }
    }

    /// The sum; none if it has too many digits.
    #[must_use]
    pub fn add(&self, other: &Self) -> Option<Self> {
        if let (Some(one), Some(other)) = (self.small(), other.small())
            && let Some((value, power)) = add_small(one, other)
        {
            return Some(Self(Amount::Small { value, power }));
        }
        self.decimal().add(&other.decimal()).map(|sum| Self(Amount::Large(sum)))
    }

    /// The difference; none if it has too many digits.
    #[must_use]
    pub fn sub(&self, other: &Self) -> Option<Self> {
        if let (Some(one), Some((value, power))) = (self.small(), other.small())
            // Like upstream, the smallest integer is its own negation.
            && let Some((value, power)) = add_small(one, (value.wrapping_neg(), power))
        {
            return Some(Self(Amount::Small { value, power }));
        }
        let difference = self.decimal().add(&other.decimal().negated());
        difference.map(|difference| Self(Amount::Large(difference)))
    }

    const fn small(&self) -> Option<(i64, i32)> {
        match self.0 {
            Amount::Small { value, power } => Some((value, power)),
            Amount::Large(_) => None,
        }
    }

    fn decimal(&self) -> Decimal {
        match &self.0 {
            Amount::Small { value, power } => Decimal::new(*value, *power),
            Amount::Large(amount) => amount.clone(),
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (
                Amount::Small { value, power },
                Amount::Small { value: other_value, power: other_power },
            ) if power == other_power => value.cmp(other_value),
            _ => self.decimal().cmp(&other.decimal()),
        }
    }
}

/// The short form of an amount, where upstream uses it.
fn small(scanned: &Scanned<'_>, family: Family, shift: u32, exponent: i32) -> Option<Amount> {
    let (mut power, room, factor) = if family == Family::Binary {
        if !scanned.fraction.is_empty() {
            return None;
        }
        // Ten bits are about three digits.
        let taken = scanned.integer.len() + shift as usize * 3 / 10 + 1;
        (0, 15_usize.checked_sub(taken), 1_i64 << shift)
    } else {
        let taken = scanned.integer.len() + scanned.fraction.len();
        (exponent, SMALL_DIGITS.checked_sub(taken), 1)
    };
    room?;
    power = power.wrapping_sub(i32::try_from(scanned.fraction.len()).ok()?);
    if power < NANO {
        return None;
    }
    let value = scanned
        .integer
        .bytes()
        .chain(scanned.fraction.bytes())
        .fold(0_i64, |value, digit| value * 10 + i64::from(digit - b'0'));
    let value = value.checked_mul(factor)?;
    Some(Amount::Small { value: if scanned.negative { -value } else { value }, power })
}

/// The amount with all its digits: at least a billionth, and at most the greatest `i64` with a binary
/// suffix.
fn large(
    scanned: &Scanned<'_>,
    family: Family,
    shift: u32,
    exponent: i32,
) -> Result<Decimal, ParseQuantityError> {
    if !scanned.any_digit {
        return Err(ParseQuantityError::Number);
    }
    let mut amount = Decimal::from_digits(scanned.integer, scanned.fraction, exponent)
        .ok_or(ParseQuantityError::Digits)?;
    if family == Family::Binary {
        amount = amount.shifted_left(shift);
    }
    if amount.sign() != 0 {
        amount = amount.rounded_up(NANO).ok_or(ParseQuantityError::Digits)?;
    }
    if family == Family::Binary {
        amount = amount.min(Decimal::new(i64::MAX, 0));
    }
    Ok(if scanned.negative { amount.negated() } else { amount })
}

/// `value · 10^times`
fn scale_up(value: i64, times: u32) -> Option<i64> {
    if value == 0 { Some(0) } else { value.checked_mul(10_i64.checked_pow(times)?) }
}

fn add_small(one: (i64, i32), other: (i64, i32)) -> Option<(i64, i32)> {
    if other.0 == 0 {
        return Some(one);
    }
    if one.0 == 0 {
        return Some(other);
    }
    let (coarse, fine) = if one.1 >= other.1 { (one, other) } else { (other, one) };
    let apart = u32::try_from(i64::from(coarse.1) - i64::from(fine.1)).ok()?;
    Some((scale_up(coarse.0, apart)?.checked_add(fine.0)?, fine.1))
}
