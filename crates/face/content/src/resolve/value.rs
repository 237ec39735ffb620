//! The preview as JSON. `docs/resolving.md` documents the format, which only grows.

use super::crds;
use super::text::differences;
use mainstay_resolver::fixture::{cause_json, failure_json, report};
use mainstay_whatif::{CutShort, Hop, NamespaceWalk, OperatorPath, WalkComparison, WalkEnd};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The walk of a namespace.
pub(super) fn walk(walk: &NamespaceWalk, manual: &BTreeSet<String>) -> Value {
    let later = walk.later.iter().map(|(step, failure)| {
        let mut value = failure_json(failure);
        value["afterStep"] = json!(step);
        value
    });
    let mut value = json!({
        "namespace": walk.namespace,
        "changes": walk.changes(),
        "fails": walk.fails(),
        "operators": walk.operators.iter().map(|path| operator(path, manual)).collect::<Vec<_>>(),
        "outcome": report(&walk.outcome),
        "laterFailures": later.collect::<Vec<_>>(),
    });
    match walk.cut {
        None => {}
        Some(CutShort::Cycle { after, back_to }) => {
            value["cut"] = json!({"why": "circle", "afterStep": after, "backToStep": back_to});
        }
        Some(CutShort::Budget { after }) => {
            value["cut"] = json!({"why": "effort", "afterStep": after});
        }
    }
    value
}

fn operator(path: &OperatorPath, manual: &BTreeSet<String>) -> Value {
    let hops = path.hops.iter().map(hop);
    let waits = path.subscriptions.iter().any(|name| manual.contains(name));
    let approval = match (path.subscriptions.is_empty(), waits) {
        (true, _) => None,
        (false, true) => Some("Manual"),
        (false, false) => Some("Automatic"),
    };
    let needed_by = path
        .needed_by
        .iter()
        .map(|(bundle, requirement)| json!({"bundle": bundle, "requirement": requirement}));
    let mut value = json!({
        "package": path.package,
        "channel": path.channel,
        "catalog": path.catalog.name,
        "catalogNamespace": path.catalog.namespace,
        "subscriptions": path.subscriptions,
        "approval": approval,
        "installed": path.installed,
        "hops": hops.collect::<Vec<_>>(),
        "neededBy": needed_by.collect::<Vec<_>>(),
        "end": {"kind": path.end.word(), "bundle": path.last()},
    });
    match &path.end {
        WalkEnd::Stranded { head, why } => {
            value["end"]["head"] = json!(head);
            if !why.is_empty() {
                value["end"]["why"] = json!(why);
            }
        }
        WalkEnd::Cut { next } => value["end"]["next"] = json!(next),
        WalkEnd::Held { next, why } => {
            value["end"]["next"] = json!(next);
            if let Some(cause) = why {
                value["end"]["explanation"] = cause_json(cause);
            }
        }
        _ => {}
    }
    value
}

fn hop(hop: &Hop) -> Value {
    let mut value = json!({
        "step": hop.step, "bundle": hop.bundle, "version": hop.version, "channel": hop.channel,
    });
    if !hop.crd_changes.is_empty() {
        value["crdChanges"] = crds::value(&hop.crd_changes);
    }
    value
}

/// The differences between the world as it is and with the supposed changes.
pub(super) fn difference(comparison: &WalkComparison) -> Value {
    let (rows, _) = differences(comparison);
    rows.into_iter()
        .map(|[subject, before, after]| {
            json!({"operator": subject, "asItIs": before, "whatIf": after})
        })
        .collect()
}
