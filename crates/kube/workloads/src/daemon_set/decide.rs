//! DaemonSet decisions: which pods to create and delete, and the new status.

use super::{tolerations, update};
use crate::common::{int_or_percent, put_count};
use crate::placement::{REPELLING, node_matches, untolerated};
use crate::template::REVISION_HASH;
use crate::views::{NodeView, Phase, PodView};
use crate::workload::Named;
use jiff::Timestamp;
use mainstay_object::{NamespacedName, Object};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The state that [`decide`] reads.
pub(super) struct Observed<'a> {
    pub(super) set: &'a Object,
    pub(super) pods: &'a [Named],
    pub(super) nodes: &'a [Arc<NodeView>],
    /// The hash of the current template.
    pub(super) hash: &'a str,
    pub(super) now: Timestamp,
}

/// A failed pod that is about to be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FailedPod {
    pub(super) pod: NamespacedName,
    pub(super) node: Arc<str>,
    pub(super) failed: bool,
}

/// The actions and the status of one reconcile.
#[derive(Debug, Default)]
pub(super) struct Decision {
    /// Nodes that get a pod.
    pub(super) create: Vec<Arc<str>>,
    pub(super) delete: Vec<Named>,
    pub(super) failed_pods: Vec<FailedPod>,
    pub(super) status: Value,
    pub(super) requeue_after: Option<u64>,
}

/// A node, the pods on it or on their way to it, and whether one belongs there.
pub(super) struct DaemonNode<'a> {
    pub(super) node: &'a Arc<NodeView>,
    /// The oldest pod first.
    pub(super) pods: Vec<&'a Named>,
    pub(super) should_run: bool,
    pub(super) may_stay: bool,
}

/// The bounds of a rolling update.
pub(super) struct Bounds {
    pub(super) surge: i64,
    pub(super) unavailable: i64,
    pub(super) min_ready: i64,
    pub(super) now: Timestamp,
}

impl Bounds {
    fn of(observed: &Observed<'_>, desired: i64) -> Self {
        let field =
            |name: &str| observed.set.get(&["spec", "updateStrategy", "rollingUpdate", name]);
        let surge = int_or_percent(field("maxSurge"), "0", desired, true);
        let unavailable = int_or_percent(field("maxUnavailable"), "1", desired, true);
        Self {
            surge,
            // Rounding to zero must not stop an update.
            unavailable: if surge == 0 { unavailable.max(1) } else { unavailable },
            min_ready: observed.set.i64(&["spec", "minReadySeconds"]).unwrap_or_default(),
            now: observed.now,
        }
    }

    pub(super) fn is_available(&self, pod: &PodView) -> bool {
        pod.is_available(self.min_ready, self.now)
    }
}

pub(super) fn is_updated(pod: &PodView, hash: &str) -> bool {
    pod.labels.get(REVISION_HASH).is_some_and(|label| label == hash)
}

/// Decides. `waits` returns for how many more seconds a failed pod on a node is left alone.
pub(super) fn decide(
    observed: &Observed<'_>,
    waits: &dyn Fn(&Arc<str>) -> Option<u64>,
) -> Decision {
    let daemon_nodes = daemon_nodes(observed);
    let desired = daemon_nodes.iter().filter(|daemon_node| daemon_node.should_run).count();
    let desired = i64::try_from(desired).unwrap_or(i64::MAX);
    let bounds = Bounds::of(observed, desired);
    let mut decision = Decision {
        status: status(observed, &daemon_nodes, desired, &bounds),
        ..Decision::default()
    };
    for daemon_node in &daemon_nodes {
        manage(observed, daemon_node, &bounds, waits, &mut decision);
    }
    // Pods that wait for a node that no longer exists.
    for pod in observed.pods {
        let orphaned_pods =
            pod.1.node.is_none()
                && pod.1.target.as_ref().is_some_and(|target| {
                    !observed.nodes.iter().any(|node| *node.name == **target)
                });
        if orphaned_pods && !pod.1.terminating {
            decision.delete.push(pod.clone());
        }
    }
    let on_delete = observed.set.str(&["spec", "updateStrategy", "type"]) == Some("OnDelete");
    if decision.create.is_empty() && decision.delete.is_empty() && !on_delete {
        update::roll(&daemon_nodes, desired, &bounds, observed.hash, &mut decision);
    }
    let soon = observed.pods.iter().filter_map(|(_, pod)| pod.ready_since).filter_map(|since| {
        let remaining = bounds.min_ready - (observed.now.as_second() - since.as_second());
        u64::try_from(remaining).ok().filter(|remaining| *remaining > 0)
    });
    decision.requeue_after = soon.chain(decision.requeue_after).min();
    decision
}

