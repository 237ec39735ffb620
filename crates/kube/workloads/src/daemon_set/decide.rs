//! DaemonSet decisions: which pods to create and delete, and the new status.

use super::{tolerations, update};
use crate::common::{int_or_percent, put_count};
use crate::placement::{REPELLING, untolerated, wants_node};
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
pub(super) struct News {
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
    pub(super) news: Vec<News>,
    pub(super) status: Value,
    pub(super) again: Option<u64>,
}

/// A node, the pods on it or on their way to it, and whether one belongs there.
pub(super) struct Post<'a> {
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
    let posts = posts(observed);
    let desired = posts.iter().filter(|post| post.should_run).count();
    let desired = i64::try_from(desired).unwrap_or(i64::MAX);
    let bounds = Bounds::of(observed, desired);
    let mut decision =
        Decision { status: status(observed, &posts, desired, &bounds), ..Decision::default() };
    for post in &posts {
        manage(observed, post, &bounds, waits, &mut decision);
    }
    // Pods that wait for a node that no longer exists.
    for pod in observed.pods {
        let lost =
            pod.1.node.is_none()
                && pod.1.target.as_ref().is_some_and(|target| {
                    !observed.nodes.iter().any(|node| *node.name == **target)
                });
        if lost && !pod.1.terminating {
            decision.delete.push(pod.clone());
        }
    }
    let on_delete = observed.set.str(&["spec", "updateStrategy", "type"]) == Some("OnDelete");
    if decision.create.is_empty() && decision.delete.is_empty() && !on_delete {
        update::roll(&posts, desired, &bounds, observed.hash, &mut decision);
    }
    let soon = observed.pods.iter().filter_map(|(_, pod)| pod.ready_since).filter_map(|since| {
        let left = bounds.min_ready - (observed.now.as_second() - since.as_second());
        u64::try_from(left).ok().filter(|left| *left > 0)
    });
    decision.again = soon.chain(decision.again).min();
    decision
}

fn posts<'a>(observed: &Observed<'a>) -> Vec<Post<'a>> {
    let tolerations = tolerations(observed.set);
    let nothing = Value::Null;
    let spec = observed.set.get(&["spec", "template", "spec"]).unwrap_or(&nothing);
    let only = spec.get("nodeName").and_then(Value::as_str).filter(|name| !name.is_empty());
    let post = |node: &'a Arc<NodeView>| {
        let fits = only.is_none_or(|only| *node.name == *only) && wants_node(spec, node);
        let free = |effects: &[&str]| untolerated(&node.taints, &tolerations, effects).is_none();
        let mut pods: Vec<&Named> = observed
            .pods
            .iter()
            .filter(|(_, pod)| pod.target.as_deref() == Some(&*node.name))
            .filter(|(_, pod)| !(pod.is_finished() && pod.terminating))
            .collect();
        pods.sort_by_key(|(key, pod)| (pod.node.is_none(), pod.created, key.clone()));
        Post {
            node,
            pods,
            should_run: fits && free(&REPELLING),
            may_stay: fits && free(&["NoExecute"]),
        }
    };
    observed.nodes.iter().map(post).collect()
}

/// Creates the pod that a node lacks and deletes pods that do not belong there.
fn manage(
    observed: &Observed<'_>,
    post: &Post<'_>,
    bounds: &Bounds,
    waits: &dyn Fn(&Arc<str>) -> Option<u64>,
    decision: &mut Decision,
) {
    if post.should_run && post.pods.is_empty() {
        decision.create.push(Arc::clone(&post.node.name));
        return;
    }
    let living = post.pods.iter().filter(|(_, pod)| !pod.terminating);
    if !post.may_stay {
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
        if let Some(wait) = waits(&post.node.name).filter(|_| failed) {
            decision.again = Some(decision.again.map_or(wait, |again| again.min(wait)));
            continue;
        }
        let node = Arc::clone(&post.node.name);
        decision.news.push(News { pod: pod.0.clone(), node, failed });
        decision.delete.push((*pod).clone());
    }
    if bounds.surge == 0 {
        decision.delete.extend(running.into_iter().skip(1).cloned());
        return;
    }
    if running.is_empty() && post.should_run {
        decision.create.push(Arc::clone(&post.node.name));
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

fn status(observed: &Observed<'_>, posts: &[Post<'_>], desired: i64, bounds: &Bounds) -> Value {
    let set = observed.set;
    let (mut scheduled, mut misplaced, mut ready, mut available, mut current) = (0, 0, 0, 0, 0);
    for post in posts {
        let Some((_, pod)) = post.pods.first() else { continue };
        if !post.should_run {
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
