//! ReplicaSet decisions: which Pods to create and delete, and the new status.

use crate::common::put_count;
use crate::views::PodView;
use crate::workload::Named;
use jiff::Timestamp;
use mainstay_object::Object;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use std::sync::Arc;

/// The state that [`decide`] reads.
pub(crate) struct Observed<'a> {
    pub(crate) set: &'a Object,
    pub(crate) pods: &'a [Named],
    pub(crate) now: Timestamp,
}

/// The counts of Pods for the status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) replicas: i64,
    pub(crate) fully_labeled: i64,
    pub(crate) ready: i64,
    pub(crate) available: i64,
    pub(crate) terminating: i64,
}

/// The actions of one reconcile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decision {
    /// The number of Pods to create.
    pub(crate) create: usize,
    /// Surplus Pods.
    pub(crate) delete: Vec<Named>,
    /// The counts before these actions.
    pub(crate) counts: Counts,
    /// Seconds until a ready Pod becomes available.
    pub(crate) requeue_after: Option<u64>,
}

/// Decides. `pods_per_node` returns the number of Pods of the same workload on each node; it is only
/// called when there are surplus Pods.
pub(crate) fn decide(
    observed: &Observed<'_>,
    pods_per_node: impl FnOnce() -> FxHashMap<Arc<str>, usize>,
) -> Decision {
    let set = observed.set;
    let desired = usize::try_from(set.i64(&["spec", "replicas"]).unwrap_or(1)).unwrap_or(0);
    let min_ready = set.i64(&["spec", "minReadySeconds"]).unwrap_or_default();
    let labels = set.get(&["spec", "template", "metadata", "labels"]).and_then(Value::as_object);
    let active: Vec<&Named> = observed.pods.iter().filter(|(_, pod)| pod.is_active()).collect();

    let terminating = observed.pods.iter().filter(|(_, pod)| pod.terminating && !pod.is_finished());
    let mut counts = Counts { terminating: count(terminating), ..Counts::default() };
    let mut requeue_after = None;
    for (_, pod) in &active {
        counts.replicas += 1;
        counts.ready += i64::from(pod.is_ready());
        counts.available += i64::from(pod.is_available(min_ready, observed.now));
        let labelled = labels
            .into_iter()
            .flatten()
            .all(|(key, value)| pod.labels.get(key).map(String::as_str) == value.as_str());
        counts.fully_labeled += i64::from(labelled);
        if let Some(since) = pod.ready_since {
            let remaining = min_ready - (observed.now.as_second() - since.as_second());
            if let Ok(remaining @ 1..) = u64::try_from(remaining) {
                requeue_after = Some(
                    requeue_after
                        .map_or(remaining, |requeue_after: u64| requeue_after.min(remaining)),
                );
            }
        }
    }
    let mut decision = Decision { counts, requeue_after, ..Decision::default() };
    if set.is_terminating() {
        return decision;
    }
    if active.len() < desired {
        decision.create = desired - active.len();
    } else if active.len() > desired {
        let surplus = active.len() - desired;
        let mut active = active;
        let pods_per_node = pods_per_node();
        active.sort_by(|(_, a), (_, b)| deletion_order(a, b, &pods_per_node, observed.now));
        decision.delete = active.into_iter().take(surplus).cloned().collect();
    }
    decision
}

fn count<'a>(pods: impl Iterator<Item = &'a Named>) -> i64 {
    i64::try_from(pods.count()).unwrap_or(i64::MAX)
}

/// The order in which surplus Pods are deleted, the lesser first: without a node, not running, not
/// ready, lower deletion cost, on a node with more Pods of the workload, ready for a shorter time,
/// restarted more often, younger. Times only count by their order of magnitude, so that the
/// youngest Pod is not always the one deleted.
fn deletion_order(
    a: &PodView,
    b: &PodView,
    pods_per_node: &FxHashMap<Arc<str>, usize>,
    now: Timestamp,
) -> Ordering {
    let node_load = |pod: &PodView| {
        pod.node.as_ref().and_then(|node| pods_per_node.get(node)).copied().unwrap_or_default()
    };
    let since = |a: Option<Timestamp>, b: Option<Timestamp>| match (a, b) {
        (Some(first), Some(second)) if first != second => {
            magnitude(first, now).cmp(&magnitude(second, now))
        }
        _ => Ordering::Equal,
    };
    (a.node.is_some().cmp(&b.node.is_some()))
        .then_with(|| a.phase.cmp(&b.phase))
        .then_with(|| a.is_ready().cmp(&b.is_ready()))
        .then_with(|| match a.deletion_cost.cmp(&b.deletion_cost) {
            order if mainstay_fault::is_on("the-dearest-pod-goes-first") => order.reverse(),
            order => order,
        })
        .then_with(|| node_load(b).cmp(&node_load(a)))
        .then_with(|| match since(a.ready_since, b.ready_since) {
            Ordering::Equal if a.ready_since != b.ready_since => a.uid.cmp(&b.uid),
            order => order,
        })
        .then_with(|| b.restarts.cmp(&a.restarts))
        .then_with(|| since(a.created, b.created))
        .then_with(|| a.uid.cmp(&b.uid))
}

/// The age of a timestamp as a power of two of nanoseconds; -1 for the future.
fn magnitude(since: Timestamp, now: Timestamp) -> i64 {
    let ago = now.as_nanosecond() - since.as_nanosecond();
    if ago <= 0 { -1 } else { i64::from(ago.ilog2()) }
}

