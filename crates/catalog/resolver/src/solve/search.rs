//! One search: what is known, what was chosen, and what contradictions have taught.

use super::index::Index;
use super::lesson::Lesson;
use super::{Choice, Exhausted};
use crate::problem::{Rule, Var};
use std::collections::VecDeque;

/// Why a variable has its value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Why {
    /// It was chosen.
    Chosen,
    /// A constraint says so.
    Constraint(u32),
    /// A constraint says so because of another variable.
    Pair(u32, Var),
    /// A lesson says so.
    Lesson(u32),
}

/// A contradiction: a variable should have the other value, for this reason.
pub(super) type Contradiction = (Why, Var);

/// A variable with the value that would agree with a lesson.
pub(super) type Literal = (Var, bool);

/// A choice to be made: one of these must be in the answer.
#[derive(Clone, Copy, Debug)]
enum Open {
    Single(Var),
    List(u32),
}

/// A choice that was made, or met for free.
#[derive(Debug)]
struct Guess {
    open: Open,
    chosen: Option<Var>,
    /// How many choices followed from it.
    children: usize,
    /// The level after it.
    level: usize,
}

#[derive(Debug)]
pub(super) struct Search<'i, 'p> {
    pub(super) index: &'i Index<'p>,
    pub(super) enabled: Vec<bool>,
    pub(super) values: Vec<Option<bool>>,
    pub(super) levels: Vec<u32>,
    pub(super) reasons: Vec<Why>,
    /// Everything derived so far, in order.
    pub(super) trail: Vec<Var>,
    pub(super) derived: usize,
    /// Where on the trail each level begins that a choice opened.
    pub(super) limits: Vec<usize>,
    /// For each list, how many candidates are not known to be false.
    pub(super) open: Vec<u32>,
    /// Lists to look at, because at most one candidate is left.
    pub(super) due: Vec<u32>,
    pub(super) chosen: Vec<bool>,
    /// What was chosen, also what was undone since.
    pub(super) picked: Vec<Var>,
    pub(super) lessons: Vec<Lesson>,
    pub(super) learned: usize,
    /// For each literal, the lessons to look at when it turns out false.
    pub(super) watches: Vec<Vec<u32>>,
    pub(super) marks: Vec<bool>,
    pub(super) traced: bool,
    /// The contradiction that ended the last search without an answer.
    pub(super) last: Option<Contradiction>,
    /// The first of the constraints that the last search was about; parts have none in common.
    pub(super) first: Option<u32>,
}

pub(super) const fn literal_index((var, value): Literal) -> usize {
    var.index() * 2 + value as usize
}

impl<'i, 'p> Search<'i, 'p> {
    pub(super) fn new(index: &'i Index<'p>) -> Self {
        let count = index.problem.subjects.len();
        let open = index.lists.iter().map(|list| u32::try_from(list.len()).unwrap_or(u32::MAX));
        Self {
            index,
            enabled: vec![false; index.problem.constraints.len()],
            values: vec![None; count],
            levels: vec![0; count],
            reasons: vec![Why::Chosen; count],
            trail: Vec::new(),
            derived: 0,
            limits: Vec::new(),
            open: open.collect(),
            due: Vec::new(),
            chosen: vec![false; count],
            picked: Vec::new(),
            lessons: Vec::new(),
            learned: 0,
            watches: Vec::new(),
            marks: vec![false; count],
            traced: false,
            last: None,
            first: None,
        }
    }

    /// Whether contradictions are traced from now on to the constraints they follow from.
    pub(super) fn trace(&mut self, traced: bool) {
        self.traced = traced;
    }

    /// Whether the last search was about these constraints, found no answer, and knows why.
    pub(super) fn has_failed(&self, constraints: &[u32]) -> bool {
        self.last.is_some() && self.lessons.is_empty() && self.first == constraints.first().copied()
    }

