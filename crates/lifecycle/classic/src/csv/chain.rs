//! Versions that replace one another: which is next, which was before, and which goes.
//!
//! ```text
//! a.v1 ◄─replaces─ a.v2 ◄─replaces─ a.v3
//! oldest: goes when its successor runs          newest
//! ```

use super::phase::{Decision, World};
use super::serving::check;
use super::status::Move;
use crate::fields;
use mainstay_api::{CsvPhase, CsvReason, OperatorGroup, UpgradeStrategy};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The name of a version that replaces this one; the first by name if there are several.
pub(super) fn replaced_by<'a>(world: &'a World<'_>) -> Option<(&'a String, &'a Arc<fields::Csv>)> {
    let own = &world.csv.metadata.name;
    world.seen.peers.iter().find(|(name, peer)| peer.replaces == *own && *name != own)
}

/// The version that this one replaces, if it is there.
pub(super) fn predecessor<'a>(world: &'a World<'_>) -> Option<&'a Arc<fields::Csv>> {
    world.seen.peers.get(&world.csv.spec.replaces)
}

/// The step aside for a successor.
pub(super) fn being_replaced(name: &str) -> Move {
    let message = format!("being replaced by csv: {name}");
    Move::to(CsvPhase::Replacing, CsvReason::BeingReplaced, message)
}

/// Why a version must not have what it owns: somebody outside of its chain has it.
pub(super) fn owner_conflict(world: &World<'_>) -> Option<Move> {
    let csv = world.csv;
    let chain = chain(world);
    let owned = &csv.spec.custom_resource_definitions.owned;
    let conflict = world
        .seen
        .peers
        .iter()
        .filter(|(name, _)| !chain.contains(name.as_str()))
        .any(|(_, peer)| owned.iter().any(|crd| peer.owned_crds.contains(&crd.name)));
    let message = if conflict {
        "conflicting CRD owner in namespace"
    } else if check::conflict(&world.seen.serving) {
        "unable to adopt APIService"
    } else {
        return None;
    };
    Some(Move::to(CsvPhase::Failed, CsvReason::OwnerConflict, message))
}

/// Every version that replaces this one or is replaced by it, directly or not.
fn chain<'a>(world: &'a World<'_>) -> BTreeSet<&'a str> {
    let peers = &world.seen.peers;
    let mut all: BTreeSet<&str> = [world.csv.metadata.name.as_str()].into();
    let mut newest = world.csv.metadata.name.as_str();
    while let Some((name, _)) = peers.iter().find(|(_, peer)| peer.replaces == newest) {
        if !all.insert(name) {
            break;
        }
        newest = name;
    }
    let mut oldest = world.csv.spec.replaces.as_str();
    while let Some(peer) = peers.get(oldest) {
        if !all.insert(oldest) {
            break;
        }
        oldest = &peer.replaces;
    }
    all
}

/// What becomes of a version that is being replaced.
pub(super) fn replacing(world: &World<'_>, group: &OperatorGroup) -> Decision {
    // Only the oldest version of a chain goes: others still hold the chain together.
    if predecessor(world).is_some() && !mainstay_fault::is_on("chains-are-cut-in-the-middle") {
        return Decision::Rest;
    }
    let Some((mut name, mut next)) = replaced_by(world) else {
        // The successor was deleted: this one is the operator again.
        return Decision::Move(Move::to(
            CsvPhase::Pending,
            CsvReason::RequirementsUnknown,
            "requirements not yet checked",
        ));
    };
    // With leave to go past failures the newest counts. Otherwise it is the next one, and behind one that
    // ran and has been replaced before this was seen, the one that replaces it.
    let forward = group.spec.upgrade_strategy == UpgradeStrategy::FailForward;
    let mut visited = BTreeSet::new();
    while (forward || next.phase == CsvPhase::Replacing)
        && visited.insert(name)
        && let Some((newer, peer)) =
            world.seen.peers.iter().find(|(_, peer)| peer.replaces == **name)
    {
        (name, next) = (newer, peer);
    }
    if next.phase == CsvPhase::Succeeded {
        return Decision::Move(Move::to(
            CsvPhase::Deleting,
            CsvReason::Replaced,
            "has been replaced by a newer ClusterServiceVersion that has successfully installed.",
        ));
    }
    Decision::Rest
}

#[cfg(test)]
mod tests;
