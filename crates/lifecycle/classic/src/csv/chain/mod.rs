//! Replacement chains: which CSV replaces which, and which one is deleted after an upgrade.
//!
//! ```text
//! a.v1 ◄─replaces─ a.v2 ◄─replaces─ a.v3
//! oldest: deleted when its successor runs       newest
//! ```

use super::phase::{Decision, PhaseInput};
use super::serving::check;
use super::status::Transition;
use crate::fields;
use mainstay_api::{CsvPhase, CsvReason, OperatorGroup, UpgradeStrategy};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The CSV that replaces this one; the first by name if there are several.
pub(super) fn replaced_by<'a>(
    input: &'a PhaseInput<'_>,
) -> Option<(&'a String, &'a Arc<fields::Csv>)> {
    let own = &input.csv.metadata.name;
    input.observed.siblings.iter().find(|(name, sibling)| sibling.replaces == *own && *name != own)
}

/// The CSV that this one replaces, if it exists.
pub(super) fn predecessor<'a>(input: &'a PhaseInput<'_>) -> Option<&'a Arc<fields::Csv>> {
    input.observed.siblings.get(&input.csv.spec.replaces)
}

/// The transition to `Replacing` for a successor.
pub(super) fn being_replaced_transition(name: &str) -> Transition {
    let message = format!("being replaced by csv: {name}");
    Transition::to(CsvPhase::Replacing, CsvReason::BeingReplaced, message)
}

/// Why a CSV must not install: a CSV outside of its replacement chain owns one of its
/// CustomResourceDefinitions or APIServices.
pub(super) fn owner_conflict(input: &PhaseInput<'_>) -> Option<Transition> {
    let csv = input.csv;
    let chain = replacement_chain(input);
    let owned = &csv.spec.custom_resource_definitions.owned;
    let conflict = input
        .observed
        .siblings
        .iter()
        .filter(|(name, _)| !chain.contains(name.as_str()))
        .any(|(_, sibling)| owned.iter().any(|crd| sibling.owned_crds.contains(&crd.name)));
    let message = if conflict {
        "conflicting CRD owner in namespace"
    } else if check::has_foreign_api(&input.observed.serving) {
        "unable to adopt APIService"
    } else {
        return None;
    };
    Some(Transition::to(CsvPhase::Failed, CsvReason::OwnerConflict, message))
}

/// Every CSV that replaces this one or is replaced by it, directly or not.
fn replacement_chain<'a>(input: &'a PhaseInput<'_>) -> BTreeSet<&'a str> {
    let siblings = &input.observed.siblings;
    let mut all: BTreeSet<&str> = [input.csv.metadata.name.as_str()].into();
    let mut newest = input.csv.metadata.name.as_str();
    while let Some((name, _)) = siblings.iter().find(|(_, sibling)| sibling.replaces == newest) {
        if !all.insert(name) {
            break;
        }
        newest = name;
    }
    let mut oldest = input.csv.spec.replaces.as_str();
    while let Some(sibling) = siblings.get(oldest) {
        if !all.insert(oldest) {
            break;
        }
        oldest = &sibling.replaces;
    }
    all
}

/// Decides about a CSV that is being replaced.
pub(super) fn decide_replacing(input: &PhaseInput<'_>, group: &OperatorGroup) -> Decision {
    // Only the oldest CSV of a chain is deleted, as the others link the chain together.
    if predecessor(input).is_some() && !mainstay_fault::is_on("chains-are-cut-in-the-middle") {
        return Decision::Rest;
    }
    let Some((mut name, mut next)) = replaced_by(input) else {
        // The successor was deleted, so this CSV runs the operator again.
        return Decision::Transition(Transition::to(
            CsvPhase::Pending,
            CsvReason::RequirementsUnknown,
            "requirements not yet checked",
        ));
    };
    // With fail-forward upgrades the newest CSV counts. Otherwise the successor counts, and if that
    // is itself replaced already, the CSV that replaces it.
    let forward = group.spec.upgrade_strategy == UpgradeStrategy::FailForward;
    let mut visited = BTreeSet::new();
    while (forward || next.phase == CsvPhase::Replacing)
        && visited.insert(name)
        && let Some((newer, sibling)) =
            input.observed.siblings.iter().find(|(_, sibling)| sibling.replaces == **name)
    {
        (name, next) = (newer, sibling);
    }
    if next.phase == CsvPhase::Succeeded {
        return Decision::Transition(Transition::to(
            CsvPhase::Deleting,
            CsvReason::Replaced,
            "has been replaced by a newer ClusterServiceVersion that has successfully installed.",
        ));
    }
    Decision::Rest
}

#[cfg(test)]
mod tests;
