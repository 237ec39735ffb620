//! Reference resolution of an input by exhaustive search.

use crate::answer;
use crate::candidates::rank;
use crate::rules::{InputRules, ReferenceConstraint, UnresolvableNamespace, Variable, rules};
use crate::search::{self, Found, TooLong};
use mainstay_resolver::{Resolution, ResolutionInput};
use std::collections::BTreeSet;

/// The result of the reference resolution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReferenceResolution {
    /// The outcome of all parts with an answer, without failures.
    pub outcome: Resolution,
    /// The blocked Subscriptions, by name.
    pub blocked: BTreeSet<String>,
    /// How many parts have no answer because of a contradiction.
    pub contradictions: usize,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The whole namespace cannot be resolved.
    Broken(UnresolvableNamespace),
    /// The search exceeds its limit of choices.
    TooLong,
}

/// Resolves an input by exhaustive search; `limit` is the maximal number of choices.
///
/// # Errors
///
/// When the whole namespace cannot be resolved, or the search exceeds the limit.
pub fn solve(input: &ResolutionInput<'_>, mut limit: u64) -> Result<ReferenceResolution, Stopped> {
    let rules = rules(input).map_err(Stopped::Broken)?;
    let mut answer = ReferenceResolution::default();
    for at in &rules.blocked {
        answer.blocked.insert(rules.subscriptions[*at].name.clone());
    }
    let mut solved: Vec<(Vec<usize>, Vec<bool>)> = Vec::new();
    for part in search::components(&rules) {
        let constraints = rules.constraints_of(&part);
        let found = search::first_answer(rules.variables.len(), &constraints, &mut limit);
        let names = rules.subscriptions_of(&part);
        let unreadable = part.iter().any(|variable| rules.unreadable.contains(variable));
        match found.map_err(|TooLong| Stopped::TooLong)? {
            Some(found) if !unreadable && is_certain(&rules, &constraints, &found) => {
                solved.push((part, found.chosen));
            }
            found => {
                answer.contradictions += usize::from(found.is_none() && !unreadable);
                answer.blocked.extend(names);
            }
        }
    }
    // The package of a blocked Subscription is not installed as a dependency.
    loop {
        let before = solved.len();
        solved.retain(|(part, chosen)| {
            let is_valid = part.iter().filter(|variable| chosen[**variable]).all(|variable| {
                !answer::cannot_be_serialized(&rules, *variable)
                    && !answer::is_claimed(&rules, *variable, &answer.blocked)
            });
            if !is_valid {
                answer.blocked.extend(rules.subscriptions_of(part));
            }
            is_valid
        });
        if solved.len() == before {
            break;
        }
    }
    let mut chosen = vec![false; rules.variables.len()];
    for (part, its) in solved {
        for variable in part {
            chosen[variable] = its[variable];
        }
    }
    answer.outcome = answer::outcome(&rules, &chosen, &answer.blocked);
    Ok(answer)
}

/// Whether an answer is independent of unreadable catalogs, and all its identifiers are
/// unambiguous.
fn is_certain(rules: &InputRules<'_>, constraints: &[&ReferenceConstraint], found: &Found) -> bool {
    let source = |variable: usize| match rules.variables[variable] {
        Variable::Entry(entry) => Some(rules.entries[entry].source),
        Variable::Demand(_) => Some(0),
        Variable::Subscription(_) => None,
    };
    let preferred = found.choices.iter().all(|(constraint, chosen)| {
        let requirer = constraint.and_then(|at| source(constraints[at].about?));
        let (Some(requirer), Some(from)) = (requirer, source(*chosen)) else { return true };
        let before = |at: &usize| rank(requirer, *at) < rank(requirer, from);
        (0..rules.sources.len()).filter(before).all(|at| rules.sources[at].ready)
    });
    let plain = found.choices.iter().all(|(_, chosen)| match rules.variables[*chosen] {
        Variable::Entry(entry) if rules.entries[entry].source != 0 => rules.has_one_place(entry),
        _ => true,
    });
    preferred && plain
}
