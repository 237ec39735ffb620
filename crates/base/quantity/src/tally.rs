//! Sums of quantities, written with the suffixes of the summands.

use crate::canonical;
use crate::scan::{self, Family};
use crate::{ParseQuantityError, Quantity};
use std::cmp::Ordering;
use std::fmt;

/// A sum of quantities, in billionths, with the format of its text.
///
/// An amount that is too large counts as the maximum. Two tallies are equal if their amounts are equal,
/// whatever their formats.
#[derive(Clone, Copy, Debug)]
pub struct Tally {
    nano: i128,
    family: Family,
}

const UNIT: i128 = 1_000_000_000;

impl Tally {
    /// Zero, with decimal suffixes.
    pub const ZERO: Self = Self { nano: 0, family: Family::Decimal };

    /// The tally of a count.
    pub const fn count(number: u32) -> Self {
        // At most 2^32 billion.
        Self { nano: number as i128 * UNIT, family: Family::Decimal }
    }

    /// Parses a quantity.
    ///
    /// # Errors
    ///
    /// As [`Quantity::parse`].
    pub fn parse(text: &str) -> Result<Self, ParseQuantityError> {
        Quantity::parse(text)?;
        let scanned = scan::scan(text)?;
        let (family, shift, power) = scan::suffix(scanned.suffix)?;
        let limit = if scanned.negative { i128::MIN } else { i128::MAX };
        let nano = canonical::amount(&scanned, shift, power).and_then(|(mantissa, exponent)| {
            let exponent = exponent + 9;
            if mantissa == 0 {
                return Some(0);
            }
            let ten = 10_i128.checked_pow(exponent.unsigned_abs());
            if exponent >= 0 {
                return mantissa.checked_mul(ten?);
            }
            // Fractions of a billionth are rounded away from zero.
            let Some(ten) = ten else { return Some(mantissa.signum()) };
            let rest = mantissa % ten;
            Some(mantissa / ten + rest.signum())
        });
        Ok(Self { nano: nano.unwrap_or(limit), family })
    }

    /// -1, 0 or 1.
    pub const fn sign(self) -> i128 {
        self.nano.signum()
    }

    /// The sum, in the format of `self`; in that of `other` if `self` is zero.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        let family = if self.nano == 0 { other.family } else { self.family };
        Self { nano: self.nano.saturating_add(other.nano), family }
    }

    /// The difference, in the format of `self`; in that of `other` if `self` is zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        let family = if self.nano == 0 { other.family } else { self.family };
        Self { nano: self.nano.saturating_sub(other.nano), family }
    }

    /// The amount rounded to a whole number, away from zero.
    #[must_use]
    pub const fn rounded_up(self) -> Self {
        let (units, rest) = (self.nano / UNIT, self.nano % UNIT);
        Self { nano: (units + rest.signum()).saturating_mul(UNIT), family: self.family }
    }

    /// The number of units, rounded away from zero.
    pub const fn units(self) -> i128 {
        self.rounded_up().nano / UNIT
    }

    /// The number of thousandths, rounded away from zero.
    pub const fn thousandths(self) -> i128 {
        const THOUSANDTH: i128 = UNIT / 1000;
        self.nano / THOUSANDTH + (self.nano % THOUSANDTH).signum()
    }
}

/// The canonical form, as the API writes it.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&canonical::format(self.nano, -9, self.family))
    }
}

impl PartialEq for Tally {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Tally {}

impl PartialOrd for Tally {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Tally {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(text: &str) -> Tally {
        Tally::parse(text).unwrap()
    }

    #[test]
    fn sums_have_the_format_of_the_first_summand() {
        for (one, other, sum) in [
            ("500m", "500m", "1"),
            ("1Gi", "512Mi", "1536Mi"),
            ("1Gi", "1G", "2073741824"),
            ("0", "1Gi", "1Gi"),
            ("1G", "1Gi", "2073741824"),
            ("1", "1", "2"),
            ("999", "1", "1k"),
            ("1e3", "1", "1001"),
            ("0.1Ki", "0", "102400m"),
        ] {
            assert_eq!(tally(one).plus(tally(other)).to_string(), sum, "{one} + {other}");
        }
        assert_eq!(tally("2Gi").minus(tally("1Gi")).to_string(), "1Gi");
        assert_eq!(tally("1").minus(tally("2")).to_string(), "-1");
    }

    #[test]
    fn fractions_are_rounded_away_from_zero() {
        assert_eq!(tally("1500m").units(), 2);
        assert_eq!(tally("-1500m").units(), -2);
        assert_eq!(tally("1500u").thousandths(), 2);
        assert_eq!(tally("0.0000000001"), tally("1n"));
        assert_eq!(tally("1.5").rounded_up().to_string(), "2");
    }

    #[test]
    fn a_too_large_amount_counts_as_the_maximum() {
        assert!(tally("100000000000000000000000000000000E") > tally("1E"));
        let limit = tally("100000000000000000000000000000000E");
        assert_eq!(limit.plus(limit), limit);
    }

    proptest::proptest! {
        #[test]
        fn a_tally_displays_the_canonical_form(text in "[+-]?[0-9]{1,12}(\\.[0-9]{0,9})?(n|u|m||k|M|G|Ki|Mi|Gi|e[0-9])") {
            if let Ok(form) = canonical(&text) {
                proptest::prop_assert_eq!(tally(&text).to_string(), form);
            }
        }
    }
}
