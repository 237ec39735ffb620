//! The search of all parts of a namespace, within one budget.
//!
//! First every part gets what parts of its size need; what is hard by itself gets an equal share of
//! the rest afterwards. So the time of a namespace is bounded however many hard parts it has, no part
//! is given up because others are hard, and the order of parts decides nothing.

use crate::solve::{Choice, Exhausted, Solver};

/// How many steps the parts of a namespace share that need more than all get.
const BUDGET: u64 = 300_000_000;

/// How many steps every part gets: so many, and so many for each constraint.
const FIRST: u64 = 100_000;
const EACH: u64 = 50;

/// What came of the search of a part.
#[derive(Debug)]
pub(crate) struct Found {
    pub end: End,
    /// How many steps it took.
    pub steps: u64,
}

/// How the search of a part ended.
#[derive(Debug)]
pub(crate) enum End {
    /// What was chosen, in the order of choices.
    Answer(Vec<Choice>),
    /// There is no answer.
    Contradiction(Core),
    /// Nobody knows.
    GivenUp(Exhausted),
}

/// Reasons that contradict each other, as indexes of constraints.
#[derive(Debug, Default)]
pub(crate) struct Core {
    pub reasons: Vec<usize>,
    /// Whether finding out which of them are needed took too many steps.
    pub coarse: bool,
}

/// Searches the parts of a namespace, and the reasons of those that have no answer.
pub(crate) fn all(solver: &mut Solver<'_, '_>, parts: &[&[u32]]) -> Vec<Found> {
    let mut found: Vec<Found> = parts
        .iter()
        .map(|part| one(solver, part, true, FIRST + EACH * part.len() as u64))
        .collect();
    let is_open = |found: &Found| match &found.end {
        End::Answer(_) => false,
        End::Contradiction(core) => core.coarse,
        End::GivenUp(_) => true,
    };
    let mut open = found.iter().filter(|found| is_open(found)).count() as u64;
    let mut left = BUDGET;
    for (result, part) in found.iter_mut().zip(parts) {
        if is_open(result) {
            let first = result.steps;
            *result = one(solver, part, true, left / open);
            left = left.saturating_sub(result.steps);
            open -= 1;
            result.steps += first;
        }
    }
    found
}

/// Searches parts for answers only, within so many steps for all of them.
pub(crate) fn within(
    solver: &mut Solver<'_, '_>,
    parts: &[&[u32]],
    budget: &mut u64,
) -> Vec<Found> {
    let search = |part: &&[u32]| {
        let found = one(solver, part, false, *budget);
        *budget = budget.saturating_sub(found.steps);
        found
    };
    parts.iter().map(search).collect()
}

fn one(solver: &mut Solver<'_, '_>, part: &[u32], reasons: bool, budget: u64) -> Found {
    let mut left = budget;
    let end = match solver.solve(part, &mut left) {
        Ok(Some(choices)) => End::Answer(choices),
        Ok(None) if !reasons => End::Contradiction(Core::default()),
        Ok(None) => {
            // Who found out that there is no answer can do so once more, with an eye on why.
            let used = budget - left;
            let budget = left.max(2 * used);
            left = budget;
            let (kept, coarse) = solver.core(part, &mut left);
            let reasons = kept.into_iter().map(|at| at as usize).collect();
            return Found {
                end: End::Contradiction(Core { reasons, coarse }),
                steps: used + (budget - left),
            };
        }
        Err(why) => End::GivenUp(why),
    };
    Found { end, steps: budget - left }
}
