//! The search for an answer, and for the reasons why there is none.
//!
//! Choices are made breadth first: one for each variable that must be there, in the order of the
//! problem, then one for each dependency of what was chosen. A choice that holds something chosen
//! already is met for free; otherwise its favourite is tried first. After each step everything that
//! follows is derived; a contradiction undoes the last choice. What was chosen in the end is the
//! answer: nothing that only happens to be possible is added.

use crate::problem::{Problem, Rule, Var};
use std::collections::VecDeque;

/// How many choices may be made in all; a guard against worlds that are made to be hard.
pub(crate) const BUDGET: u64 = 5_000_000;

/// The search was given up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Exhausted;

/// The variables of the best answer, in order; none if there is no answer.
pub(crate) fn solve(problem: &Problem, budget: &mut u64) -> Result<Option<Vec<Var>>, Exhausted> {
    let enabled = vec![true; problem.constraints.len()];
    Index::new(problem).search(&enabled, budget)
}

/// The indexes of constraints that contradict each other, none of which can be left out.
///
/// The problem must have no answer.
pub(crate) fn core(problem: &Problem, budget: &mut u64) -> Result<Vec<usize>, Exhausted> {
    let index = Index::new(problem);
    let count = problem.constraints.len();
    let mut enabled = vec![true; count];
    let mut kept: Vec<usize> = (0..count).collect();
    // Leave out large parts while that works, then ever smaller ones, at last one by one.
    let mut size = count.div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < kept.len() {
            let part = at..(at + size).min(kept.len());
            for &constraint in &kept[part.clone()] {
                enabled[constraint] = false;
            }
            if index.search(&enabled, budget)?.is_none() {
                kept.drain(part);
            } else {
                for &constraint in &kept[part] {
                    enabled[constraint] = true;
                }
                at += size;
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    Ok(kept)
}

/// A problem with the constraints that a variable wakes.
struct Index<'p> {
    problem: &'p Problem,
    /// Constraints to look at when the variable turns out true.
    wakes_true: Vec<Vec<u32>>,
    /// Dependencies that have the variable as a candidate.
    wakes_false: Vec<Vec<u32>>,
    /// For dependencies, how many different candidates there are.
    candidates: Vec<u32>,
}

/// A choice: one of these must be in the answer.
struct Choice<'p> {
    candidates: &'p [Var],
    /// For a single variable that must be there.
    single: Option<Var>,
    /// The next candidate to try.
    next: usize,
}

impl Choice<'_> {
    fn candidate(&self, at: usize) -> Option<Var> {
        match self.single {
            Some(var) => (at == 0).then_some(var),
            None => self.candidates.get(at).copied(),
        }
    }
}

/// A choice that was made.
struct Guess<'p> {
    choice: Choice<'p>,
    /// What was chosen; none if the choice was met already.
    chosen: Option<Var>,
    /// How many choices followed from it.
    children: usize,
    /// How much had been derived before.
    trail: usize,
}

/// What is known: everything derived so far, in order.
struct State<'i> {
    wakes_false: &'i [Vec<u32>],
    values: Vec<Option<bool>>,
    trail: Vec<Var>,
    derived: usize,
    /// For dependencies, how many candidates are not known to be false.
    open: Vec<u32>,
}

impl State<'_> {
    /// False if the opposite is known.
    fn assign(&mut self, var: Var, value: bool) -> bool {
        if let Some(known) = self.values[var.index()] {
            return known == value;
        }
        self.values[var.index()] = Some(value);
        self.trail.push(var);
        if !value {
            for &at in &self.wakes_false[var.index()] {
                self.open[at as usize] -= 1;
            }
        }
        true
    }

    fn undo(&mut self, length: usize) {
        for var in self.trail.drain(length..) {
            if self.values[var.index()].take() == Some(false) {
                for &at in &self.wakes_false[var.index()] {
                    self.open[at as usize] += 1;
                }
            }
        }
        self.derived = length;
    }

    fn get(&self, var: Var) -> Option<bool> {
        self.values[var.index()]
    }
}

