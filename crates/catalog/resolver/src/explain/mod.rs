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
use crate::shares::Core;
use crate::texts;
use mainstay_cause::Cause;
use proposals::Involved;

/// How many reasons are told of a contradiction that nobody knows the core of.
const COARSE: usize = 8;

/// For how many things that are missing something near is looked for in one explanation.
const LOOKS: usize = 8;

/// Explains one failure; `core` are the reasons of a contradiction.
pub(crate) fn explain(
    situation: &mut Situation<'_, '_>,
    candidates: &Candidates<'_>,
    failure: &mut Failure,
    core: Option<&Core>,
) {
    let Some(Core { reasons, coarse }) = core else {
        return broken::explain(situation, candidates, failure);
    };
    if *coarse {
        failure.cause = coarsely(candidates, failure, reasons);
        return;
    }
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

/// What is told of a contradiction of which it took too long to find out what it comes from.
fn coarsely(candidates: &Candidates<'_>, failure: &Failure, reasons: &[usize]) -> Cause {
    let mut names = names::quoted(failure.subscriptions.iter().map(String::as_str));
    let kind = if names.is_empty() { "ClusterServiceVersion" } else { "Subscription" };
    if names.is_empty() {
        names = names::quoted(failure.csvs.iter().map(String::as_str));
    }
    let (plural, together) = if names.len() > 1 { ("s", " together") } else { ("", "") };
    let what = format!("{kind}{plural} {} cannot be met{together}", names::some(&names, "and"));
    let proof = Cause::new(format!(
        "these {} reasons contradict each other; which of them are needed for that was not found \
         out within the steps that a search may take",
        reasons.len()
    ));
    let told = Core { reasons: reasons.iter().copied().take(COARSE).collect(), coarse: true };
    let more = reasons.len().saturating_sub(COARSE);
    let mut texts: Vec<Cause> =
        texts::reasons(candidates, &told).into_iter().map(Cause::new).collect();
    if more > 0 {
        texts.push(Cause::new(format!("of {more} more reasons")));
    }
    Cause::new(what).because(proof.because_all(texts))
}

/// Says the repairs in the tree, too.
fn remedies(failure: &mut Failure) {
    for repair in &failure.repairs {
        failure.cause = failure.cause.clone().remedy(repair.to_string());
    }
}
