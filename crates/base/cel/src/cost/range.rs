//! Ranges of costs and sizes, with saturating arithmetic.

/// The range of a cost or size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostRange {
    /// The minimum.
    pub min: u64,
    /// The maximum; [`u64::MAX`] if unlimited.
    pub max: u64,
}

/// Arithmetic saturates at the greatest number, which means "unlimited".
impl CostRange {
    /// An unknown cost or size.
    pub const UNKNOWN: Self = Self { min: 0, max: u64::MAX };
    /// Zero.
    pub const ZERO: Self = Self::fixed(0);

    /// A known cost or size.
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

    /// The union of both ranges.
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
