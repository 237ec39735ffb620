//! `TaintNodesByCondition`: nothing is put on a new node before it has said that it is ready.

use super::{ADMITTED, Attributes, Operation, Plugin, Verdict};
use serde_json::json;

pub(super) struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        &*attributes.row.storage == "nodes"
            && attributes.subresource.is_empty()
            && attributes.operation == Operation::Create
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Verdict<'a> {
        const KEY: &str = "node.kubernetes.io/not-ready";
        const EFFECT: &str = "NoSchedule";
        if let Some(node) = &mut attributes.object {
            let mut taints = node.array(&["spec", "taints"]).to_vec();
            if !taints.iter().any(|taint| taint["key"] == KEY && taint["effect"] == EFFECT) {
                taints.push(json!({"key": KEY, "effect": EFFECT}));
                node.set(&["spec", "taints"], taints.into());
            }
        }
        ADMITTED
    }
}
