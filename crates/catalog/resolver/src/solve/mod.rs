//! The search for an answer, and for the reasons why there is none.
//!
//! Choices are made breadth first: one for each variable that must be there, in the order of the
//! problem, then one for each dependency of what was chosen. A choice that holds something chosen
//! already is met for free; otherwise it falls on its favourite among the candidates that are still
//! possible. After each step everything that follows is derived. What was chosen in the end is the
//! answer: nothing that only happens to be possible is added.
//!
//! A contradiction is traced back to the choices that led to it. What it teaches is kept as a
//! constraint of its own, and the search returns to the last choice that matters; since only what
//! is impossible is ever left out, the answer is the first one in the order of choices, as if they
//! had been undone one by one.
//!
//! The search is over when it has made as many steps as it may, or has learned more than it can keep:
//! worlds that are made to be hard are given up with that as the reason, never with a wrong answer.
//! A step is a look at a constraint, or at a candidate of a list, and takes some nanoseconds.

mod core;
mod index;
mod learned;
mod search;
#[cfg(test)]
mod tests;

use crate::problem::Var;
pub(crate) use index::Index;
use search::Search;

/// Why a search was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// It took too many steps.
    Steps,
    /// It learned more than is kept.
    Memory,
}

/// A choice that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The constraint that asked for it; none for what must be there.
    pub constraint: Option<u32>,
    /// What was chosen.
    pub chosen: Var,
}

/// Finds answers of the parts of a problem, one after the other.
#[derive(Debug)]
pub(crate) struct Solver<'i, 'p> {
    search: Search<'i, 'p>,
}

impl<'i, 'p> Solver<'i, 'p> {
    pub(crate) fn new(index: &'i Index<'p>) -> Self {
        Self { search: Search::new(index) }
    }

    /// The choices that lead to the best answer of a part, in their order; none if there is no
    /// answer.
    pub(crate) fn solve(
        &mut self,
        part: &[u32],
        budget: &mut u64,
    ) -> Result<Option<Vec<Choice>>, Exhausted> {
        self.search.trace(false);
        self.search.enable(part, true);
        self.search.run(part, budget)
    }
}
