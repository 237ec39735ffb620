//! Exhaustive search for the preferred answer, and a test whether any answer exists.

use crate::rules::{ConstraintRule, InputRules, ReferenceConstraint};
use std::collections::VecDeque;

/// The search exceeded its limit of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// The connected components of the variables: sets of variables that constraints connect, each in
/// ascending order.
pub(crate) fn components(rules: &InputRules<'_>) -> Vec<Vec<usize>> {
    let mut group: Vec<usize> = (0..rules.variables.len()).collect();
    // Each constraint gives all its variables the least group among them, until nothing changes.
    loop {
        let mut changed = false;
        for constraint in &rules.constraints {
            let variables = constraint.variables();
            let least = variables.iter().map(|variable| group[*variable]).min().unwrap_or_default();
            for variable in variables {
                changed |= group[variable] != least;
                group[variable] = least;
            }
        }
        if !changed {
            break;
        }
    }
    let mut all: Vec<Vec<usize>> = Vec::new();
    for name in 0..group.len() {
        let variables: Vec<usize> = (0..group.len()).filter(|at| group[*at] == name).collect();
        if !variables.is_empty() {
            all.push(variables);
        }
    }
    all
}

impl ReferenceConstraint {
    /// All variables that it names.
    pub(crate) fn variables(&self) -> Vec<usize> {
        let mut variables: Vec<usize> = self.about.into_iter().collect();
        match &self.rule {
            ConstraintRule::Must | ConstraintRule::MustNot => {}
            ConstraintRule::OneOf(list) | ConstraintRule::AtMostOne(list) => variables.extend(list),
            ConstraintRule::NotWith(other) => variables.push(*other),
        }
        variables
    }

    /// Whether a set of variables meets it, given as a flag for each variable.
    pub(crate) fn holds(&self, chosen: &[bool]) -> bool {
        let about = self.about.is_some_and(|variable| chosen[variable]);
        match &self.rule {
            ConstraintRule::Must => about,
            ConstraintRule::MustNot => !about,
            ConstraintRule::OneOf(list) => !about || list.iter().any(|variable| chosen[*variable]),
            ConstraintRule::NotWith(other) => !about || !chosen[*other],
            ConstraintRule::AtMostOne(list) => {
                list.iter().filter(|variable| chosen[**variable]).count() <= 1
            }
        }
    }

    /// Whether it fails for all supersets of a set of variables.
    fn is_broken_for_good(&self, chosen: &[bool]) -> bool {
        match &self.rule {
            ConstraintRule::Must => false,
            ConstraintRule::OneOf(list) => list.is_empty() && !self.holds(chosen),
            ConstraintRule::MustNot | ConstraintRule::NotWith(_) | ConstraintRule::AtMostOne(_) => {
                !self.holds(chosen)
            }
        }
    }
}

/// An answer, with the choices that led to it.
pub(crate) struct Found {
    /// For each variable, whether it is in the answer.
    pub chosen: Vec<bool>,
    /// The choices: the index of the constraint (none for a mandatory variable), and the chosen
    /// variable.
    pub choices: Vec<(Option<usize>, usize)>,
}

/// A pending choice: one of these variables, for a constraint.
type Choice = (Option<usize>, Vec<usize>);

/// The first answer in the documented order, by backtracking.
///
/// Choices are made in a queue: first the mandatory variables in the order of the constraints, then
/// the requirements of each chosen variable. A choice that a chosen variable meets already is
/// skipped. The search propagates nothing: if a set of variables breaks a constraint, it changes
/// the last choice.
///
/// # Errors
///
/// When more than `limit` choices would be made.
pub(crate) fn first_answer(
    variables: usize,
    constraints: &[&ReferenceConstraint],
    limit: &mut u64,
) -> Result<Option<Found>, TooLong> {
    let queue: VecDeque<Choice> = constraints
        .iter()
        .filter(|constraint| constraint.rule == ConstraintRule::Must)
        .filter_map(|constraint| Some((None, vec![constraint.about?])))
        .collect();
    let nothing = Found { chosen: vec![false; variables], choices: Vec::new() };
    attempt(&nothing, queue, constraints, limit)
}

