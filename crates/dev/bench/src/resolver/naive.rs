//! The reference: resolution without indexes, by trial and error.

use super::Arguments;
use super::measure::median_time;
use mainstay_reference::{Stopped, solve as try_all};
use mainstay_resolver::{Resolution, ResolutionInput};
use std::collections::BTreeSet;
use std::time::Duration;

/// How the reference compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReferenceComparison {
    /// The same result.
    Same,
    /// Another result.
    Other,
    /// Both report a malformed catalog; the reference gives no details.
    Broken,
    /// It reached the limit of choices.
    GivenUp,
}

/// Resolves a case with the reference, and compares the results.
pub(super) fn solve(
    input: &ResolutionInput<'_>,
    outcome: &Resolution,
    arguments: &Arguments,
) -> (ReferenceComparison, Duration) {
    let (reference, time) =
        median_time(arguments.rounds.min(3), || try_all(input, arguments.limit));
    let comparison = match reference {
        Err(Stopped::TooLong) => ReferenceComparison::GivenUp,
        Err(Stopped::Broken(_)) if outcome.failures.is_empty() => ReferenceComparison::Other,
        Err(Stopped::Broken(_)) => ReferenceComparison::Broken,
        Ok(answer) => {
            let blocked = outcome.failures.iter().flat_map(|failure| &failure.subscriptions);
            let blocked: BTreeSet<&String> = blocked.collect();
            let mut ours = outcome.clone();
            ours.failures.clear();
            ours.summary = None;
            // The reference does not separate independent parts.
            ours.parts.clear();
            ours.installs.iter_mut().for_each(|install| install.part = 0);
            if blocked.into_iter().eq(&answer.blocked) && ours == answer.outcome {
                ReferenceComparison::Same
            } else {
                ReferenceComparison::Other
            }
        }
    };
    (comparison, time)
}
