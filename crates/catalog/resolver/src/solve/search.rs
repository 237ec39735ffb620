//! Solver state and search loop: assignments, choices, propagation and learned clauses.

use super::index::Index;
use super::learned::LearnedClause;
use super::{Choice, Exhausted};
use crate::problem::{Rule, Var};
use std::collections::VecDeque;

/// Antecedent of an assignment: why a variable has its value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Antecedent {
    /// The search chose it.
    Chosen,
    /// A constraint implies it.
    Constraint(u32),
    /// A constraint implies it together with one other variable.
    Pair(u32, Var),
    /// A learned clause implies it.
    Learned(u32),
}

/// A contradiction: the antecedent implies the opposite of the value that the variable has.
pub(super) type Contradiction = (Antecedent, Var);

/// A variable with the value that satisfies a learned clause.
pub(super) type Literal = (Var, bool);

/// A choice that the search has not made yet: one of these must be in the answer.
#[derive(Clone, Copy, Debug)]
enum PendingChoice {
    Single(Var),
    List(u32),
}

/// A choice that the search made, or that was met for free.
#[derive(Debug)]
struct Decision {
    pending: PendingChoice,
    chosen: Option<Var>,
    /// How many pending choices it added.
    children: usize,
    /// The number of levels after it.
    level: usize,
}

#[derive(Debug)]
pub(super) struct Search<'i, 'p> {
    pub(super) index: &'i Index<'p>,
    pub(super) enabled: Vec<bool>,
    pub(super) values: Vec<Option<bool>>,
    pub(super) levels: Vec<u32>,
    pub(super) reasons: Vec<Antecedent>,
    /// All assigned variables, in the order of their assignment.
    pub(super) trail: Vec<Var>,
    /// How many variables of the trail are propagated.
    pub(super) propagated: usize,
    /// For each level that a choice opened, where it begins on the trail.
    pub(super) level_starts: Vec<usize>,
    /// For each list, how many of its candidates are not assigned false.
    pub(super) possible_counts: Vec<u32>,
    /// Lists to propagate, because at most one candidate is possible.
    pub(super) pending_lists: Vec<u32>,
    pub(super) chosen: Vec<bool>,
    /// All variables that were chosen since the last reset, also those that were undone.
    pub(super) choice_history: Vec<Var>,
    pub(super) clauses: Vec<LearnedClause>,
    pub(super) learned_size: usize,
    /// For each literal, the learned clauses to evaluate when it becomes false.
    pub(super) watches: Vec<Vec<u32>>,
    pub(super) marks: Vec<bool>,
    pub(super) is_tracing: bool,
    /// The contradiction that ended the last search without an answer.
    pub(super) last_contradiction: Option<Contradiction>,
    /// The first constraint of the last search. It identifies the part, as parts share no
    /// constraint.
    pub(super) first_constraint: Option<u32>,
}

pub(super) const fn literal_index((var, value): Literal) -> usize {
    var.index() * 2 + value as usize
}

impl<'i, 'p> Search<'i, 'p> {
    pub(super) fn new(index: &'i Index<'p>) -> Self {
        let count = index.problem.subjects.len();
        let possible_counts =
            index.lists.iter().map(|list| u32::try_from(list.len()).unwrap_or(u32::MAX));
        Self {
            index,
            enabled: vec![false; index.problem.constraints.len()],
            values: vec![None; count],
            levels: vec![0; count],
            reasons: vec![Antecedent::Chosen; count],
            trail: Vec::new(),
            propagated: 0,
            level_starts: Vec::new(),
            possible_counts: possible_counts.collect(),
            pending_lists: Vec::new(),
            chosen: vec![false; count],
            choice_history: Vec::new(),
            clauses: Vec::new(),
            learned_size: 0,
            watches: Vec::new(),
            marks: vec![false; count],
            is_tracing: false,
            last_contradiction: None,
            first_constraint: None,
        }
    }

    /// Sets whether learned clauses record the constraints that they follow from.
    pub(super) fn trace(&mut self, is_tracing: bool) {
        self.is_tracing = is_tracing;
    }