    pub(super) fn enable(&mut self, constraints: &[u32], enabled: bool) {
        for at in constraints {
            self.enabled[*at as usize] = enabled;
        }
    }

    /// Looks for the best answer to these constraints, which are all that are enabled among those
    /// that have to do with them.
    pub(super) fn run(
        &mut self,
        constraints: &[u32],
        budget: &mut u64,
    ) -> Result<Option<Vec<Choice>>, Exhausted> {
        self.reset();
        self.first = constraints.first().copied();
        let mut choices: VecDeque<Open> = VecDeque::new();
        let mut guesses: Vec<Guess> = Vec::new();
        let mut trouble = self.begin(constraints, budget, &mut choices)?;
        loop {
            if let Some(contradiction) = trouble {
                if self.limits.is_empty() {
                    self.last = Some(contradiction);
                    return Ok(None);
                }
                let level = self.learn(contradiction, budget)?;
                while guesses.last().is_some_and(|guess| guess.level > level) {
                    let Some(guess) = guesses.pop() else { break };
                    choices.truncate(choices.len() - guess.children);
                    if let Some(chosen) = guess.chosen {
                        self.chosen[chosen.index()] = false;
                    }
                    choices.push_front(guess.open);
                }
                self.undo_to(level);
                trouble = match self.apply_last_lesson() {
                    None => self.derive(budget)?,
                    found => found,
                };
                continue;
            }
            let Some(open) = choices.pop_front() else { break };
            let (met, favourite) = self.look(open, budget)?;
            if met {
                let level = self.limits.len();
                guesses.push(Guess { open, chosen: None, children: 0, level });
                continue;
            }
            let Some(chosen) = favourite else {
                // All candidates are out although the one who asks is in: that was derived before.
                debug_assert!(false, "a choice without candidates");
                return Err(Exhausted::Steps);
            };
            if self.values[chosen.index()].is_none() {
                self.limits.push(self.trail.len());
                trouble = self.assign(chosen, true, Why::Chosen);
            }
            let before = choices.len();
            self.add_choices(chosen, &mut choices);
            let children = choices.len() - before;
            self.chosen[chosen.index()] = true;
            self.picked.push(chosen);
            guesses.push(Guess { open, chosen: Some(chosen), children, level: self.limits.len() });
            if trouble.is_none() {
                trouble = self.derive(budget)?;
            }
        }
        Ok(Some(
            guesses
                .into_iter()
                .filter_map(|guess| {
                    let constraint = match guess.open {
                        Open::Single(_) => None,
                        Open::List(at) => Some(at),
                    };
                    Some(Choice { constraint, chosen: guess.chosen? })
                })
                .collect(),
        ))
    }

    fn reset(&mut self) {
        self.undo_to(0);
        self.undo_trail(0);
        for var in self.picked.drain(..) {
            self.chosen[var.index()] = false;
        }
        for lesson in self.lessons.drain(..) {
            for literal in lesson.literals {
                self.watches[literal_index(literal)].clear();
            }
        }
        self.learned = 0;
        self.last = None;
    }

    /// Everything that holds whatever is chosen.
    fn begin(
        &mut self,
        constraints: &[u32],
        budget: &mut u64,
        choices: &mut VecDeque<Open>,
    ) -> Result<Option<Contradiction>, Exhausted> {
        spend(budget, constraints.len())?;
        let mut trouble = None;
        // Of several reasons why something is out, the last is told, as the original does.
        for &at in constraints.iter().rev() {
            let constraint = &self.index.problem.constraints[at as usize];
            let out = match (&constraint.rule, constraint.subject) {
                (Rule::Prohibited, Some(subject)) => Some(subject),
                (Rule::Dependency(list), Some(subject)) if list.is_empty() => Some(subject),
                (Rule::Conflict(other), Some(subject)) if *other == subject => Some(subject),
                (Rule::AtMostOne(vars), _) => {
                    // What is named twice excludes itself.
                    for pair in vars.windows(2).filter(|pair| pair[0] == pair[1]) {
                        self.assign(pair[0], false, Why::Constraint(at));
                    }
                    None
                }
                _ => None,
            };
            if let Some(out) = out {
                self.assign(out, false, Why::Constraint(at));
            }
        }
        for &at in constraints {
            let constraint = &self.index.problem.constraints[at as usize];
            if let (Rule::Mandatory, Some(subject)) = (&constraint.rule, constraint.subject) {
                choices.push_back(Open::Single(subject));
                trouble = trouble.or(self.assign(subject, true, Why::Constraint(at)));
            }
        }
        match trouble {
            None => self.derive(budget),
            found => Ok(found),
        }
    }

