//! What a failed resolution tells people.

mod absent;
mod core;
mod labels;
mod names;
mod node;
mod proposals;
mod repair;
mod tree;
mod trial;

pub use repair::Repair;

use crate::candidates::Candidates;
use crate::world::World;
use mainstay_cause::Cause;

/// A contradiction as a tree, and what would mend it.
pub(crate) fn contradiction(
    world: &World<'_>,
    candidates: &Candidates<'_>,
    core: &[usize],
) -> (Cause, Vec<Repair>) {
    let repairs = trial::repairs(world, candidates, core);
    let cause = tree::Teller::new(core::Core::new(world, candidates, core)).tell();
    let cause = repairs.iter().fold(cause, |cause, repair| cause.remedy(repair.to_string()));
    (cause, repairs)
}
