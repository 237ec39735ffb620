//! Answers as JSON. The form is documented in `docs/resolving.md` and only grows.

use super::text::differences;
use super::walk::{Cut, End, Journey, Operator};
use mainstay_resolver::universe::{cause_json, failure_json, report};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What becomes of a namespace.
pub(super) fn journey(it: &Journey, manual: &BTreeSet<String>) -> Value {
    let later = it.later.iter().map(|(step, failure)| {
        let mut value = failure_json(failure);
        value["afterStep"] = json!(step);
        value
    });
    let mut value = json!({
        "namespace": it.namespace,
        "changes": it.changes(),
        "fails": it.fails(),
        "operators": it.operators.iter().map(|it| operator(it, manual)).collect::<Vec<_>>(),
        "outcome": report(&it.outcome),
        "laterFailures": later.collect::<Vec<_>>(),
    });
    match it.cut {
        None => {}
        Some(Cut::Circle { after, back_to }) => {
            value["cut"] = json!({"why": "circle", "afterStep": after, "backToStep": back_to});
        }
        Some(Cut::Effort { after }) => value["cut"] = json!({"why": "effort", "afterStep": after}),
    }
    value
}

fn operator(it: &Operator, manual: &BTreeSet<String>) -> Value {
    let hops = it
        .hops
        .iter()
        .map(|hop| json!({"step": hop.step, "bundle": hop.bundle, "version": hop.version, "channel": hop.channel}));
    let waits = it.subscriptions.iter().any(|name| manual.contains(name));
    let approval = match (it.subscriptions.is_empty(), waits) {
        (true, _) => None,
        (false, true) => Some("Manual"),
        (false, false) => Some("Automatic"),
    };
    let needed_by =
        it.needed_by.iter().map(|(who, what)| json!({"bundle": who, "requirement": what}));
    let mut value = json!({
        "package": it.package,
        "channel": it.channel,
        "catalog": it.catalog.name,
        "catalogNamespace": it.catalog.namespace,
        "subscriptions": it.subscriptions,
        "approval": approval,
        "installed": it.installed,
        "hops": hops.collect::<Vec<_>>(),
        "neededBy": needed_by.collect::<Vec<_>>(),
        "end": {"kind": it.end.word(), "bundle": it.last()},
    });
    match &it.end {
        End::Stranded { head, why } => {
            value["end"]["head"] = json!(head);
            if !why.is_empty() {
                value["end"]["why"] = json!(why);
            }
        }
        End::Cut { next } => value["end"]["next"] = json!(next),
        End::Held { next, why } => {
            value["end"]["next"] = json!(next);
            if let Some(cause) = why {
                value["end"]["explanation"] = cause_json(cause);
            }
        }
        _ => {}
    }
    value
}

/// What differs between a world as it is and as it is supposed to be.
pub(super) fn difference(before: &Journey, after: &Journey) -> Value {
    let (rows, _) = differences(before, after);
    rows.into_iter()
        .map(|[what, before, after]| json!({"operator": what, "asItIs": before, "whatIf": after}))
        .collect()
}
