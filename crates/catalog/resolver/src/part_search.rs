//! Step budget: searches all parts of a namespace within one number of steps.
//!
//! First each part gets the steps that parts of its size need. Then each part without result gets
//! an equal share of the remaining steps. So the time of a namespace is bounded however many hard
//! parts it has. No part fails because others are hard, and the order of parts does not matter.

use crate::solve::{Choice, Exhausted, Solver};

/// How many steps the parts share that need more than their first steps.
const BUDGET: u64 = 300_000_000;

/// How many first steps each part gets: a fixed number, and a number for each of its constraints.
const FIRST: u64 = 100_000;
const EACH: u64 = 50;

/// The result of the search of a part.
#[derive(Debug)]
pub(crate) struct PartResult {
    pub end: PartEnd,
    /// How many steps it took.
    pub steps: u64,
}

/// How the search of a part ended.
#[derive(Debug)]
pub(crate) enum PartEnd {
    /// The choices of the answer, in their order.
    Answer(Vec<Choice>),
    /// The part has no answer.
    Contradiction(UnsatCore),
    /// The search exceeded a limit: it is unknown whether the part has an answer.
    GivenUp(Exhausted),
}

/// An unsatisfiable core: indexes of constraints that contradict each other.
#[derive(Debug, Default)]
pub(crate) struct UnsatCore {
    pub reasons: Vec<usize>,
    /// Whether it is not minimal, because minimizing it took too many steps.
    pub coarse: bool,
}

/// Searches the parts of a namespace, and the unsatisfiable cores of those without answer.
pub(crate) fn search_all(solver: &mut Solver<'_, '_>, parts: &[&[u32]]) -> Vec<PartResult> {
    let mut results: Vec<PartResult> = parts
        .iter()
        .map(|part| search_one(solver, part, true, FIRST + EACH * part.len() as u64))
        .collect();
    let is_open = |result: &PartResult| match &result.end {
        PartEnd::Answer(_) => false,
        PartEnd::Contradiction(core) => core.coarse,
        PartEnd::GivenUp(_) => true,
    };
    let mut open = results.iter().filter(|result| is_open(result)).count() as u64;
    let mut steps_left = BUDGET;
    for (result, part) in results.iter_mut().zip(parts) {
        if is_open(result) {
            let first = result.steps;
            *result = search_one(solver, part, true, steps_left / open);
            steps_left = steps_left.saturating_sub(result.steps);
            open -= 1;
            result.steps += first;
        }
    }
    results
}

/// Searches the answers of parts, without unsatisfiable cores; `budget` is for all parts together.
pub(crate) fn search_within(
    solver: &mut Solver<'_, '_>,
    parts: &[&[u32]],
    budget: &mut u64,
) -> Vec<PartResult> {
    let search = |part: &&[u32]| {
        let result = search_one(solver, part, false, *budget);
        *budget = budget.saturating_sub(result.steps);
        result
    };
    parts.iter().map(search).collect()
}

fn search_one(solver: &mut Solver<'_, '_>, part: &[u32], reasons: bool, budget: u64) -> PartResult {
    let mut steps_left = budget;
    let end = match solver.solve(part, &mut steps_left) {
        Ok(Some(choices)) => PartEnd::Answer(choices),
        Ok(None) if !reasons => PartEnd::Contradiction(UnsatCore::default()),
        Ok(None) => {
            // The search for the core gets at least twice the steps of the search for the answer.
            let used = budget - steps_left;
            let budget = steps_left.max(2 * used);
            steps_left = budget;
            let (core, coarse) = solver.core(part, &mut steps_left);
            let reasons = core.into_iter().map(|at| at as usize).collect();
            return PartResult {
                end: PartEnd::Contradiction(UnsatCore { reasons, coarse }),
                steps: used + (budget - steps_left),
            };
        }
        Err(exhausted) => PartEnd::GivenUp(exhausted),
    };
    PartResult { end, steps: budget - steps_left }
}
