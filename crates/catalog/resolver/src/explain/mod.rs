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

mod conflict;
mod fault;
mod labels;
mod missing;
mod names;
mod node;
mod repair;
mod suggestions;
mod tree;
mod what_if;

pub use repair::Repair;

pub(crate) use fault::explain_namespace;
pub(crate) use what_if::FailureContext;

use crate::candidates::Candidates;
use crate::outcome::Failure;
use crate::part_search::UnsatCore;
use crate::texts;
use mainstay_cause::Cause;
use suggestions::Participants;

/// How many reasons are told of a contradiction that nobody knows the core of.
const MAX_COARSE_REASONS: usize = 8;

/// For how many things that are missing something near is looked for in one explanation.
const MAX_HINTS: usize = 8;

/// Explains one failure; `core` are the reasons of a contradiction.
pub(crate) fn explain(
    context: &mut FailureContext<'_, '_>,
    candidates: &Candidates<'_>,
    failure: &mut Failure,
    core: Option<&UnsatCore>,
) {
    let Some(UnsatCore { reasons, coarse }) = core else {
        return fault::explain(context, candidates, failure);
    };
    if *coarse {
        failure.cause = coarse_cause(candidates, failure, reasons);
        return;
    }
    let world = context.world;
    let constraints = conflict::unify_missing(candidates, reasons);
    let detailed = context.explains_in_full();
    if detailed {
        let participants = Participants::of(world, candidates, &constraints, reasons);
        let proposals = suggestions::all(world, &participants);
        failure.repairs = context.working_repairs(&failure.subscriptions, &participants, proposals);
    }
    let hints = if detailed { MAX_HINTS } else { 0 };
    failure.cause =
        tree::TreeBuilder::new(conflict::Conflict::new(world, candidates, constraints), hints)
            .build();
    remedies(failure);
}

/// What is told of a contradiction of which it took too long to find out what it comes from.
fn coarse_cause(candidates: &Candidates<'_>, failure: &Failure, reasons: &[usize]) -> Cause {
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
    let shown = UnsatCore {
        reasons: reasons.iter().copied().take(MAX_COARSE_REASONS).collect(),
        coarse: true,
    };
    let more = reasons.len().saturating_sub(MAX_COARSE_REASONS);
    let mut texts: Vec<Cause> =
        texts::reasons(candidates, &shown).into_iter().map(Cause::new).collect();
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