    /// Whether a choice is met already, and otherwise the first candidate that is possible.
    fn look(&self, open: Open, budget: &mut u64) -> Result<(bool, Option<Var>), Exhausted> {
        match open {
            Open::Single(var) => Ok((self.chosen[var.index()], Some(var))),
            Open::List(constraint) => {
                let list = self.index.lists[self.index.list_of[constraint as usize] as usize];
                spend(budget, list.len())?;
                let met = list.iter().any(|var| self.chosen[var.index()]);
                let possible = |var: &&Var| self.values[var.index()] != Some(false);
                Ok((met, list.iter().find(possible).copied()))
            }
        }
    }

    fn add_choices(&self, chosen: Var, choices: &mut VecDeque<Open>) {
        for &at in self.index.wakes.of(chosen.index()) {
            let constraint = &self.index.problem.constraints[at as usize];
            if let Rule::Dependency(candidates) = &constraint.rule
                && self.enabled[at as usize]
                && constraint.subject == Some(chosen)
                && !candidates.is_empty()
            {
                choices.push_back(Open::List(at));
            }
        }
    }

    /// Gives a variable a value, or says that it has the other one.
    pub(super) fn assign(&mut self, var: Var, value: bool, why: Why) -> Option<Contradiction> {
        let at = var.index();
        if let Some(known) = self.values[at] {
            return (known != value).then_some((why, var));
        }
        self.values[at] = Some(value);
        self.levels[at] = u32::try_from(self.limits.len()).unwrap_or(u32::MAX);
        self.reasons[at] = why;
        self.trail.push(var);
        if !value {
            for &list in self.index.on.of(at) {
                let open = &mut self.open[list as usize];
                *open -= 1;
                if *open <= 1 {
                    self.due.push(list);
                }
            }
        }
        None
    }

    fn undo_to(&mut self, level: usize) {
        if let Some(&length) = self.limits.get(level) {
            self.limits.truncate(level);
            self.undo_trail(length);
        }
    }

    fn undo_trail(&mut self, length: usize) {
        for var in self.trail.drain(length..) {
            if self.values[var.index()].take() == Some(false) {
                for &list in self.index.on.of(var.index()) {
                    self.open[list as usize] += 1;
                }
            }
        }
        self.derived = length;
        self.due.clear();
    }