impl<'p> Index<'p> {
    fn new(problem: &'p Problem) -> Self {
        let count = problem.subjects.len();
        let mut index = Self {
            problem,
            wakes_true: vec![Vec::new(); count],
            wakes_false: vec![Vec::new(); count],
            candidates: vec![0; problem.constraints.len()],
        };
        for (at, constraint) in problem.constraints.iter().enumerate() {
            // Problems have millions of constraints at most.
            let number = u32::try_from(at).unwrap_or(u32::MAX);
            let note = |lists: &mut [Vec<u32>], var: Var| {
                let list = &mut lists[var.index()];
                let new = list.last() != Some(&number);
                if new {
                    list.push(number);
                }
                new
            };
            if let Some(subject) = constraint.subject {
                note(&mut index.wakes_true, subject);
            }
            match &constraint.rule {
                Rule::Dependency(vars) => {
                    for &var in vars {
                        if note(&mut index.wakes_false, var) {
                            index.candidates[at] += 1;
                        }
                    }
                }
                Rule::AtMostOne(vars) => {
                    for &var in vars {
                        note(&mut index.wakes_true, var);
                    }
                }
                Rule::Conflict(var) => {
                    note(&mut index.wakes_true, *var);
                }
                Rule::Mandatory | Rule::Prohibited => {}
            }
        }
        index
    }

    fn search(&self, enabled: &[bool], budget: &mut u64) -> Result<Option<Vec<Var>>, Exhausted> {
        let count = self.problem.subjects.len();
        let mut state = State {
            wakes_false: &self.wakes_false,
            values: vec![None; count],
            trail: Vec::new(),
            derived: 0,
            open: self.candidates.clone(),
        };
        let mut guessed = vec![false; count];
        let mut choices: VecDeque<Choice<'p>> = VecDeque::new();
        let mut guesses: Vec<Guess<'p>> = Vec::new();

        let mut possible = true;
        for (at, constraint) in self.problem.constraints.iter().enumerate() {
            if !enabled[at] {
                continue;
            }
            possible = possible && self.derive_from(at, &mut state);
            if matches!(constraint.rule, Rule::Mandatory) {
                choices.push_back(Choice { candidates: &[], single: constraint.subject, next: 0 });
            }
        }
        possible = possible && self.derive(enabled, &mut state);

        loop {
            if !possible {
                // Undo the last choice; the one behind it is tried next.
                let Some(guess) = guesses.pop() else { return Ok(None) };
                for _ in 0..guess.children {
                    choices.pop_back();
                }
                let mut choice = guess.choice;
                if let Some(chosen) = guess.chosen {
                    guessed[chosen.index()] = false;
                    state.undo(guess.trail);
                    choice.next += 1;
                    possible = true;
                }
                choices.push_front(choice);
                continue;
            }
            let Some(choice) = choices.pop_front() else { break };
            *budget = budget.checked_sub(1).ok_or(Exhausted)?;
            let met = choice.single.is_some_and(|var| guessed[var.index()])
                || choice.candidates.iter().any(|var| guessed[var.index()]);
            let trail = state.trail.len();
            if met {
                guesses.push(Guess { choice, chosen: None, children: 0, trail });
                continue;
            }
            let Some(chosen) = choice.candidate(choice.next) else {
                // Nothing is left to try: the choice before this one was wrong.
                let choice = Choice { next: 0, ..choice };
                choices.push_front(choice);
                possible = false;
                continue;
            };
            let mut children = 0;
            for at in self.wakes_true[chosen.index()].iter().map(|at| *at as usize) {
                let constraint = &self.problem.constraints[at];
                if let Rule::Dependency(candidates) = &constraint.rule
                    && enabled[at]
                    && constraint.subject == Some(chosen)
                    && !candidates.is_empty()
                {
                    choices.push_back(Choice { candidates, single: None, next: 0 });
                    children += 1;
                }
            }
            guessed[chosen.index()] = true;
            possible = state.assign(chosen, true) && self.derive(enabled, &mut state);
            guesses.push(Guess { choice, chosen: Some(chosen), children, trail });
        }
        let answer = (0..count).filter(|at| guessed[*at]);
        Ok(Some(answer.map(|at| Var(u32::try_from(at).unwrap_or(u32::MAX))).collect()))
    }