    /// Whether the last search was about these constraints, found no answer and learned no clause.
    pub(super) fn has_failed(&self, constraints: &[u32]) -> bool {
        self.last_contradiction.is_some()
            && self.clauses.is_empty()
            && self.first_constraint == constraints.first().copied()
    }

    pub(super) fn enable(&mut self, constraints: &[u32], enabled: bool) {
        for at in constraints {
            self.enabled[*at as usize] = enabled;
        }
    }

    /// Searches the preferred answer to these constraints. No other constraint of their part may be
    /// enabled.
    pub(super) fn run(
        &mut self,
        constraints: &[u32],
        budget: &mut u64,
    ) -> Result<Option<Vec<Choice>>, Exhausted> {
        self.reset();
        self.first_constraint = constraints.first().copied();
        let mut choices: VecDeque<PendingChoice> = VecDeque::new();
        let mut decisions: Vec<Decision> = Vec::new();
        let mut conflict = self.assign_certain(constraints, budget, &mut choices)?;
        loop {
            if let Some(contradiction) = conflict {
                if self.level_starts.is_empty() {
                    self.last_contradiction = Some(contradiction);
                    return Ok(None);
                }
                let level = self.learn(contradiction, budget)?;
                while decisions.last().is_some_and(|decision| decision.level > level) {
                    let Some(decision) = decisions.pop() else { break };
                    choices.truncate(choices.len() - decision.children);
                    if let Some(chosen) = decision.chosen {
                        self.chosen[chosen.index()] = false;
                    }
                    choices.push_front(decision.pending);
                }
                self.undo_to(level);
                conflict = match self.apply_last_clause() {
                    None => self.propagate(budget)?,
                    found => found,
                };
                continue;
            }
            let Some(pending) = choices.pop_front() else { break };
            let (met, favourite) = self.evaluate(pending, budget)?;
            if met {
                let level = self.level_starts.len();
                decisions.push(Decision { pending, chosen: None, children: 0, level });
                continue;
            }
            let Some(chosen) = favourite else {
                // Propagation excludes the subject of a list without possible candidates.
                debug_assert!(false, "a choice without candidates");
                return Err(Exhausted::Steps);
            };
            if self.values[chosen.index()].is_none() {
                self.level_starts.push(self.trail.len());
                conflict = self.assign(chosen, true, Antecedent::Chosen);
            }
            let before = choices.len();
            self.add_choices(chosen, &mut choices);
            let children = choices.len() - before;
            self.chosen[chosen.index()] = true;
            self.choice_history.push(chosen);
            decisions.push(Decision {
                pending,
                chosen: Some(chosen),
                children,
                level: self.level_starts.len(),
            });
            if conflict.is_none() {
                conflict = self.propagate(budget)?;
            }
        }
        Ok(Some(
            decisions
                .into_iter()
                .filter_map(|decision| {
                    let constraint = match decision.pending {
                        PendingChoice::Single(_) => None,
                        PendingChoice::List(at) => Some(at),
                    };
                    Some(Choice { constraint, chosen: decision.chosen? })
                })
                .collect(),
        ))
    }

    fn reset(&mut self) {
        self.undo_to(0);
        self.undo_trail(0);
        for var in self.choice_history.drain(..) {
            self.chosen[var.index()] = false;
        }
        for clause in self.clauses.drain(..) {
            for literal in clause.literals {
                self.watches[literal_index(literal)].clear();
            }
        }
        self.learned_size = 0;
        self.last_contradiction = None;
    }

