//! The estimated size of an expression, without a compilation.

/// The estimated size of an expression: the sum of its parts, multiplied by repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Instructions, as Go counts them: a letter, class or operator is one, a non-capturing group
    /// is none. A Unicode class is three, because its letters have several bytes. A match may
    /// execute all instructions for each byte of a text.
    pub instructions: usize,
    /// Bytes of the compiled expression, and of the compilation.
    pub bytes: usize,
}

impl Size {
    pub(super) const NONE: Self = Self::new(0, 0);
    /// A letter, or an ASCII class.
    pub(super) const LETTER: Self = Self::new(1, 40);
    /// An alternative, or an optional part.
    pub(super) const OPERATOR: Self = Self::new(1, 40);
    /// A group or flags, which produce no instructions.
    pub(super) const GROUP: Self = Self::new(0, 40);
    /// A negated class or `.`: letters of one to four bytes.
    pub(super) const BROAD: Self = Self::new(1, 640);
    /// A range in a class.
    pub(super) const RANGE: Self = Self::new(0, 8);
    pub(super) const WIDE_RANGE: Self = Self::new(0, 320);

    const fn new(instructions: usize, bytes: usize) -> Self {
        Self { instructions, bytes }
    }

    /// A Unicode class of a compiled size in bytes.
    pub(super) const fn class(bytes: usize) -> Self {
        Self::new(3, bytes)
    }

    /// The sum of two sizes.
    pub(super) const fn and(self, other: Self) -> Self {
        let instructions = self.instructions.saturating_add(other.instructions);
        Self::new(instructions, self.bytes.saturating_add(other.bytes))
    }

    /// The size of `count` copies.
    pub(super) fn times(self, count: u64) -> Self {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Self::new(self.instructions.saturating_mul(count), self.bytes.saturating_mul(count))
    }

    /// The size that it adds to a class.
    pub(super) const fn inside(self) -> Self {
        Self::new(0, self.bytes)
    }

    /// The size without case: a letter has up to four forms, such as the Kelvin sign for `k`.
    pub(super) const fn folded(self) -> Self {
        Self::new(self.instructions, self.bytes.saturating_mul(4))
    }
}
