//! Clause learning: the clause that follows from a contradiction, and the constraints that it
//! follows from.

use super::Exhausted;
use super::search::{Antecedent, Contradiction, Literal, Search, literal_index, spend};
use crate::problem::{Rule, Var};

/// How many literals and origins all learned clauses have at most together; a search that exceeds
/// it ends.
pub(super) const MAX_LEARNED: usize = 8_000_000;

/// A learned clause: a constraint that follows from others, of which one literal holds.
#[derive(Debug)]
pub(super) struct LearnedClause {
    pub(super) literals: Vec<Literal>,
    /// The constraints that it follows from; empty without tracing.
    pub(super) from: Vec<u32>,
    /// The variables of level zero that it follows from; empty without tracing.
    pub(super) certain: Vec<Var>,
}

impl Search<'_, '_> {
    /// Calls `visit` with the variables that imply the value of a variable, or a contradiction.
    fn antecedents(&self, (antecedent, var): Contradiction, mut visit: impl FnMut(Var)) {
        match antecedent {
            Antecedent::Chosen => {}
            Antecedent::Pair(_, other) => visit(other),
            Antecedent::Learned(at) => {
                let literals = &self.clauses[at as usize].literals;
                literals
                    .iter()
                    .filter(|literal| literal.0 != var)
                    .for_each(|literal| visit(literal.0));
            }
            Antecedent::Constraint(at) => {
                let constraint = &self.index.problem.constraints[at as usize];
                if let Rule::Dependency(list) = &constraint.rule {
                    let all = constraint.subject.iter().chain(list.iter());
                    all.filter(|other| **other != var).for_each(|other| visit(*other));
                }
            }
        }
    }

    /// Learns a clause from a contradiction; gives the level to return to.
    pub(super) fn learn(
        &mut self,
        contradiction: Contradiction,
        budget: &mut u64,
    ) -> Result<usize, Exhausted> {
        let mut marked = Vec::new();
        let level = self.learn_with_marks(contradiction, &mut marked, budget);
        for var in marked {
            self.marks[var.index()] = false;
        }
        level
    }

    fn learn_with_marks(
        &mut self,
        (antecedent, var): Contradiction,
        marked: &mut Vec<Var>,
        budget: &mut u64,
    ) -> Result<usize, Exhausted> {
        let level = self.level_starts.len();
        let mut lower = Vec::new();
        let mut clause =
            LearnedClause { literals: Vec::new(), from: Vec::new(), certain: Vec::new() };
        let mut here = 0;
        let mut pending = vec![var];
        let mut next = (antecedent, var);
        let mut at = self.trail.len();
        let uip = loop {
            self.antecedents(next, |var| pending.push(var));
            if self.is_tracing {
                self.add_origins(next.0, &mut clause);
            }
            spend(budget, pending.len() + 1)?;
            for var in pending.drain(..) {
                if std::mem::replace(&mut self.marks[var.index()], true) {
                    continue;
                }
                marked.push(var);
                match self.levels[var.index()] as usize {
                    0 => clause.certain.push(var),
                    its if its == level => here += 1,
                    _ => lower.push(var),
                }
            }
            // The last marked variable of this level on the trail.
            let var = loop {
                // A contradiction always involves the last choice.
                debug_assert!(at > 0, "a contradiction without the last choice");
                at = at.checked_sub(1).ok_or(Exhausted::Steps)?;
                let var = self.trail[at];
                if self.marks[var.index()] && self.levels[var.index()] as usize == level {
                    break var;
                }
            };
            here -= 1;
            if here == 0 {
                break var;
            }
            next = (self.reasons[var.index()], var);
        };
        let opposite = |var: &Var| (*var, self.values[var.index()] != Some(true));
        lower.sort_by_key(|var| std::cmp::Reverse(self.levels[var.index()]));
        clause.literals.push(opposite(&uip));
        clause.literals.extend(lower.iter().map(opposite));
        if self.is_tracing {
            clause.from.sort_unstable();
            clause.from.dedup();
        } else {
            clause.certain.clear();
        }
        self.learned_size += clause.literals.len() + clause.from.len() + clause.certain.len();
        if self.learned_size > MAX_LEARNED {
            return Err(Exhausted::Memory);
        }
        self.clauses.push(clause);
        Ok(lower.first().map_or(0, |var| self.levels[var.index()] as usize))
    }

    fn add_origins(&self, antecedent: Antecedent, clause: &mut LearnedClause) {
        match antecedent {
            Antecedent::Chosen => {}
            Antecedent::Constraint(at) | Antecedent::Pair(at, _) => clause.from.push(at),
            Antecedent::Learned(at) => {
                let known = &self.clauses[at as usize];
                clause.from.extend(&known.from);
                clause.certain.extend(&known.certain);
            }
        }
    }

    /// Watches and asserts the last learned clause, after the return to its level.
    pub(super) fn apply_last_clause(&mut self) -> Option<Contradiction> {
        let number = self.clauses.len().checked_sub(1)?;
        let clause = &self.clauses[number];
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let first = clause.literals[0];
        self.watches.resize_with(self.values.len() * 2, Vec::new);
        if clause.literals.len() > 1 {
            for literal in &clause.literals[..2] {
                self.watches[literal_index(*literal)].push(number);
            }
        }
        self.assign(first.0, first.1, Antecedent::Learned(number))
    }

    /// The constraints that contradict each other according to the last search without answer, in
    /// order. That search must have traced its clauses.
    pub(super) fn conflicting_constraints(&mut self) -> Vec<u32> {
        let Some(last) = self.last_contradiction else { return Vec::new() };
        let mut constraints = Vec::new();
        let mut pending = vec![last.1];
        let mut marked = Vec::new();
        let mut next = last;
        loop {
            match next.0 {
                Antecedent::Chosen => {}
                Antecedent::Constraint(at) | Antecedent::Pair(at, _) => constraints.push(at),
                Antecedent::Learned(at) => {
                    let clause = &self.clauses[at as usize];
                    constraints.extend(&clause.from);
                    pending.extend(&clause.certain);
                }
            }
            self.antecedents(next, |var| pending.push(var));
            let var = loop {
                match pending.pop() {
                    Some(var) if self.marks[var.index()] => {}
                    var => break var,
                }
            };
            let Some(var) = var else { break };
            self.marks[var.index()] = true;
            marked.push(var);
            next = (self.reasons[var.index()], var);
        }
        for var in marked {
            self.marks[var.index()] = false;
        }
        constraints.sort_unstable();
        constraints.dedup();
        constraints
    }
}