    /// Derives everything that follows from what was assigned. False on a contradiction.
    fn derive(&self, enabled: &[bool], state: &mut State<'_>) -> bool {
        while let Some(&var) = state.trail.get(state.derived) {
            state.derived += 1;
            let is_true = state.get(var) == Some(true);
            let wakes = if is_true { &self.wakes_true } else { &self.wakes_false };
            for at in wakes[var.index()].iter().map(|at| *at as usize) {
                if enabled[at] && !self.derive_from(at, state) {
                    return false;
                }
            }
        }
        true
    }

    /// Derives what follows from one constraint. False on a contradiction.
    fn derive_from(&self, at: usize, state: &mut State<'_>) -> bool {
        let constraint = &self.problem.constraints[at];
        match (&constraint.rule, constraint.subject) {
            (Rule::Mandatory, Some(subject)) => state.assign(subject, true),
            (Rule::Prohibited, Some(subject)) => state.assign(subject, false),
            (Rule::Dependency(candidates), Some(subject)) => match state.open[at] {
                0 => state.assign(subject, false),
                1 if state.get(subject) == Some(true) => {
                    let last = candidates.iter().find(|var| state.get(**var) != Some(false));
                    last.is_none_or(|last| state.assign(*last, true))
                }
                _ => true,
            },
            (Rule::Conflict(other), Some(subject)) => {
                if state.get(subject) == Some(true) && !state.assign(*other, false) {
                    return false;
                }
                state.get(*other) != Some(true) || state.assign(subject, false)
            }
            (Rule::AtMostOne(vars), _) => {
                // Names are sorted, so one that is listed twice stands beside itself.
                for pair in vars.windows(2) {
                    if pair[0] == pair[1] && !state.assign(pair[0], false) {
                        return false;
                    }
                }
                let Some(one) = vars.iter().position(|var| state.get(*var) == Some(true)) else {
                    return true;
                };
                vars.iter().enumerate().all(|(at, var)| at == one || state.assign(*var, false))
            }
            (_, None) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Reason, Subject};
    use proptest::prelude::*;

    /// A problem in words: `a! b- a>b,c a#b b|c` for mandatory, prohibited, dependency, conflict
    /// and at most one.
    fn problem(text: &str) -> Problem {
        let mut problem = Problem::default();
        for at in 0..26 {
            problem.variable(Subject::Subscription(at));
        }
        let var = |name: &str| Var(u32::from(name.as_bytes()[0] - b'a'));
        let vars = |names: &str, by| names.split(by).filter(|it| !it.is_empty()).map(var).collect();
        for part in text.split_whitespace() {
            let subject = Some(var(part));
            let (subject, rule) = if part.contains('|') {
                (None, Rule::AtMostOne(vars(part, '|')))
            } else {
                match part.split_at(1).1.split_at(1) {
                    ("!", _) => (subject, Rule::Mandatory),
                    ("-", _) => (subject, Rule::Prohibited),
                    (">", names) => (subject, Rule::Dependency(vars(names, ','))),
                    ("#", name) => (subject, Rule::Conflict(var(name))),
                    other => panic!("{other:?}"),
                }
            };
            problem.constrain(subject, rule, Reason::Exists);
        }
        problem
    }

    fn answer(text: &str) -> Option<String> {
        let answer = solve(&problem(text), &mut 1_000_000).unwrap()?;
        Some(answer.iter().map(|var| char::from(b'a' + u8::try_from(var.0).unwrap())).collect())
    }

    fn reasons(text: &str) -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        let core = core(&problem(text), &mut 1_000_000).unwrap();
        core.iter().map(|at| words[*at]).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn answers_follow_preference() {
        for (question, expected) in [
            ("", ""),
            ("a>b", ""),
            ("a!", "a"),
            ("c! c>b b>a", "abc"),
            ("c! c>a c>b", "abc"),
            ("c! c>a,b b#a", "ac"),
            ("c! c>b,a b#a", "bc"),
            ("a>x,y b! b>y,x", "by"),
            ("a! b! a>x,y b>y x|y", "aby"),
            ("a! b! a>x,y b>y", "abxy"),
            ("a! a>x,y b! b>y,x", "abx"),
            ("a! b! a>x,y,z,w b>x,y", "abx"),
            ("a! b! c! a>p,q b>r,s c>t,u p- r- t-", "abcqsu"),
            ("a! a>b,c b>d d- ", "ac"),
            ("a! a>b,c b>d,e d>f e>f f-", "ac"),
        ] {
            assert_eq!(answer(question).as_deref(), Some(expected), "{question}");
        }
    }

    #[test]
    fn reasons_are_irreducible() {
        for (question, expected) in [
            ("a! a-", "a! a-"),
            ("a! b! c! a#b", "a! b! a#b"),
            ("a! b! a>x b>y x|y z!", "a! b! a>x b>y x|y"),
            ("a! a>", "a! a>"),
            ("a! a>b b>c,d c- d- e! e>f", "a! a>b b>c,d c- d-"),
            ("a! a>b b|b", "a! a>b b|b"),
        ] {
            assert_eq!(answer(question), None, "{question}");
            assert_eq!(reasons(question), expected);
        }
    }

    #[test]
    fn a_search_that_takes_too_long_is_given_up() {
        let hard = problem("a! b! c! a>x,y,z b>x,y,z c>x,y,z x|y|z");
        assert_eq!(solve(&hard, &mut 2), Err(Exhausted));
    }

    /// Whether a set of variables, as bits, meets every enabled constraint.
    fn meets(problem: &Problem, set: u32, without: Option<usize>) -> bool {
        let has = |var: Var| set >> var.0 & 1 == 1;
        problem.constraints.iter().enumerate().filter(|(at, _)| Some(*at) != without).all(
            |(_, constraint)| {
                let subject = constraint.subject.is_some_and(has);
                match &constraint.rule {
                    Rule::Mandatory => subject,
                    Rule::Prohibited => !subject,
                    Rule::Dependency(vars) => !subject || vars.iter().any(|var| has(*var)),
                    Rule::Conflict(var) => !subject || !has(*var),
                    Rule::AtMostOne(vars) => vars.iter().filter(|var| has(**var)).count() <= 1,
                }
            },
        )
    }

    fn possible(problem: &Problem, without: Option<usize>) -> bool {
        (0..1 << SMALL).any(|set| meets(problem, set, without))
    }

    const SMALL: u8 = 7;

    fn small_problem() -> impl Strategy<Value = String> {
        let var = || (b'a'..b'a' + SMALL).prop_map(char::from);
        let rule = prop_oneof![
            2 => var().prop_map(|a| format!("{a}!")),
            1 => var().prop_map(|a| format!("{a}-")),
            5 => (var(), prop::collection::vec(var(), 0..4)).prop_map(|(a, list)| {
                let list: Vec<String> = list.iter().map(char::to_string).collect();
                format!("{a}>{}", list.join(","))
            }),
            2 => (var(), var()).prop_map(|(a, b)| format!("{a}#{b}")),
            3 => prop::collection::vec(var(), 2..4).prop_map(|mut list| {
                list.sort_unstable();
                let list: Vec<String> = list.iter().map(char::to_string).collect();
                list.join("|")
            }),
        ];
        prop::collection::vec(rule, 1..14).prop_map(|rules| rules.join(" "))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn an_answer_is_found_exactly_when_there_is_one(text in small_problem()) {
            let problem = problem(&text);
            match solve(&problem, &mut 1_000_000).unwrap() {
                Some(answer) => {
                    let set = answer.iter().fold(0, |set, var| set | 1 << var.0);
                    prop_assert!(meets(&problem, set, None), "{}: {:?}", text, answer);
                }
                None => prop_assert!(!possible(&problem, None), "{}", text),
            }
        }

        #[test]
        fn each_reason_is_needed_and_together_they_contradict(text in small_problem()) {
            let mut problem = problem(&text);
            if possible(&problem, None) {
                return Ok(());
            }
            let core = core(&problem, &mut 1_000_000).unwrap();
            let all = std::mem::take(&mut problem.constraints);
            problem.constraints = core.iter().map(|at| all[*at].clone()).collect();
            prop_assert!(!possible(&problem, None), "{}: {:?}", text, core);
            for at in 0..core.len() {
                prop_assert!(possible(&problem, Some(at)), "{}: {:?} without {}", text, core, at);
            }
        }
    }
}
