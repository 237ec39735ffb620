//! Answers by trying, and whether there is one at all.

use crate::rules::{Constraint, Rule, Rules};
use std::collections::VecDeque;

/// The search took more steps than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Things that have to do with each other, directly or through others: each list of things is in
/// ascending order.
pub(crate) fn components(rules: &Rules<'_>) -> Vec<Vec<usize>> {
    let mut group: Vec<usize> = (0..rules.variables.len()).collect();
    // Every constraint gives all its things the least group among them, until nothing changes.
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

impl Constraint {
    /// Every thing that it names.
    pub(crate) fn variables(&self) -> Vec<usize> {
        let mut variables: Vec<usize> = self.about.into_iter().collect();
        match &self.rule {
            Rule::Must | Rule::MustNot => {}
            Rule::OneOf(list) | Rule::AtMostOne(list) => variables.extend(list),
            Rule::NotWith(other) => variables.push(*other),
        }
        variables
    }

    /// Whether a set meets it, given by a mark for each thing.
    pub(crate) fn holds(&self, chosen: &[bool]) -> bool {
        let about = self.about.is_some_and(|variable| chosen[variable]);
        match &self.rule {
            Rule::Must => about,
            Rule::MustNot => !about,
            Rule::OneOf(list) => !about || list.iter().any(|variable| chosen[*variable]),
            Rule::NotWith(other) => !about || !chosen[*other],
            Rule::AtMostOne(list) => list.iter().filter(|variable| chosen[**variable]).count() <= 1,
        }
    }

    /// Whether more choices cannot mend it.
    fn is_broken_for_good(&self, chosen: &[bool]) -> bool {
        match &self.rule {
            Rule::Must => false,
            Rule::OneOf(list) => list.is_empty() && !self.holds(chosen),
            Rule::MustNot | Rule::NotWith(_) | Rule::AtMostOne(_) => !self.holds(chosen),
        }
    }
}

/// An answer, and how it came about.
pub(crate) struct Found {
    /// A mark for each thing.
    pub chosen: Vec<bool>,
    /// What was chosen for which constraint, by its place in the list; none for what must be there.
    pub choices: Vec<(Option<usize>, usize)>,
}

/// A choice to be made: one of these, for a constraint.
type Choice = (Option<usize>, Vec<usize>);

/// The first answer in the documented order, by trying one choice after the other.
///
/// Choices are made first come, first served: what must be there in the order of the constraints,
/// then what was chosen asks for its requirements. A choice that something chosen meets already is
/// passed over. Nothing is concluded: a set that breaks a constraint is given up, and the last
/// choice is made differently.
///
/// # Errors
///
/// When more than `limit` choices would be made.
pub(crate) fn first_answer(
    variables: usize,
    constraints: &[&Constraint],
    limit: &mut u64,
) -> Result<Option<Found>, TooLong> {
    let queue: VecDeque<Choice> = constraints
        .iter()
        .filter(|constraint| constraint.rule == Rule::Must)
        .filter_map(|constraint| Some((None, vec![constraint.about?])))
        .collect();
    let nothing = Found { chosen: vec![false; variables], choices: Vec::new() };
    attempt(&nothing, queue, constraints, limit)
}

fn attempt(
    partial: &Found,
    mut queue: VecDeque<Choice>,
    constraints: &[&Constraint],
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
            if let Rule::OneOf(list) = &constraint.rule
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

/// Whether any set at all meets constraints, where some things are known to be in it or not.
///
/// This is the classic procedure: conclude what is certain, then try both for one thing that is
/// not. It knows no order and no preference.
///
/// # Errors
///
/// When more than `limit` things would be tried.
pub(crate) fn possible(
    known: &[Option<bool>],
    constraints: &[&Constraint],
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
    // Something that may still matter: one way to meet a requirement that is not met yet.
    let undecided = constraints.iter().find_map(|constraint| {
        let Rule::OneOf(list) = &constraint.rule else { return None };
        let is_required = constraint.about.is_some_and(|variable| known[variable] == Some(true));
        let met = list.iter().any(|variable| known[*variable] == Some(true));
        let open = list.iter().find(|variable| known[**variable].is_none());
        open.filter(|_| is_required && !met)
    });
    let Some(&undecided) = undecided else {
        // Whatever else is open may be left out.
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

/// Notes what is certain. None on a contradiction, otherwise whether there was news.
fn conclude(constraint: &Constraint, known: &mut [Option<bool>]) -> Option<bool> {
    let mut changed = false;
    let mut note = |variable: usize, value: bool, known: &mut [Option<bool>]| {
        let other = known[variable].replace(value);
        changed |= other.is_none();
        (other != Some(!value)).then_some(())
    };
    let about = constraint.about.unwrap_or(usize::MAX);
    match &constraint.rule {
        Rule::Must => note(about, true, known)?,
        Rule::MustNot => note(about, false, known)?,
        Rule::OneOf(list) => {
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
        Rule::NotWith(other) => {
            if *other == about {
                note(about, false, known)?;
            } else if known[about] == Some(true) {
                note(*other, false, known)?;
            } else if known[*other] == Some(true) {
                note(about, false, known)?;
            }
        }
        Rule::AtMostOne(list) => {
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
    fn constraints(text: &str) -> Vec<Constraint> {
        let variable = |letter: &str| usize::from(letter.as_bytes()[0] - b'a');
        let list =
            |text: &str, by| text.split(by).filter(|word| !word.is_empty()).map(variable).collect();
        text.split_whitespace()
            .map(|word| {
                let (about, rest) = word.split_at(1);
                let (about, rule) = match rest.split_at_checked(1).unwrap_or_default() {
                    ("!", _) => (Some(variable(about)), Rule::Must),
                    ("-", _) => (Some(variable(about)), Rule::MustNot),
                    (">", of) => (Some(variable(about)), Rule::OneOf(list(of, ','))),
                    ("#", other) => (Some(variable(about)), Rule::NotWith(variable(other))),
                    _ => (None, Rule::AtMostOne(list(word, '|'))),
                };
                Constraint { about, rule, text: word.to_owned() }
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
            let all: Vec<&Constraint> = list.iter().collect();
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
        let all: Vec<&Constraint> = list.iter().collect();
        assert!(matches!(first_answer(6, &all, &mut 2), Err(TooLong)));
    }
}