fn attempt(
    partial: &Found,
    mut queue: VecDeque<Choice>,
    constraints: &[&ReferenceConstraint],
    limit: &mut u64,
) -> Result<Option<Found>, TooLong> {
    let Found { chosen, choices } = partial;
    let Some((of, choice)) = queue.pop_front() else {
        let met = constraints.iter().all(|constraint| constraint.holds(chosen));
        return Ok(met.then(|| Found { chosen: chosen.clone(), choices: choices.clone() }));
    };
    if choice.iter().any(|variable| chosen[*variable]) {
        return attempt(partial, queue, constraints, limit);
    }
    for variable in choice {
        *limit = limit.checked_sub(1).ok_or(TooLong)?;
        let mut extended = Found { chosen: chosen.clone(), choices: choices.clone() };
        extended.chosen[variable] = true;
        extended.choices.push((of, variable));
        if constraints.iter().any(|constraint| constraint.is_broken_for_good(&extended.chosen)) {
            continue;
        }
        let mut extended_queue = queue.clone();
        for (at, constraint) in constraints.iter().enumerate() {
            if let ConstraintRule::OneOf(list) = &constraint.rule
                && constraint.about == Some(variable)
            {
                extended_queue.push_back((Some(at), list.clone()));
            }
        }
        if let Some(answer) = attempt(&extended, extended_queue, constraints, limit)? {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

/// A set of variables that meets all constraints, if there is any; `known` fixes some variables.
///
/// This is the DPLL procedure: propagate what is certain, then try both values of one other
/// variable. It has no order of preference.
///
/// # Errors
///
/// When more than `limit` guesses would be tried.
pub(crate) fn possible(
    known: &[Option<bool>],
    constraints: &[&ReferenceConstraint],
    limit: &mut u64,
) -> Result<Option<Vec<bool>>, TooLong> {
    let mut known = known.to_vec();
    loop {
        let mut changed = false;
        for constraint in constraints {
            match conclude(constraint, &mut known) {
                None => return Ok(None),
                Some(progress) => changed |= progress,
            }
        }
        if !changed {
            break;
        }
    }
    // The next variable to guess: a candidate of a requirement that is not met yet.
    let undecided = constraints.iter().find_map(|constraint| {
        let ConstraintRule::OneOf(list) = &constraint.rule else { return None };
        let is_required = constraint.about.is_some_and(|variable| known[variable] == Some(true));
        let met = list.iter().any(|variable| known[*variable] == Some(true));
        let open = list.iter().find(|variable| known[**variable].is_none());
        open.filter(|_| is_required && !met)
    });
    let Some(&undecided) = undecided else {
        // All other variables can be left out.
        return Ok(Some(known.iter().map(|value| *value == Some(true)).collect()));
    };
    for guess in [true, false] {
        *limit = limit.checked_sub(1).ok_or(TooLong)?;
        known[undecided] = Some(guess);
        if let Some(answer) = possible(&known, constraints, limit)? {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

/// Propagates one constraint. None on a contradiction, otherwise whether a variable got a value.
fn conclude(constraint: &ReferenceConstraint, known: &mut [Option<bool>]) -> Option<bool> {
    let mut changed = false;
    let mut note = |variable: usize, value: bool, known: &mut [Option<bool>]| {
        let other = known[variable].replace(value);
        changed |= other.is_none();
        (other != Some(!value)).then_some(())
    };
    let about = constraint.about.unwrap_or(usize::MAX);
    match &constraint.rule {
        ConstraintRule::Must => note(about, true, known)?,
        ConstraintRule::MustNot => note(about, false, known)?,
        ConstraintRule::OneOf(list) => {
            let mut open: Vec<usize> =
                list.iter().copied().filter(|variable| known[*variable] != Some(false)).collect();
            open.dedup();
            if open.is_empty() {
                note(about, false, known)?;
            } else if let [one] = open.as_slice()
                && known[about] == Some(true)
            {
                note(*one, true, known)?;
            }
        }
        ConstraintRule::NotWith(other) => {
            if *other == about {
                note(about, false, known)?;
            } else if known[about] == Some(true) {
                note(*other, false, known)?;
            } else if known[*other] == Some(true) {
                note(about, false, known)?;
            }
        }
        ConstraintRule::AtMostOne(list) => {
            let is_in = |variable: &usize, known: &[Option<bool>]| known[*variable] == Some(true);
            for (at, variable) in list.iter().enumerate() {
                let before = &list[..at];
                let after = &list[at + 1..];
                if before.contains(variable) {
                    note(*variable, false, known)?;
                }
                let mut others = before.iter().chain(after);
                if others.any(|other| is_in(other, known)) {
                    note(*variable, false, known)?;
                }
            }
        }
    }
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Constraints between the letters a to f: `a! b- a>b,c a#b b|c`.
    fn constraints(text: &str) -> Vec<ReferenceConstraint> {
        let variable = |letter: &str| usize::from(letter.as_bytes()[0] - b'a');
        let list =
            |text: &str, by| text.split(by).filter(|word| !word.is_empty()).map(variable).collect();
        text.split_whitespace()
            .map(|word| {
                let (about, rest) = word.split_at(1);
                let (about, rule) = match rest.split_at_checked(1).unwrap_or_default() {
                    ("!", _) => (Some(variable(about)), ConstraintRule::Must),
                    ("-", _) => (Some(variable(about)), ConstraintRule::MustNot),
                    (">", of) => (Some(variable(about)), ConstraintRule::OneOf(list(of, ','))),
                    ("#", other) => {
                        (Some(variable(about)), ConstraintRule::NotWith(variable(other)))
                    }
                    _ => (None, ConstraintRule::AtMostOne(list(word, '|'))),
                };
                ReferenceConstraint { about, rule, text: word.to_owned() }
            })
            .collect()
    }

    fn letters(set: &[bool]) -> String {
        (b'a'..)
            .zip(set)
            .filter(|(_, is_in)| **is_in)
            .map(|(letter, _)| char::from(letter))
            .collect()
    }

    #[test]
    fn search_prefers_the_first_candidates() {
        for (text, expected) in [
            ("", Some("")),
            ("a! a>b,c", Some("ab")),
            ("a! a>b,c b-", Some("ac")),
            ("a! b! a>d,e b>e,f", Some("abde")),
            ("a! b! a>d,e b>e,d", Some("abd")),
            ("a! b! a>d,e b>e d|e", Some("abe")),
            ("a! a>b,c b>d d-", Some("ac")),
            ("a! a>", None),
            ("a! b! a#b", None),
            ("a! a|a", None),
        ] {
            let list = constraints(text);
            let all: Vec<&ReferenceConstraint> = list.iter().collect();
            let answer =
                first_answer(6, &all, &mut 1_000).unwrap().map(|answer| letters(&answer.chosen));
            assert_eq!(answer.as_deref(), expected, "{text}");
            let any = possible(&[None; 6], &all, &mut 1_000).unwrap();
            assert_eq!(any.is_some(), expected.is_some(), "{text}");
            if let Some(any) = any {
                assert!(all.iter().all(|constraint| constraint.holds(&any)), "{text}");
            }
        }
    }

    #[test]
    fn search_ends_at_its_limit() {
        let list = constraints("a! b! c! a>d,e,f b>d,e,f c>d,e,f d|e d|f e|f d#d e#e");
        let all: Vec<&ReferenceConstraint> = list.iter().collect();
        assert!(matches!(first_answer(6, &all, &mut 2), Err(TooLong)));
    }
}
