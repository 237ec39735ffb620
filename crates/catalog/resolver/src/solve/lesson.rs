//! What a contradiction teaches, and which constraints it comes from.

use super::Exhausted;
use super::search::{Contradiction, Literal, Search, Why, literal_index, spend};
use crate::problem::{Rule, Var};

/// How many parts of lessons are kept at most; a search that learns more is given up.
const MOST_LEARNED: usize = 8_000_000;

/// A constraint that follows from others: one of these holds.
#[derive(Debug)]
pub(super) struct Lesson {
    pub(super) literals: Vec<Literal>,
    /// Constraints it follows from, and variables whose value was certain; only when traced.
    pub(super) from: Vec<u32>,
    pub(super) certain: Vec<Var>,
}

impl Search<'_, '_> {
    /// The variables from which it follows that a variable has its value, or should have the other.
    fn antecedents(&self, (why, var): Contradiction, mut tell: impl FnMut(Var)) {
        match why {
            Why::Chosen => {}
            Why::Pair(_, other) => tell(other),
            Why::Lesson(at) => {
                let literals = &self.lessons[at as usize].literals;
                literals
                    .iter()
                    .filter(|literal| literal.0 != var)
                    .for_each(|literal| tell(literal.0));
            }
            Why::Constraint(at) => {
                let constraint = &self.index.problem.constraints[at as usize];
                if let Rule::Dependency(list) = &constraint.rule {
                    let all = constraint.subject.iter().chain(list.iter());
                    all.filter(|other| **other != var).for_each(|other| tell(*other));
                }
            }
        }
    }

    /// Learns from a contradiction; the answer is the level to return to.
    pub(super) fn learn(
        &mut self,
        contradiction: Contradiction,
        budget: &mut u64,
    ) -> Result<usize, Exhausted> {
        let mut marked = Vec::new();
        let level = self.learn_marking(contradiction, &mut marked, budget);
        for var in marked {
            self.marks[var.index()] = false;
        }
        level
    }

    fn learn_marking(
        &mut self,
        (why, var): Contradiction,
        marked: &mut Vec<Var>,
        budget: &mut u64,
    ) -> Result<usize, Exhausted> {
        let level = self.limits.len();
        let mut lower = Vec::new();
        let mut lesson = Lesson { literals: Vec::new(), from: Vec::new(), certain: Vec::new() };
        let mut here = 0;
        let mut pending = vec![var];
        let mut next = (why, var);
        let mut at = self.trail.len();
        let turn = loop {
            self.antecedents(next, |var| pending.push(var));
            if self.traced {
                self.trace_into(next.0, &mut lesson);
            }
            spend(budget, pending.len() + 1)?;
            for var in pending.drain(..) {
                if std::mem::replace(&mut self.marks[var.index()], true) {
                    continue;
                }
                marked.push(var);
                match self.levels[var.index()] as usize {
                    0 => lesson.certain.push(var),
                    its if its == level => here += 1,
                    _ => lower.push(var),
                }
            }
            // The next marked variable of this level, from the end of the trail.
            let var = loop {
                // A contradiction always has to do with the last choice.
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
        lesson.literals.push(opposite(&turn));
        lesson.literals.extend(lower.iter().map(opposite));
        if self.traced {
            lesson.from.sort_unstable();
            lesson.from.dedup();
        } else {
            lesson.certain.clear();
        }
        self.learned += lesson.literals.len() + lesson.from.len() + lesson.certain.len();
        if self.learned > MOST_LEARNED {
            return Err(Exhausted::Memory);
        }
        self.lessons.push(lesson);
        Ok(lower.first().map_or(0, |var| self.levels[var.index()] as usize))
    }

    fn trace_into(&self, why: Why, lesson: &mut Lesson) {
        match why {
            Why::Chosen => {}
            Why::Constraint(at) | Why::Pair(at, _) => lesson.from.push(at),
            Why::Lesson(at) => {
                let known = &self.lessons[at as usize];
                lesson.from.extend(&known.from);
                lesson.certain.extend(&known.certain);
            }
        }
    }

    /// Makes the last lesson work, after the return to its level.
    pub(super) fn apply_last_lesson(&mut self) -> Option<Contradiction> {
        let number = self.lessons.len().checked_sub(1)?;
        let lesson = &self.lessons[number];
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let first = lesson.literals[0];
        self.watches.resize_with(self.values.len() * 2, Vec::new);
        if lesson.literals.len() > 1 {
            for literal in &lesson.literals[..2] {
                self.watches[literal_index(*literal)].push(number);
            }
        }
        self.assign(first.0, first.1, Why::Lesson(number))
    }

    /// The constraints that the last search without an answer found to contradict each other, in
    /// order; it must have been traced.
    pub(super) fn culprits(&mut self) -> Vec<u32> {
        let Some(last) = self.last else { return Vec::new() };
        let mut constraints = Vec::new();
        let mut pending = vec![last.1];
        let mut marked = Vec::new();
        let mut next = last;
        loop {
            match next.0 {
                Why::Chosen => {}
                Why::Constraint(at) | Why::Pair(at, _) => constraints.push(at),
                Why::Lesson(at) => {
                    let lesson = &self.lessons[at as usize];
                    constraints.extend(&lesson.from);
                    pending.extend(&lesson.certain);
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
