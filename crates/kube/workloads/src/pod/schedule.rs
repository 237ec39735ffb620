//! Which node a pod goes to.
//!
//! Readiness, `unschedulable`, `nodeSelector` and taints are obeyed; among the nodes that are left,
//! the one with the fewest pods wins. Resources, affinity and spreading are not looked at: simulated
//! nodes have room for everything.

use crate::views::NodeView;
use mainstay_object::Object;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a pod goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// To this node.
    Node(Arc<str>),
    /// To none, and why.
    Nowhere(String),
}

/// Chooses among nodes, given how many pods each has.
pub(crate) fn choose(pod: &Object, nodes: &[(Arc<NodeView>, usize)]) -> Choice {
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    let mut best: Option<(usize, &Arc<str>)> = None;
    for (node, load) in nodes {
        match refusal(pod, node) {
            Some(why) => *refused.entry(why).or_default() += 1,
            None if best.is_none_or(|best| (*load, &node.name) < best) => {
                best = Some((*load, &node.name));
            }
            None => {}
        }
    }
    if let Some((_, name)) = best {
        return Choice::Node(Arc::clone(name));
    }
    if nodes.is_empty() {
        return Choice::Nowhere("no nodes available to schedule pods".to_owned());
    }
    let why: Vec<String> =
        refused.into_iter().map(|(why, count)| format!("{count} {why}")).collect();
    Choice::Nowhere(format!("0/{} nodes are available: {}.", nodes.len(), why.join(", ")))
}

fn refusal(pod: &Object, node: &NodeView) -> Option<String> {
    if node.unschedulable {
        return Some("node(s) were unschedulable".to_owned());
    }
    if !node.ready {
        return Some("node(s) were not ready".to_owned());
    }
    if let Some(selector) = pod.get(&["spec", "nodeSelector"]).and_then(Value::as_object) {
        let fits = selector
            .iter()
            .all(|(key, value)| node.labels.get(key).map(String::as_str) == value.as_str());
        if !fits {
            return Some("node(s) didn't match Pod's node affinity/selector".to_owned());
        }
    }
    let tolerations = pod.array(&["spec", "tolerations"]);
    let (key, value, _) =
        node.taints.iter().find(|taint| !tolerations.iter().any(|it| tolerates(it, taint)))?;
    Some(format!("node(s) had untolerated taint {{{key}: {value}}}"))
}

fn tolerates(toleration: &Value, (key, value, effect): &(String, String, String)) -> bool {
    let text = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
    let exists = text("operator") == "Exists";
    (text("effect").is_empty() || text("effect") == effect)
        && (text("key") == key || (text("key").is_empty() && exists))
        && (exists || text("value") == value)
}

/// The status of a pod that no node takes; none if it says so already.
pub(crate) fn unschedulable(pod: &Object, message: &str, now: &str) -> Option<Value> {
    let mut status = pod.get(&["status"]).cloned().unwrap_or_else(|| json!({}));
    let mut conditions = pod.array(&["status", "conditions"]).to_vec();
    let old = conditions.iter().position(|condition| condition["type"] == "PodScheduled");
    let since = old
        .map(|at| &conditions[at])
        .filter(|old| old["status"] == "False")
        .and_then(|old| old["lastTransitionTime"].as_str())
        .unwrap_or(now)
        .to_owned();
    let condition = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
        "lastProbeTime": null, "lastTransitionTime": since,
    });
    match old {
        Some(at) if conditions[at] == condition => return None,
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
    status["phase"] = "Pending".into();
    status["conditions"] = Value::Array(conditions);
    Some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, change: impl FnOnce(&mut NodeView)) -> Arc<NodeView> {
        let mut node = NodeView {
            name: name.into(),
            labels: BTreeMap::from([("disk".to_owned(), "ssd".to_owned())]),
            ready: true,
            unschedulable: false,
            ip: None,
            taints: Vec::new(),
        };
        change(&mut node);
        Arc::new(node)
    }

    fn pod(spec: &Value) -> Object {
        Object::from_value(json!({"spec": spec})).unwrap()
    }

    #[test]
    fn the_emptiest_node_that_fits_wins() {
        let nodes = [(node("a", |_| {}), 3), (node("b", |_| {}), 1), (node("c", |_| {}), 1)];
        assert_eq!(choose(&pod(&json!({})), &nodes), Choice::Node("b".into()));
    }

    #[test]
    fn each_refusal_is_counted_and_named() {
        let taint = ("k".to_owned(), "v".to_owned(), "NoSchedule".to_owned());
        let nodes = [
            (node("a", |node| node.unschedulable = true), 0),
            (node("b", |node| node.ready = false), 0),
            (node("c", |node| node.taints.push(taint.clone())), 0),
            (node("d", |node| node.labels.clear()), 0),
        ];
        let picky = pod(&json!({"nodeSelector": {"disk": "ssd"}}));
        assert_eq!(
            choose(&picky, &nodes),
            Choice::Nowhere(
                "0/4 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint {k: v}, 1 node(s) were not ready, 1 node(s) were unschedulable."
                    .to_owned()
            )
        );
        assert_eq!(
            choose(&picky, &[]),
            Choice::Nowhere("no nodes available to schedule pods".to_owned())
        );
        for toleration in [
            json!({"operator": "Exists"}),
            json!({"key": "k", "operator": "Exists"}),
            json!({"key": "k", "value": "v", "effect": "NoSchedule"}),
        ] {
            let tolerant = pod(&json!({"tolerations": [toleration]}));
            assert_eq!(choose(&tolerant, &nodes[2..3]), Choice::Node("c".into()), "{toleration}");
        }
    }

    #[test]
    fn a_pod_that_says_so_already_is_left_alone() {
        let mut it = pod(&json!({}));
        it.set(&["status"], unschedulable(&it, "why", "t1").unwrap());
        assert_eq!(unschedulable(&it, "why", "t2"), None);
        assert!(unschedulable(&it, "else", "t2").is_some());
    }
}
