//! A contradiction for people.

use crate::candidates::Candidates;
use crate::problem::Reason;
use crate::texts;
use mainstay_cause::Cause;

/// The reasons of a contradiction as a tree: what is wanted first, then what stands in the way.
pub(crate) fn contradiction(candidates: &Candidates<'_>, core: &[usize]) -> Cause {
    let mut reasons: Vec<(u8, String, Option<&str>)> = core
        .iter()
        .map(|at| &candidates.problem.constraints[*at])
        // That a Subscription exists is said by what it requires.
        .filter(|constraint| !matches!(constraint.reason, Reason::Exists))
        .map(|constraint| {
            let (rank, remedy) = match constraint.reason {
                Reason::Unsubscribed => {
                    (0, Some("delete it, so that a Subscription can install it"))
                }
                Reason::Wanted | Reason::Exists => (1, None),
                Reason::Invalid(_) => (1, Some("correct the Subscription or its catalog")),
                Reason::Required(_) => (2, None),
                Reason::Deprecated => (3, None),
                Reason::Replaced | Reason::OneProvider(_) | Reason::OneOfPackage(_) => (4, None),
            };
            (rank, texts::constraint(candidates, constraint), remedy)
        })
        .collect();
    reasons.sort();
    Cause::new("no set of operators meets every wish").because_all(reasons.into_iter().map(
        |(_, text, remedy)| {
            let cause = Cause::new(text);
            match remedy {
                Some(remedy) => cause.remedy(remedy),
                None => cause,
            }
        },
    ))
}
