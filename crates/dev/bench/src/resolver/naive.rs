//! The plain reference: resolution without indexes, by trying one choice after the other.

use super::Arguments;
use super::measure::middle;
use mainstay_reference::{Stopped, solve as try_all};
use mainstay_resolver::{Outcome, World};
use std::collections::BTreeSet;
use std::time::Duration;

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It says the same.
    Same,
    /// It says something else.
    Other,
    /// It says only that something is broken, as the answer does.
    Broken,
    /// It was given up.
    GivenUp,
}

/// Resolves a world by trying, and compares.
pub(super) fn solve(
    world: &World<'_>,
    outcome: &Outcome,
    arguments: &Arguments,
) -> (Verdict, Duration) {
    let (made, time) = middle(arguments.rounds.min(3), || try_all(world, arguments.limit));
    let verdict = match made {
        Err(Stopped::TooLong) => Verdict::GivenUp,
        Err(Stopped::Broken(_)) if outcome.failures.is_empty() => Verdict::Other,
        Err(Stopped::Broken(_)) => Verdict::Broken,
        Ok(answer) => {
            let blocked = outcome.failures.iter().flat_map(|failure| &failure.subscriptions);
            let blocked: BTreeSet<&String> = blocked.collect();
            let mut ours = outcome.clone();
            ours.failures.clear();
            ours.summary = None;
            // The reference does not tell its parts apart.
            ours.parts.clear();
            ours.installs.iter_mut().for_each(|install| install.part = 0);
            if blocked.into_iter().eq(&answer.blocked) && ours == answer.outcome {
                Verdict::Same
            } else {
                Verdict::Other
            }
        }
    };
    (verdict, time)
}