    /// Assigns what holds for every choice, and adds the mandatory variables to the choices.
    fn assign_certain(
        &mut self,
        constraints: &[u32],
        budget: &mut u64,
        choices: &mut VecDeque<PendingChoice>,
    ) -> Result<Option<Contradiction>, Exhausted> {
        spend(budget, constraints.len())?;
        let mut conflict = None;
        // Of several constraints that exclude a variable the last one counts, as in upstream.
        for &at in constraints.iter().rev() {
            let constraint = &self.index.problem.constraints[at as usize];
            let out = match (&constraint.rule, constraint.subject) {
                (Rule::Prohibited, Some(subject)) => Some(subject),
                (Rule::Dependency(list), Some(subject)) if list.is_empty() => Some(subject),
                (Rule::Conflict(other), Some(subject)) if *other == subject => Some(subject),
                (Rule::AtMostOne(vars), _) => {
                    // A variable that is listed twice excludes itself.
                    for pair in vars.windows(2).filter(|pair| pair[0] == pair[1]) {
                        self.assign(pair[0], false, Antecedent::Constraint(at));
                    }
                    None
                }
                _ => None,
            };
            if let Some(out) = out {
                self.assign(out, false, Antecedent::Constraint(at));
            }
        }
        for &at in constraints {
            let constraint = &self.index.problem.constraints[at as usize];
            if let (Rule::Mandatory, Some(subject)) = (&constraint.rule, constraint.subject) {
                choices.push_back(PendingChoice::Single(subject));
                conflict = conflict.or(self.assign(subject, true, Antecedent::Constraint(at)));
            }
        }
        match conflict {
            None => self.propagate(budget),
            found => Ok(found),
        }
    }

    /// Whether a choice is met already, and its first candidate that is possible.
    fn evaluate(
        &self,
        pending: PendingChoice,
        budget: &mut u64,
    ) -> Result<(bool, Option<Var>), Exhausted> {
        match pending {
            PendingChoice::Single(var) => Ok((self.chosen[var.index()], Some(var))),
            PendingChoice::List(constraint) => {
                let list = self.index.lists[self.index.list_of[constraint as usize] as usize];
                spend(budget, list.len())?;
                let met = list.iter().any(|var| self.chosen[var.index()]);
                let possible = |var: &&Var| self.values[var.index()] != Some(false);
                Ok((met, list.iter().find(possible).copied()))
            }
        }
    }

    fn add_choices(&self, chosen: Var, choices: &mut VecDeque<PendingChoice>) {
        for &at in self.index.constraints_of.of(chosen.index()) {
            let constraint = &self.index.problem.constraints[at as usize];
            if let Rule::Dependency(candidates) = &constraint.rule
                && self.enabled[at as usize]
                && constraint.subject == Some(chosen)
                && !candidates.is_empty()
            {
                choices.push_back(PendingChoice::List(at));
            }
        }
    }

    /// Assigns a value to a variable; a contradiction if the variable has the opposite value.
    pub(super) fn assign(
        &mut self,
        var: Var,
        value: bool,
        antecedent: Antecedent,
    ) -> Option<Contradiction> {
        let at = var.index();
        if let Some(known) = self.values[at] {
            return (known != value).then_some((antecedent, var));
        }
        self.values[at] = Some(value);
        self.levels[at] = u32::try_from(self.level_starts.len()).unwrap_or(u32::MAX);
        self.reasons[at] = antecedent;
        self.trail.push(var);
        if !value {
            for &list in self.index.lists_of.of(at) {
                let possible = &mut self.possible_counts[list as usize];
                *possible -= 1;
                if *possible <= 1 {
                    self.pending_lists.push(list);
                }
            }
        }
        None
    }

    fn undo_to(&mut self, level: usize) {
        if let Some(&length) = self.level_starts.get(level) {
            self.level_starts.truncate(level);
            self.undo_trail(length);
        }
    }

    fn undo_trail(&mut self, length: usize) {
        for var in self.trail.drain(length..) {
            if self.values[var.index()].take() == Some(false) {
                for &list in self.index.lists_of.of(var.index()) {
                    self.possible_counts[list as usize] += 1;
                }
            }
        }
        self.propagated = length;
        self.pending_lists.clear();
    }

