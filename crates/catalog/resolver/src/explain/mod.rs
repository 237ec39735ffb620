//! Failure explanations: a tree of causes for users, and repairs that fix the failure.
//!
//! * A contradiction is a tree: the Subscriptions, their requirements and candidates, and why each
//!   candidate is rejected (`tree`, over the unsatisfiable core in `conflict`). A requirement that
//!   nothing meets comes with the nearest content of the catalogs (`missing`).
//! * Broken input is named with its place: the catalog, channel, bundle or annotation, and the
//!   error there (`fault`).
//! * The repairs follow. `suggestions` lists changes that may help, and `what_if` resolves a copy
//!   of the input with each of them, so that the explanation has only repairs that work. The few
//!   that cannot be tried are marked.
//!
//! Rules for the prose: a text names objects as kubectl does (``Subscription `foo` ``, ``channel
//! `stable` of package `x` ``). Each node is the cause of the node above it. No node repeats
//! another one. Candidates that are rejected for the same reason share one line. A tree fits on a
//! screen. If very many parts fail, only the first failures get repairs and nearest content. The
//! order is fixed: the same input gives the same bytes.

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

pub use repair::SuggestedFix;

pub(crate) use fault::explain_namespace;
pub(crate) use what_if::FailureContext;

use crate::candidates::Candidates;
use crate::outcome::ResolutionFailure;
use crate::part_search::UnsatCore;
use crate::texts;
use mainstay_cause::Cause;
use suggestions::Participants;

/// How many constraints the explanation shows of a core that is not minimal.
const MAX_COARSE_REASONS: usize = 8;

/// For how many unmet requirements one explanation searches the nearest content.
const MAX_HINTS: usize = 8;

/// Explains one failure; `core` is the unsatisfiable core of a contradiction.
pub(crate) fn explain(
    context: &mut FailureContext<'_, '_>,
    candidates: &Candidates<'_>,
    failure: &mut ResolutionFailure,
    core: Option<&UnsatCore>,
) {
    let Some(UnsatCore { reasons, coarse }) = core else {
        return fault::explain(context, candidates, failure);
    };
    if *coarse {
        failure.cause = coarse_cause(candidates, failure, reasons);
        return;
    }
    let input = context.input;
    let constraints = conflict::unify_missing(candidates, reasons);
    let detailed = context.explains_in_full();
    if detailed {
        let participants = Participants::of(input, candidates, &constraints, reasons);
        let proposals = suggestions::all(input, &participants);
        failure.repairs = context.working_repairs(&failure.subscriptions, &participants, proposals);
    }
    let hints = if detailed { MAX_HINTS } else { 0 };
    failure.cause =
        tree::TreeBuilder::new(conflict::Conflict::new(input, candidates, constraints), hints)
            .build();
    remedies(failure);
}

/// The cause of a contradiction whose core is not minimal.
fn coarse_cause(
    candidates: &Candidates<'_>,
    failure: &ResolutionFailure,
    reasons: &[usize],
) -> Cause {
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
    let visible = UnsatCore {
        reasons: reasons.iter().copied().take(MAX_COARSE_REASONS).collect(),
        coarse: true,
    };
    let more = reasons.len().saturating_sub(MAX_COARSE_REASONS);
    let mut texts: Vec<Cause> =
        texts::reasons(candidates, &visible).into_iter().map(Cause::new).collect();
    if more > 0 {
        texts.push(Cause::new(format!("of {more} more reasons")));
    }
    Cause::new(what).because(proof.because_all(texts))
}

/// Adds the repairs to the cause, as remedies.
fn remedies(failure: &mut ResolutionFailure) {
    for repair in &failure.repairs {
        failure.cause = failure.cause.clone().remedy(repair.to_string());
    }
}