    /// Derives everything that follows from what was assigned.
    fn derive(&mut self, budget: &mut u64) -> Result<Option<Contradiction>, Exhausted> {
        loop {
            if let Some(list) = self.due.pop() {
                let found = self.derive_from_list(list, budget)?;
                if found.is_some() {
                    return Ok(found);
                }
                continue;
            }
            let Some(&var) = self.trail.get(self.derived) else { return Ok(None) };
            self.derived += 1;
            spend(budget, 1)?;
            if self.values[var.index()] == Some(true) {
                let found = self.derive_from_true(var, budget)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            if !self.lessons.is_empty() {
                let found = self.derive_from_lessons(var, budget)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
    }

    fn derive_from_true(
        &mut self,
        var: Var,
        budget: &mut u64,
    ) -> Result<Option<Contradiction>, Exhausted> {
        let index = self.index;
        let wakes = index.wakes.of(var.index());
        spend(budget, wakes.len() + 1)?;
        for &at in wakes {
            if !self.enabled[at as usize] {
                continue;
            }
            let constraint = &index.problem.constraints[at as usize];
            let found = match (&constraint.rule, constraint.subject) {
                (Rule::Dependency(_), _) => {
                    self.derive_from_dependency(at, index.list_of[at as usize], budget)?
                }
                (Rule::Conflict(other), Some(subject)) => {
                    let out = if subject == var { *other } else { subject };
                    self.assign(out, false, Why::Pair(at, var))
                }
                (Rule::AtMostOne(vars), _) => {
                    spend(budget, vars.len())?;
                    vars.iter()
                        .filter(|other| **other != var)
                        .find_map(|other| self.assign(*other, false, Why::Pair(at, var)))
                }
                _ => None,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// What follows from a list of which at most one candidate is left.
    fn derive_from_list(
        &mut self,
        list: u32,
        budget: &mut u64,
    ) -> Result<Option<Contradiction>, Exhausted> {
        let index = self.index;
        let dependents = index.dependents.of(list as usize);
        spend(budget, dependents.len() + 1)?;
        for &at in dependents {
            if self.enabled[at as usize] {
                let found = self.derive_from_dependency(at, list, budget)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    /// What follows from a dependency, if at most one candidate is left.
    fn derive_from_dependency(
        &mut self,
        at: u32,
        list: u32,
        budget: &mut u64,
    ) -> Result<Option<Contradiction>, Exhausted> {
        let Some(subject) = self.index.problem.constraints[at as usize].subject else {
            return Ok(None);
        };
        Ok(match self.open[list as usize] {
            0 => self.assign(subject, false, Why::Constraint(at)),
            1 if self.values[subject.index()] == Some(true) => {
                let candidates = self.index.lists[list as usize];
                spend(budget, candidates.len())?;
                let possible = |var: &&Var| self.values[var.index()] != Some(false);
                let last = candidates.iter().find(possible).copied();
                last.and_then(|last| self.assign(last, true, Why::Constraint(at)))
            }
            _ => None,
        })
    }

    /// What follows from lessons now that a variable has a value.
    fn derive_from_lessons(
        &mut self,
        var: Var,
        budget: &mut u64,
    ) -> Result<Option<Contradiction>, Exhausted> {
        let value = self.values[var.index()] == Some(true);
        let failed = literal_index((var, !value));
        let mut watching = std::mem::take(&mut self.watches[failed]);
        let mut found = None;
        let mut at = 0;
        while at < watching.len() {
            let number = watching[at];
            let lesson = &mut self.lessons[number as usize];
            spend(budget, 1)?;
            if lesson.literals[0] == (var, !value) {
                lesson.literals.swap(0, 1);
            }
            let first = lesson.literals[0];
            let holds =
                |(var, value): Literal| self.values[var.index()].map(|current| current == value);
            if holds(first) != Some(true) {
                let next = (2..lesson.literals.len())
                    .find(|next| holds(lesson.literals[*next]) != Some(false));
                spend(budget, lesson.literals.len())?;
                if let Some(next) = next {
                    lesson.literals.swap(1, next);
                    let watched = literal_index(lesson.literals[1]);
                    self.watches[watched].push(number);
                    watching.swap_remove(at);
                    continue;
                }
                found = self.assign(first.0, first.1, Why::Lesson(number));
                if found.is_some() {
                    break;
                }
            }
            at += 1;
        }
        // Nothing was added meanwhile: a lesson is never watched by the literal it leaves.
        self.watches[failed] = watching;
        Ok(found)
    }
}

/// Takes steps from a budget.
pub(super) fn spend(budget: &mut u64, steps: usize) -> Result<(), Exhausted> {
    *budget = budget.checked_sub(steps as u64).ok_or(Exhausted::Steps)?;
    Ok(())
}