fn daemon_nodes<'a>(observed: &Observed<'a>) -> Vec<DaemonNode<'a>> {
    let tolerations = tolerations(observed.set);
    let nothing = Value::Null;
    let spec = observed.set.get(&["spec", "template", "spec"]).unwrap_or(&nothing);
    let only = spec.get("nodeName").and_then(Value::as_str).filter(|name| !name.is_empty());
    let daemon_node = |node: &'a Arc<NodeView>| {
        let fits = only.is_none_or(|only| *node.name == *only) && node_matches(spec, node);
        let free = |effects: &[&str]| untolerated(&node.taints, &tolerations, effects).is_none();
        let mut pods: Vec<&Named> = observed
            .pods
            .iter()
            .filter(|(_, pod)| pod.target.as_deref() == Some(&*node.name))
            .filter(|(_, pod)| !(pod.is_finished() && pod.terminating))
            .collect();
        pods.sort_by_key(|(key, pod)| (pod.node.is_none(), pod.created, key.clone()));
        DaemonNode {
            node,
            pods,
            should_run: fits && free(&REPELLING),
            may_stay: fits && free(&["NoExecute"]),
        }
    };
    observed.nodes.iter().map(daemon_node).collect()
}

/// Creates the pod that a node lacks and deletes pods that do not belong there.
fn manage(
    observed: &Observed<'_>,
    daemon_node: &DaemonNode<'_>,
    bounds: &Bounds,
    waits: &dyn Fn(&Arc<str>) -> Option<u64>,
    decision: &mut Decision,
) {
    if daemon_node.should_run && daemon_node.pods.is_empty() {
        decision.create.push(Arc::clone(&daemon_node.node.name));
        return;
    }
    let living = daemon_node.pods.iter().filter(|(_, pod)| !pod.terminating);
    if !daemon_node.may_stay {
        decision.delete.extend(living.map(|pod| (*pod).clone()));
        return;
    }
    let mut running: Vec<&Named> = Vec::new();
    for pod in living {
        let failed = pod.1.phase == Phase::Failed;
        if !pod.1.is_finished() {
            running.push(pod);
            continue;
        }
        if let Some(wait) = waits(&daemon_node.node.name).filter(|_| failed) {
            decision.requeue_after =
                Some(decision.requeue_after.map_or(wait, |requeue_after| requeue_after.min(wait)));
            continue;
        }
        let node = Arc::clone(&daemon_node.node.name);
        decision.failed_pods.push(FailedPod { pod: pod.0.clone(), node, failed });
        decision.delete.push((*pod).clone());
    }
    if bounds.surge == 0 {
        decision.delete.extend(running.into_iter().skip(1).cloned());
        return;
    }
    if running.is_empty() && daemon_node.should_run {
        decision.create.push(Arc::clone(&daemon_node.node.name));
        return;
    }
    // With surge, an old and a new pod may run on one node at a time.
    let (new, old): (Vec<&Named>, Vec<&Named>) =
        running.into_iter().partition(|(_, pod)| is_updated(pod, observed.hash));
    decision.delete.extend(new.iter().skip(1).chain(old.iter().skip(1)).map(|pod| (*pod).clone()));
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && (!old.1.is_ready() || bounds.is_available(&new.1))
    {
        decision.delete.push((*old).clone());
    }
}

fn status(
    observed: &Observed<'_>,
    daemon_nodes: &[DaemonNode<'_>],
    desired: i64,
    bounds: &Bounds,
) -> Value {
    let set = observed.set;
    let (mut scheduled, mut misplaced, mut ready, mut available, mut current) = (0, 0, 0, 0, 0);
    for daemon_node in daemon_nodes {
        let Some((_, pod)) = daemon_node.pods.first() else { continue };
        if !daemon_node.should_run {
            misplaced += 1;
            continue;
        }
        scheduled += 1;
        ready += i64::from(pod.is_ready());
        available += i64::from(bounds.is_available(pod));
        current += i64::from(is_updated(pod, observed.hash));
    }
    let mut status: Map<String, Value> =
        set.get(&["status"]).and_then(Value::as_object).cloned().unwrap_or_default();
    for (field, count) in [
        ("currentNumberScheduled", scheduled),
        ("desiredNumberScheduled", desired),
        ("numberMisscheduled", misplaced),
        ("numberReady", ready),
    ] {
        status.insert(field.to_owned(), count.into());
    }
    for (field, count) in [
        ("numberAvailable", available),
        ("numberUnavailable", desired - available),
        ("updatedNumberScheduled", current),
        ("observedGeneration", set.generation()),
    ] {
        put_count(&mut status, field, count);
    }
    Value::Object(status)
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