/// The status of a ReplicaSet or `ReplicationController`.
pub(crate) fn status(
    set: &Object,
    counts: &Counts,
    counts_terminating: bool,
    failure: Option<&str>,
    now: &str,
) -> Value {
    let old = set.get(&["status"]).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut status: Map<String, Value> = old;
    status.insert("replicas".to_owned(), counts.replicas.into());
    put_count(&mut status, "fullyLabeledReplicas", counts.fully_labeled);
    put_count(&mut status, "readyReplicas", counts.ready);
    put_count(&mut status, "availableReplicas", counts.available);
    if counts_terminating {
        status.insert("terminatingReplicas".to_owned(), counts.terminating.into());
    }
    put_count(&mut status, "observedGeneration", set.generation());
    let mut conditions = set.array(&["status", "conditions"]).to_vec();
    let kind = "ReplicaFailure";
    match failure {
        Some(message) => {
            // The first message stays for as long as creation fails.
            if !conditions.iter().any(|condition| condition["type"] == kind) {
                conditions.push(json!({
                    "type": kind, "status": "True", "reason": "FailedCreate", "message": message,
                    "lastTransitionTime": now,
                }));
            }
        }
        None => conditions.retain(|condition| condition["type"] != kind),
    }
    if conditions.is_empty() {
        status.remove("conditions");
    } else {
        status.insert("conditions".to_owned(), Value::Array(conditions));
    }
    Value::Object(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_object::NamespacedName;

    const NOW: &str = "2026-01-01T00:01:00Z";

    fn set(replicas: i64, min_ready: i64) -> Object {
        Object::from_value(json!({
            "metadata": {"name": "rs", "namespace": "n", "uid": "u", "generation": 2},
            "spec": {
                "replicas": replicas, "minReadySeconds": min_ready,
                "template": {"metadata": {"labels": {"app": "a"}}},
            },
        }))
        .unwrap()
    }

    fn pod(name: &str, change: &Value) -> Named {
        let mut pod = Object::from_value(json!({
            "metadata": {
                "name": name, "namespace": "n", "uid": name, "labels": {"app": "a"},
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"nodeName": "node-1"},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:50Z"},
            ]},
        }))
        .unwrap();
        for (path, value) in change.as_object().unwrap() {
            let path: Vec<&str> = path.split('.').collect();
            pod.set(&path, value.clone());
        }
        (NamespacedName::new("n", name), Arc::new(PodView::of(&pod)))
    }

    fn decide_on(set: &Object, pods: &[Named]) -> Decision {
        decide(&Observed { set, pods, now: NOW.parse().unwrap() }, FxHashMap::default)
    }

    #[test]
    fn finished_and_terminating_pods_are_replaced() {
        let pods = [
            pod("a", &json!({})),
            pod("b", &json!({"status.phase": "Failed"})),
            pod("c", &json!({"metadata.deletionTimestamp": NOW})),
        ];
        let decision = decide_on(&set(2, 0), &pods);
        assert_eq!((decision.create, decision.delete.len()), (1, 0));
        assert_eq!(
            decision.counts,
            Counts { replicas: 1, fully_labeled: 1, ready: 1, available: 1, terminating: 1 }
        );
    }

    #[test]
    fn surplus_pods_are_deleted_in_upstreams_order() {
        let pods = [
            pod(
                "dear",
                &json!({"metadata.annotations": {
                    "controller.kubernetes.io/pod-deletion-cost": "5",
                }}),
            ),
            pod("ready-old", &json!({})),
            pod("ready-young", &json!({"metadata.creationTimestamp": "2026-01-01T00:00:55Z"})),
            pod("restarted", &json!({"status.containerStatuses": [{"restartCount": 2}]})),
            pod("unready", &json!({"status.conditions": []})),
            pod("pending", &json!({"status.phase": "Pending"})),
            pod("unscheduled", &json!({"spec.nodeName": "", "status.phase": "Pending"})),
        ];
        let order =
            ["unscheduled", "pending", "unready", "restarted", "ready-young", "ready-old", "dear"];
        for surplus in 0..=7 {
            let decision = decide_on(&set(7 - i64::try_from(surplus).unwrap(), 0), &pods);
            let names: Vec<&str> = decision.delete.iter().map(|(key, _)| &*key.name).collect();
            assert_eq!(names, order[..surplus]);
        }
    }

    #[test]
    fn a_ready_pod_is_available_after_min_ready_seconds() {
        let decision = decide_on(&set(1, 30), &[pod("a", &json!({}))]);
        assert_eq!((decision.counts.ready, decision.counts.available), (1, 0));
        assert_eq!(decision.requeue_after, Some(20));
        assert_eq!(decide_on(&set(1, 10), &[pod("a", &json!({}))]).counts.available, 1);
    }

    #[test]
    fn a_terminating_replica_set_creates_no_pods() {
        let mut terminating = set(3, 0);
        terminating.set(&["metadata", "deletionTimestamp"], NOW.into());
        assert_eq!(decide_on(&terminating, &[]).create, 0);
    }

    #[test]
    fn the_replica_failure_condition_stays_until_creation_succeeds() {
        let mut set = set(1, 0);
        let counts = Counts { replicas: 1, ..Counts::default() };
        set.set(&["status"], status(&set, &counts, true, Some("quota"), NOW));
        assert_eq!(set.condition("ReplicaFailure"), Some("True"));
        assert_eq!(set.i64(&["status", "observedGeneration"]), Some(2));
        let second_status = status(&set, &counts, true, Some("more quota"), "later");
        assert_eq!(Some(&second_status), set.get(&["status"]));
        set.set(&["status"], status(&set, &counts, true, None, NOW));
        assert_eq!(set.get(&["status", "conditions"]), None);
    }
}
