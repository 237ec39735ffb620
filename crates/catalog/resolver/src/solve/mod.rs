//! SAT solver: a search with clause learning for the preferred answer of a problem, or for the
//! unsatisfiable core of a problem without answer.
//!
//! The search makes choices breadth first: one for each mandatory variable, in the order of the
//! problem, then one for each dependency of a chosen variable. A choice whose list has a chosen
//! candidate already is met for free. Any other choice takes its first candidate that is still
//! possible. After each choice the search propagates all consequences. The answer consists of the
//! chosen variables only, not of variables that happen to be possible.
//!
//! The search traces a contradiction back to the choices that led to it. It keeps the result as a
//! learned clause and returns to the last choice that matters. A learned clause excludes only
//! impossible choices. So the answer is the first one in the order of choices, as with plain
//! backtracking.
//!
//! The search ends when it exceeds its step budget, or when its learned clauses exceed their limit.
//! An input that is made to be hard fails with that reason, and never gets a wrong answer. A step is
//! the evaluation of one constraint, or of one candidate of a list, and takes some nanoseconds.

mod core;
mod index;
mod learned;
mod search;
#[cfg(test)]
mod tests;

use crate::problem::Var;
pub(crate) use index::Index;
use search::Search;

/// The limit that ended a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// The search took too many steps.
    Steps,
    /// The learned clauses exceed [`learned::MAX_LEARNED`].
    Memory,
}

/// A choice of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The dependency that required it; none for a mandatory variable.
    pub constraint: Option<u32>,
    /// The chosen variable.
    pub chosen: Var,
}

/// Finds the answers of the parts of a problem, one after the other.
#[derive(Debug)]
pub(crate) struct Solver<'i, 'p> {
    search: Search<'i, 'p>,
}

impl<'i, 'p> Solver<'i, 'p> {
    pub(crate) fn new(index: &'i Index<'p>) -> Self {
        Self { search: Search::new(index) }
    }

    /// The choices that lead to the preferred answer of a part, in their order; none if the part
    /// has no answer.
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
