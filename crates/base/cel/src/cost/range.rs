//! Ranges of costs and sizes, and computing with them without overflow.

/// A cost, or a size, that is known only in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostRange {
    /// The least.
    pub min: u64,
    /// The most; [`u64::MAX`] if nothing bounds it.
    pub max: u64,
}

/// Computing stops at the greatest number, which stands for "unbounded".
impl CostRange {
    /// What is not known at all.
    pub const UNKNOWN: Self = Self { min: 0, max: u64::MAX };
    /// Nothing.
    pub const ZERO: Self = Self::fixed(0);

    /// What is known.
    pub const fn fixed(value: u64) -> Self {
        Self { min: value, max: value }
    }

    /// The sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// The product.
    #[must_use]
    pub const fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// The product with a factor, rounded up.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self { min: scale(self.min, factor), max: scale(self.max, factor) }
    }

    /// What covers both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// The product, rounded up.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as cel-go computes; the cast stops at the greatest number"
)]
pub(super) fn scale(value: u64, factor: f64) -> u64 {
    (value as f64 * factor).ceil() as u64
}
