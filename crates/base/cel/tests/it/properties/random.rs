//! Deterministic random numbers (`SplitMix64`).

#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which must not be zero.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() % end as u64).unwrap()
    }

    /// Returns true with a probability of `of_hundred` percent.
    pub(crate) fn percent(&mut self, of_hundred: usize) -> bool {
        self.below(100) < of_hundred
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}
