//! Resolution written a second time, straight from its rules and without any haste, to hold the quick one to.
//!
//! * [`rules`] lists what may be in the answer of a world and every constraint on it: loops over all
//!   entries, no indexes, properties read again from their JSON.
//! * [`check`] tells everything that is wrong with an outcome, however it was found.
//! * [`solve`] finds the answer by trying one choice after the other in the documented order, without
//!   concluding anything; for small worlds.
//!
//! It shares with the resolver what goes in and comes out ([`World`], [`Outcome`],
//! and the entries of a snapshot as plain data), versions, ranges, and the expression language; no
//! algorithm.
//!
//! What this does not do: hurry, or explain.

mod answer;
mod channel;
mod check;
mod entries;
mod json;
mod requirement;
mod rules;
mod said;
mod search;

pub use check::check;
pub use rules::{Broken, Constraint, Rule, Rules, rules};
pub use search::TooLong;

use mainstay_resolver::{Outcome, World};

/// What a world resolves to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The parts that have an answer, all together; without failures.
    pub outcome: Outcome,
    /// The Subscriptions of each part that has none, by name; sorted.
    pub failing: Vec<Vec<String>>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The namespace as a whole has an error.
    Broken(Broken),
    /// It takes more steps than it may.
    TooLong,
}

/// What a world resolves to, found by trying; `limit` is the number of choices that may be made.
///
/// # Errors
///
/// When the namespace as a whole has an error, or the limit is reached.
pub fn solve(world: &World<'_>, mut limit: u64) -> Result<Answer, Stopped> {
    let rules = rules(world).map_err(Stopped::Broken)?;
    let mut chosen = vec![false; rules.things.len()];
    let mut failing = Vec::new();
    for part in search::components(&rules) {
        let constraints: Vec<&Constraint> = rules
            .constraints
            .iter()
            .filter(|it| it.things().iter().any(|thing| part.contains(thing)))
            .collect();
        let answer = search::first_answer(rules.things.len(), &constraints, &mut limit);
        match answer.map_err(|TooLong| Stopped::TooLong)? {
            Some(answer) => {
                for thing in part {
                    chosen[thing] |= answer[thing];
                }
            }
            None => failing.push(rules.subscriptions_of(&part)),
        }
    }
    failing.sort();
    Ok(Answer { outcome: answer::outcome(world, &rules, &chosen), failing })
}
