//! `TaintNodesByCondition`: taints a new node, so that no pod is scheduled before the node is ready.

use super::{ADMITTED, AdmissionAttributes, AdmissionDecision, Operation, Plugin};
use serde_json::json;

pub(super) struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        &*attributes.row.storage == "nodes"
            && attributes.subresource.is_empty()
            && attributes.operation == Operation::Create
    }

    fn admit<'a>(&'a self, attributes: &'a mut AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
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
