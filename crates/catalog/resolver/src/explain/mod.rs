//! What a failed resolution tells people.
//!
//! * A contradiction is told as a tree: who asks, what for, which candidates there are, and why each
//!   of them falls (`tree`, over the reasons in `core`); what nothing offers comes with what is
//!   nearest to it (`absent`).
//! * Something broken is told with its place: which catalog, channel, bundle or annotation, and
//!   what is wrong there (`broken`).
//! * Below it stand changes that would mend it. They are found by trying (`proposals` says what may
//!   help, `trial` tries it), so what is offered works; the few that cannot be tried say so.
//!
//! Rules for the prose: a text names objects as the cluster does (``Subscription `foo` ``, ``channel
//! `stable` of package `x` ``); every node says what is in the way of the node above it; what is told
//! once is not told again; many candidates that fall for the same reason are one line; a tree fits on
//! a screen. Where very much fails, only the first failures get repairs and what comes near to what is
//! missing. Everything is in a fixed order: the same world gives the same bytes.

mod absent;
mod broken;
mod core;
mod labels;
mod names;
mod node;
mod proposals;
mod repair;
mod tree;
mod trial;

pub use repair::Repair;

pub(crate) use broken::whole;
pub(crate) use trial::Situation;

use crate::candidates::Candidates;
use crate::outcome::Failure;
use proposals::Involved;

/// For how many things that are missing something near is looked for in one explanation.
const LOOKS: usize = 8;

/// Explains one failure; `reasons` are those of a contradiction, as indexes of constraints.
pub(crate) fn explain(
    situation: &mut Situation<'_, '_>,
    candidates: &Candidates<'_>,
    failure: &mut Failure,
    reasons: Option<&[usize]>,
) {
    let Some(reasons) = reasons else {
        return broken::explain(situation, candidates, failure);
    };
    let world = situation.world;
    let constraints = core::alike(candidates, reasons);
    let detailed = situation.is_patient();
    if detailed {
        let involved = Involved::of(world, candidates, &constraints, reasons);
        let proposals = proposals::all(world, &involved);
        failure.repairs = situation.mending(&failure.subscriptions, &involved, proposals);
    }
    let looks = if detailed { LOOKS } else { 0 };
    failure.cause =
        tree::Teller::new(core::Core::new(world, candidates, constraints), looks).tell();
    remedies(failure);
}

/// Says the repairs in the tree, too.
fn remedies(failure: &mut Failure) {
    for repair in &failure.repairs {
        failure.cause = failure.cause.clone().remedy(repair.to_string());
    }
}
