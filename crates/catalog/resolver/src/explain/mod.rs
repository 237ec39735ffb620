//! A contradiction for people.

mod names;
mod repair;
mod trial;

pub use repair::Repair;

use crate::candidates::Candidates;
use crate::problem::Reason;
use crate::texts;
use crate::world::World;
use mainstay_cause::Cause;

/// The reasons of a contradiction as a tree, what is wanted first, then what stands in the way; and
/// what would mend it.
pub(crate) fn contradiction(
    world: &World<'_>,
    candidates: &Candidates<'_>,
    core: &[usize],
) -> (Cause, Vec<Repair>) {
    let repairs = trial::repairs(world, candidates, core);
    let mut reasons: Vec<(u8, String)> = core
        .iter()
        .map(|at| &candidates.problem.constraints[*at])
        // That a Subscription exists is said by what it requires.
        .filter(|constraint| !matches!(constraint.reason, Reason::Exists))
        .map(|constraint| {
            let rank = match constraint.reason {
                Reason::Unsubscribed => 0,
                Reason::Wanted | Reason::Exists | Reason::Invalid(_) => 1,
                Reason::Required(_) => 2,
                Reason::Deprecated => 3,
                Reason::Replaced | Reason::OneProvider(_) | Reason::OneOfPackage(_) => 4,
            };
            (rank, texts::constraint(candidates, constraint))
        })
        .collect();
    reasons.sort();
    let cause = Cause::new("no set of operators meets every wish")
        .because_all(reasons.into_iter().map(|(_, text)| Cause::new(text)));
    let cause = repairs.iter().fold(cause, |cause, repair| cause.remedy(repair.to_string()));
    (cause, repairs)
}
