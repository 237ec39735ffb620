//! The status of a simulated node.

use crate::simulate::ANNOTATION;
use mainstay_object::{Object, fnv};
use serde_json::{Value, json};

/// The label that turns simulation off with the value `false`; all other nodes are simulated.
pub(crate) const LABEL: &str = "mainstay.dev/simulated";

/// Reason and message of a node whose annotation requests `not-ready`.
const NOT_READY: (&str, &str) = ("KubeletNotReady", "simulated: the node is not ready");
/// Reason and message of a node whose annotation requests `unreachable`.
const UNREACHABLE: (&str, &str) = ("NodeStatusUnknown", "Kubelet stopped posting node status.");

/// The address of a node, from the range that Docker networks often have.
fn address(name: &str) -> String {
    let number = name.rsplit('-').next().and_then(|text| text.parse::<u64>().ok());
    let at = match number {
        Some(number @ 1..=50_000) => number + 1,
        _ => fnv::fnv64a(name.as_bytes()) % 50_000 + 10_000,
    };
    format!("172.18.{}.{}", at / 250, at % 250)
}

/// The status of a node; none if it is up to date. Conditions of other clients stay, except where
/// the annotation requests trouble.
pub(crate) fn status(node: &Object, version: &str, now: &str) -> Option<Value> {
    if node.label(LABEL) == Some("false") || node.is_terminating() {
        return None;
    }
    let ready =
        node.array(&["status", "conditions"]).iter().find(|condition| condition["type"] == "Ready");
    let (status, reason, message) = match node.annotation(ANNOTATION) {
        Some("not-ready") => ("False", NOT_READY.0, NOT_READY.1),
        Some("unreachable") => ("Unknown", UNREACHABLE.0, UNREACHABLE.1),
        _ => ("True", "KubeletReady", "kubelet is posting ready status"),
    };
    let Some(ready) = ready else {
        return Some(first_status(node, (status, reason, message), version, now));
    };
    let injected = [NOT_READY.0, UNREACHABLE.0].iter().any(|reason| ready["reason"] == *reason);
    if ready["status"] == status || (status == "True" && !injected) {
        return None;
    }
    let mut new_status = node.get(&["status"]).cloned().unwrap_or_else(|| json!({}));
    for condition in new_status["conditions"].as_array_mut().into_iter().flatten() {
        if condition["type"] == "Ready" {
            *condition = self::condition("Ready", status, reason, message, now);
        }
    }
    Some(new_status)
}

fn condition(kind: &str, status: &str, reason: &str, message: &str, now: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastHeartbeatTime": now, "lastTransitionTime": now,
    })
}

/// The first status of a node. Fields that its creator set take precedence.
fn first_status(node: &Object, ready: (&str, &str, &str), version: &str, now: &str) -> Value {
    let mut conditions: Vec<Value> = [
        ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ]
    .into_iter()
    .map(|(kind, reason, message)| condition(kind, "False", reason, message, now))
    .collect();
    conditions.push(condition("Ready", ready.0, ready.1, ready.2, now));
    for old_condition in node.array(&["status", "conditions"]) {
        conditions.retain(|condition| condition["type"] != old_condition["type"]);
        conditions.push(old_condition.clone());
    }
    let usual = json!({
        "cpu": "64", "memory": "256Gi", "pods": "10000", "ephemeral-storage": "1Ti",
    });
    let given_amounts = |field: &str| {
        let amounts = node
            .get(&["status", field])
            .filter(|value| value.as_object().is_some_and(|amounts| !amounts.is_empty()));
        amounts.cloned()
    };
    let capacity = given_amounts("capacity").unwrap_or(usual);
    let name = node.name();
    json!({
        "addresses": [
            {"type": "InternalIP", "address": address(name)},
            {"type": "Hostname", "address": name},
        ],
        "allocatable": given_amounts("allocatable").unwrap_or_else(|| capacity.clone()),
        "capacity": capacity,
        "conditions": conditions,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "00000000-0000-0000-0000-000000000000",
            "containerRuntimeVersion": "simulated://1.0.0",
            "kernelVersion": "0.0.0",
            "kubeProxyVersion": version,
            "kubeletVersion": version,
            "machineID": name,
            "operatingSystem": "linux",
            "osImage": "Mainstay simulated node",
            "systemUUID": name,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_ready_unless_its_annotation_says_otherwise() {
        let (early, late) = ("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
        let mut node = Object::from_value(json!({"metadata": {"name": "node-1"}})).unwrap();
        for (annotation, ready) in [
            (None, "True"),
            (Some("not-ready"), "False"),
            (Some("unreachable"), "Unknown"),
            (None, "True"),
        ] {
            node.remove(&["metadata", "annotations"]);
            if let Some(value) = annotation {
                node.set_annotation(ANNOTATION, value);
            }
            node.set(&["status"], status(&node, "v1.35.0", early).unwrap());
            assert_eq!(node.condition("Ready"), Some(ready));
            assert_eq!(status(&node, "v1.35.0", late), None, "{annotation:?}");
        }
        assert_eq!(address("node-1"), "172.18.0.2");
        assert_eq!(address("node-301"), "172.18.1.52");
    }

    #[test]
    fn foreign_fields_of_a_node_status_stay() {
        let mut node = Object::from_value(json!({
            "metadata": {"name": "theirs"},
            "status": {"allocatable": {"cpu": "1"}, "conditions": [
                {"type": "Ready", "status": "False", "reason": "Theirs"},
            ]},
        }))
        .unwrap();
        assert_eq!(status(&node, "v1.35.0", "t"), None);
        node.set(&["status", "conditions"], json!([]));
        let first_status = status(&node, "v1.35.0", "t").unwrap();
        assert_eq!(first_status["allocatable"], json!({"cpu": "1"}));
        node.set_label(LABEL, "false");
        assert_eq!(status(&node, "v1.35.0", "t"), None);
    }
}