    /// Propagates all assignments.
    fn propagate(&mut self, budget: &mut u64) -> Result<Option<Contradiction>, Exhausted> {
        loop {
            if let Some(list) = self.pending_lists.pop() {
                let found = self.propagate_list(list, budget)?;
                if found.is_some() {
                    return Ok(found);
                }
                continue;
            }
            let Some(&var) = self.trail.get(self.propagated) else { return Ok(None) };
            self.propagated += 1;
            spend(budget, 1)?;
            if self.values[var.index()] == Some(true) {
                let found = self.propagate_true(var, budget)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            if !self.clauses.is_empty() {
                let found = self.propagate_clauses(var, budget)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
    }

    fn propagate_true(
        &mut self,
        var: Var,
        budget: &mut u64,
    ) -> Result<Option<Contradiction>, Exhausted> {
        let index = self.index;
        let constraints_of = index.constraints_of.of(var.index());
        spend(budget, constraints_of.len() + 1)?;
        for &at in constraints_of {
            if !self.enabled[at as usize] {
                continue;
            }
            let constraint = &index.problem.constraints[at as usize];
            let found = match (&constraint.rule, constraint.subject) {
                (Rule::Dependency(_), _) => {
                    self.propagate_dependency(at, index.list_of[at as usize], budget)?
                }
                (Rule::Conflict(other), Some(subject)) => {
                    let out = if subject == var { *other } else { subject };
                    self.assign(out, false, Antecedent::Pair(at, var))
                }
                (Rule::AtMostOne(vars), _) => {
                    spend(budget, vars.len())?;
                    vars.iter()
                        .filter(|other| **other != var)
                        .find_map(|other| self.assign(*other, false, Antecedent::Pair(at, var)))
                }
                _ => None,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Propagates a list of which at most one candidate is possible.
    fn propagate_list(
        &mut self,
        list: u32,
        budget: &mut u64,
    ) -> Result<Option<Contradiction>, Exhausted> {
        let index = self.index;
        let dependents = index.dependents.of(list as usize);
        spend(budget, dependents.len() + 1)?;
        for &at in dependents {
            if self.enabled[at as usize] {
                let found = self.propagate_dependency(at, list, budget)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    /// Propagates a dependency, if at most one candidate of its list is possible.
    fn propagate_dependency(
        &mut self,
        at: u32,
        list: u32,
        budget: &mut u64,
    ) -> Result<Option<Contradiction>, Exhausted> {
        let Some(subject) = self.index.problem.constraints[at as usize].subject else {
            return Ok(None);
        };
        Ok(match self.possible_counts[list as usize] {
            0 => self.assign(subject, false, Antecedent::Constraint(at)),
            1 if self.values[subject.index()] == Some(true) => {
                let candidates = self.index.lists[list as usize];
                spend(budget, candidates.len())?;
                let possible = |var: &&Var| self.values[var.index()] != Some(false);
                let last = candidates.iter().find(possible).copied();
                last.and_then(|last| self.assign(last, true, Antecedent::Constraint(at)))
            }
            _ => None,
        })
    }

    /// Propagates the learned clauses that watch a variable.
    fn propagate_clauses(
        &mut self,
        var: Var,
        budget: &mut u64,
    ) -> Result<Option<Contradiction>, Exhausted> {
        let value = self.values[var.index()] == Some(true);
        let failed = literal_index((var, !value));
        let mut watchers = std::mem::take(&mut self.watches[failed]);
        let mut found = None;
        let mut at = 0;
        while at < watchers.len() {
            let number = watchers[at];
            let clause = &mut self.clauses[number as usize];
            spend(budget, 1)?;
            if clause.literals[0] == (var, !value) {
                clause.literals.swap(0, 1);
            }
            let first = clause.literals[0];
            let holds =
                |(var, value): Literal| self.values[var.index()].map(|current| current == value);
            if holds(first) != Some(true) {
                let next = (2..clause.literals.len())
                    .find(|next| holds(clause.literals[*next]) != Some(false));
                spend(budget, clause.literals.len())?;
                if let Some(next) = next {
                    clause.literals.swap(1, next);
                    let watch = literal_index(clause.literals[1]);
                    self.watches[watch].push(number);
                    watchers.swap_remove(at);
                    continue;
                }
                found = self.assign(first.0, first.1, Antecedent::Learned(number));
                if found.is_some() {
                    break;
                }
            }
            at += 1;
        }
        // The loop adds no watch for this literal: a clause never watches a literal that is false.
        self.watches[failed] = watchers;
        Ok(found)
    }
}

/// Takes steps from a budget.
pub(super) fn spend(budget: &mut u64, steps: usize) -> Result<(), Exhausted> {
    *budget = budget.checked_sub(steps as u64).ok_or(Exhausted::Steps)?;
    Ok(())
}
