//! How large an expression is, known without compiling it.

/// About how large an expression is: what its parts have, repetitions multiplied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Instructions, as Go counts them: a letter, a class or an operator is one, and a group that
    /// captures nothing is none. Only a class of Unicode's is three, because its letters have
    /// several bytes. All of them may be at work on each byte of a text.
    pub instructions: usize,
    /// Bytes that it takes when compiled, and what it takes to get there.
    pub bytes: usize,
}

impl Size {
    pub(super) const NONE: Self = Self::new(0, 0);
    /// A letter, or a class of ASCII.
    pub(super) const LETTER: Self = Self::new(1, 40);
    /// An alternative, or something that may be there or not.
    pub(super) const OPERATOR: Self = Self::new(1, 40);
    /// A group or flags, which are only read.
    pub(super) const GROUP: Self = Self::new(0, 40);
    /// Whatever is not this or that: letters of one to four bytes.
    pub(super) const BROAD: Self = Self::new(1, 640);
    /// What a range adds to a class.
    pub(super) const RANGE: Self = Self::new(0, 8);
    pub(super) const WIDE_RANGE: Self = Self::new(0, 320);

    const fn new(instructions: usize, bytes: usize) -> Self {
        Self { instructions, bytes }
    }

    /// A class of Unicode's that takes so many bytes.
    pub(super) const fn class(bytes: usize) -> Self {
        Self::new(3, bytes)
    }

    /// Both together.
    pub(super) const fn and(self, other: Self) -> Self {
        let instructions = self.instructions.saturating_add(other.instructions);
        Self::new(instructions, self.bytes.saturating_add(other.bytes))
    }

    /// So many of them.
    pub(super) fn times(self, count: u64) -> Self {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Self::new(self.instructions.saturating_mul(count), self.bytes.saturating_mul(count))
    }

    /// What it adds to a class.
    pub(super) const fn inside(self) -> Self {
        Self::new(0, self.bytes)
    }

    /// The same in both cases: a letter has up to four, the Kelvin sign is one of `k`.
    pub(super) const fn folded(self) -> Self {
        Self::new(self.instructions, self.bytes.saturating_mul(4))
    }
}
