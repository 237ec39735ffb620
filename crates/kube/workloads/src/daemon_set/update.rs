//! The rolling update of a DaemonSet: a new template, node by node.

use super::decide::{Bounds, DaemonNode, Decision, is_updated};
use crate::workload::Named;
use std::sync::Arc;

/// The pods of a node that are not terminating: one of the new template, one of another. None if
/// there are more, which an update does not mend.
fn pair<'a>(
    daemon_node: &DaemonNode<'a>,
    hash: &str,
) -> Option<(Option<&'a Named>, Option<&'a Named>)> {
    let (mut new, mut old) = (None, None);
    for pod in daemon_node.pods.iter().filter(|(_, pod)| !pod.terminating) {
        let place = if is_updated(&pod.1, hash) { &mut new } else { &mut old };
        if place.replace(*pod).is_some() {
            return None;
        }
    }
    Some((new, old))
}

/// Adds the next actions of an update to a decision that has no others.
pub(super) fn roll(
    daemon_nodes: &[DaemonNode<'_>],
    desired: i64,
    bounds: &Bounds,
    hash: &str,
    decision: &mut Decision,
) {
    let daemon_nodes: Vec<&DaemonNode<'_>> =
        daemon_nodes.iter().filter(|daemon_node| !daemon_node.pods.is_empty()).collect();
    if bounds.surge == 0 {
        replace(&daemon_nodes, bounds, hash, decision);
    } else {
        surge(&daemon_nodes, desired, bounds, hash, decision);
    }
}

/// Deletes old pods within the bounds; unavailable ones whatever the bounds.
fn replace(daemon_nodes: &[&DaemonNode<'_>], bounds: &Bounds, hash: &str, decision: &mut Decision) {
    let mut unavailable = 0;
    let mut candidates: Vec<&Named> = Vec::new();
    for daemon_node in daemon_nodes {
        match pair(daemon_node, hash) {
            Some((Some(new), None)) => {
                unavailable += i64::from(!bounds.is_available(&new.1));
            }
            Some((None, Some(old))) if bounds.is_available(&old.1) => candidates.push(old),
            Some((None, Some(old))) => {
                decision.delete.push(old.clone());
                unavailable += 1;
            }
            _ => unavailable += 1,
        }
    }
    let room = usize::try_from(bounds.unavailable - unavailable).unwrap_or(0);
    decision.delete.extend(candidates.into_iter().take(room).cloned());
}

/// Creates new pods beside old ones and deletes the old ones that are replaced.
fn surge(
    daemon_nodes: &[&DaemonNode<'_>],
    desired: i64,
    bounds: &Bounds,
    hash: &str,
    decision: &mut Decision,
) {
    let (mut surging, mut available) = (0, 0);
    let mut surplus: Vec<&Named> = Vec::new();
    let mut candidates: Vec<&Arc<str>> = Vec::new();
    for daemon_node in daemon_nodes {
        let Some((new, old)) = pair(daemon_node, hash) else {
            surging += 1;
            continue;
        };
        let serving = old.or(new).is_some_and(|pod| bounds.is_available(&pod.1));
        available += i64::from(serving);
        match (new, old) {
            (_, None) => {}
            (None, Some(old)) if serving && !daemon_node.should_run => surplus.push(old),
            (None, Some(_)) if serving => candidates.push(&daemon_node.node.name),
            (None, Some(old)) if !daemon_node.should_run => decision.delete.push(old.clone()),
            (None, Some(_)) => decision.create.push(Arc::clone(&daemon_node.node.name)),
            (Some(new), Some(old)) if bounds.is_available(&new.1) => {
                decision.delete.push(old.clone());
            }
            (Some(_), Some(_)) => surging += 1,
        }
    }
    // A pod that does not belong on its node is deleted when enough others are available.
    let spare = usize::try_from(available - desired).unwrap_or(0);
    decision.delete.extend(surplus.into_iter().take(spare).cloned());
    let room = usize::try_from(bounds.surge - surging).unwrap_or(0);
    decision.create.extend(candidates.into_iter().take(room).cloned());
}
