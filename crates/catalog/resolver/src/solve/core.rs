//! Unsatisfiable core: an irreducible set of constraints that contradict each other.
//!
//! The solver minimizes the constraints that the search found to contradict each other. It removes
//! a constraint if the others still have no answer. If they have an answer, the constraint is
//! needed. So is every other constraint that alone fails after a change of one variable of that
//! answer (recursive model rotation, after Belov and Marques-Silva). Of a thousand candidates that
//! are rejected for like reasons, only the first one needs a search.

use super::search::spend;
use super::{Choice, Exhausted, Index, Solver};
use crate::problem::{Rule, Var};
use rustc_hash::FxHashSet;

impl Solver<'_, '_> {
    /// The unsatisfiable core of a part without answer, in the order of the constraints. The flag
    /// is true if the budget ended before the core was minimal.
    pub(crate) fn core(&mut self, part: &[u32], budget: &mut u64) -> (Vec<u32>, bool) {
        let mut core = part.to_vec();
        let coarse = self.minimize(part, &mut core, budget).is_err();
        (core, coarse)
    }

    fn minimize(
        &mut self,
        part: &[u32],
        core: &mut Vec<u32>,
        budget: &mut u64,
    ) -> Result<(), Exhausted> {
        // Usually the last search was about this part, and learned no clause without tracing.
        let known = self.search.has_failed(part);
        self.search.trace(true);
        self.search.enable(part, true);
        if known || self.search.run(part, budget)?.is_none() {
            *core = self.search.conflicting_constraints();
        }
        self.search.enable(part, false);
        self.search.enable(core, true);
        let mut needed = FxHashSet::default();
        // Remove the constraints one by one, and with each also those that the proof did not use.
        let mut at = 0;
        while let Some(&candidate) = core.get(at) {
            if needed.contains(&candidate) {
                at += 1;
                continue;
            }
            self.search.enable(&[candidate], false);
            let without: Vec<u32> =
                core.iter().copied().filter(|constraint| *constraint != candidate).collect();
            if let Some(answer) = self.search.run(&without, budget)? {
                self.search.enable(&[candidate], true);
                let enabled = &self.search.enabled;
                Rotation::new(self.search.index, enabled, &answer).rotate(
                    candidate,
                    &mut needed,
                    budget,
                )?;
                at += 1;
            } else {
                let used = self.search.conflicting_constraints();
                self.search.enable(core, false);
                self.search.enable(&used, true);
                // The constraints before the candidate are needed.
                at = used.iter().filter(|constraint| **constraint < candidate).count();
                *core = used;
            }
        }
        Ok(())
    }
}

/// How many variables a model rotation flips at most.
const MAX_FLIPS: usize = 4;

/// Model rotation: an answer to all constraints but one, whose variables are flipped one by one to
/// find other constraints that alone fail.
struct Rotation<'s, 'p> {
    index: &'s Index<'p>,
    enabled: &'s [bool],
    values: Vec<bool>,
    /// For each list, how many of its candidates are in the answer.
    true_counts: Vec<u32>,
}

impl<'s, 'p> Rotation<'s, 'p> {
    fn new(index: &'s Index<'p>, enabled: &'s [bool], answer: &[Choice]) -> Self {
        let mut this = Self {
            index,
            enabled,
            values: vec![false; index.problem.subjects.len()],
            true_counts: vec![0; index.lists.len()],
        };
        for choice in answer {
            if !this.values[choice.chosen.index()] {
                this.flip(choice.chosen);
            }
        }
        this
    }

    fn flip(&mut self, var: Var) {
        let value = &mut self.values[var.index()];
        *value = !*value;
        for &list in self.index.lists_of.of(var.index()) {
            let count = &mut self.true_counts[list as usize];
            *count = if *value { *count + 1 } else { *count - 1 };
        }
    }

    fn holds(&self, at: u32) -> bool {
        let constraint = &self.index.problem.constraints[at as usize];
        let has = |var: Var| self.values[var.index()];
        let subject = constraint.subject.is_some_and(has);
        match &constraint.rule {
            Rule::Mandatory => subject,
            Rule::Prohibited => !subject,
            Rule::Dependency(_) => {
                !subject || self.true_counts[self.index.list_of[at as usize] as usize] > 0
            }
            Rule::Conflict(other) => !subject || !has(*other),
            Rule::AtMostOne(vars) => vars.iter().filter(|var| has(**var)).count() <= 1,
        }
    }

    /// The only constraint that fails after a flip of `var`, if there is exactly one. `before` is
    /// the only constraint that failed before the flip.
    fn only_broken(
        &self,
        var: Var,
        before: u32,
        budget: &mut u64,
    ) -> Result<Option<u32>, Exhausted> {
        let mut broken = (!self.holds(before)).then_some(before);
        let lists = self.index.lists_of.of(var.index()).iter();
        let dependents = lists.flat_map(|list| self.index.dependents.of(*list as usize));
        for &at in self.index.constraints_of.of(var.index()).iter().chain(dependents) {
            spend(budget, 1)?;
            if self.enabled[at as usize] && broken != Some(at) && !self.holds(at) {
                if broken.is_some() {
                    return Ok(None);
                }
                broken = Some(at);
            }
        }
        Ok(broken)
    }

    /// Adds to `needed` all constraints that rotations reach from `first`, the only constraint that
    /// fails.
    fn rotate(
        &mut self,
        first: u32,
        needed: &mut FxHashSet<u32>,
        budget: &mut u64,
    ) -> Result<(), Exhausted> {
        needed.insert(first);
        let mut pending = vec![(first, Vec::new())];
        while let Some((broken, flips)) = pending.pop() {
            for &var in &flips {
                self.flip(var);
            }
            let constraint = &self.index.problem.constraints[broken as usize];
            let others: &[Var] = match &constraint.rule {
                Rule::Mandatory | Rule::Prohibited => &[],
                Rule::Dependency(vars) => vars,
                Rule::Conflict(other) => std::slice::from_ref(other),
                Rule::AtMostOne(vars) => vars,
            };
            for &var in constraint.subject.iter().chain(others) {
                self.flip(var);
                let found = self.only_broken(var, broken, budget)?;
                self.flip(var);
                if let Some(found) = found
                    && found != broken
                    && needed.insert(found)
                    && flips.len() + 1 < MAX_FLIPS
                {
                    let mut further = flips.clone();
                    further.push(var);
                    pending.push((found, further));
                }
            }
            for &var in &flips {
                self.flip(var);
            }
        }
        Ok(())
    }
}
