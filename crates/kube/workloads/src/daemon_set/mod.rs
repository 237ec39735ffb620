//! The `DaemonSet` controller: one pod on each node that the template selects.
//!
//! Pods get an affinity to their node and tolerations for its troubles, and go through the
//! scheduler. A new template replaces pods node by node, `maxUnavailable` at a time or with
//! `maxSurge` more.

mod decide;
mod update;

use crate::Started;
use crate::common::Context;
use crate::template::{self, REVISION_HASH};
use crate::views::{NodeView, Views};
use crate::workload::{Pods, Revisions, Workload, WorkloadController, requeue_after};
use decide::{FailedPod, Observed};
use jiff::Timestamp;
use mainstay_client::{Action, Cache, Error};
use mainstay_object::{NamespacedName, Object, builtin};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::sync::Arc;

/// Seconds until a failed pod is replaced: the first delay, and the longest.
const BACKOFF: (i64, i64) = (1, 15 * 60);

/// Starts the controller of `DaemonSets`.
pub(crate) fn start(context: &Context, views: &Views, started: &mut Started) {
    let controller =
        WorkloadController::new("daemon-sets", builtin::DAEMON_SET, &views.daemon_sets)
            .owns(&views.pods)
            .owns(&views.revisions)
            .reads(&views.nodes);
    let (queue, all) = (controller.queue(), views.daemon_sets.clone());
    views.nodes.subscribe(move |change| {
        if let (Some(before), Some(after)) = (change.before, change.after)
            && before.labels == after.labels
            && before.taints == after.taints
        {
            return;
        }
        for (key, _) in all.list(None) {
            queue.add(key);
        }
    });
    let context_of = context.with_component("daemonset-controller");
    let sets = DaemonSets {
        nodes: views.nodes.clone(),
        pods: Pods::new(&context_of, views),
        revisions: Revisions::new(&context_of, views, REVISION_HASH),
        context: context_of,
        failed: Mutex::default(),
    };
    controller.start(sets, context, started);
}

/// Failures by `DaemonSet` and node.
type FailureTimes = FxHashMap<(NamespacedName, Arc<str>), (Timestamp, i64)>;

struct DaemonSets {
    context: Context,
    nodes: Cache<NodeView>,
    pods: Pods,
    revisions: Revisions,
    /// When a pod of a `DaemonSet` last failed on a node, and the delay of the next one in seconds.
    failed: Mutex<FailureTimes>,
}

impl Workload for DaemonSets {
    async fn reconcile(&self, set: Object) -> Result<Action, Error> {
        if set.is_terminating() {
            return Ok(Action::Done);
        }
        let pods = self.pods.of(&set).await?;
        let history = self.revisions.of(&set).await?;
        let hash = history.update.1.labels.get(REVISION_HASH).cloned().unwrap_or_default();
        let nodes: Vec<Arc<NodeView>> =
            self.nodes.list(None).into_iter().map(|(_, node)| node).collect();
        let now = self.context.clock.now();
        let waits = |node: &Arc<str>| {
            let failed = self.failed.lock();
            let (since, wait) = failed.get(&(set.key(), Arc::clone(node)))?;
            let remaining = wait - (now.as_second() - since.as_second());
            u64::try_from(remaining).ok().filter(|remaining| *remaining > 0)
        };
        let observed = Observed { set: &set, pods: &pods, nodes: &nodes, hash: &hash, now };
        let decision = decide::decide(&observed, &waits);
        for failed_pods in &decision.failed_pods {
            self.report_failures(&set, failed_pods, now);
        }
        self.pods.delete(&set, &decision.delete).await?;
        let new_pods = decision.create.iter().map(|node| pod(&set, node, &hash)).collect();
        let outcome = self.pods.create(&set, new_pods).await;
        let live: Vec<&String> =
            pods.iter().filter_map(|(_, pod)| pod.labels.get(REVISION_HASH)).collect();
        self.revisions
            .truncate(&set, &history, |(_, view)| {
                view.labels.get(REVISION_HASH).is_some_and(|hash| live.contains(&hash))
            })
            .await?;
        self.context.write_status(&builtin::DAEMON_SET, &set, decision.status).await?;
        outcome.map(|()| requeue_after(self.context.clock, decision.requeue_after))
    }
}

impl DaemonSets {
    fn report_failures(&self, set: &Object, failed_pods: &FailedPod, now: Timestamp) {
        let (key, node) = (&failed_pods.pod, &failed_pods.node);
        if failed_pods.failed {
            let message =
                format!("Found failed daemon pod {key} on node {node}, will try to kill it");
            self.context.report_warning(set, "FailedDaemonPod", message);
            let mut failed = self.failed.lock();
            let entry = failed.entry((set.key(), Arc::clone(node))).or_insert((now, 0));
            *entry = (now, (entry.1 * 2).clamp(BACKOFF.0, BACKOFF.1));
        } else {
            let message =
                format!("Found succeeded daemon pod {key} on node {node}, will try to delete it");
            self.context.report_normal(set, "SucceededDaemonPod", message);
        }
    }
}

/// The pod for a node.
fn pod(set: &Object, node: &str, hash: &str) -> Object {
    let template = set.get(&["spec", "template"]).cloned().unwrap_or_default();
    let mut pod = template::generated_pod(set, &template);
    pod.set_label(REVISION_HASH, hash);
    if let Some(generation) = set.annotation("deprecated.daemonset.template.generation") {
        pod.set_label("pod-template-generation", generation);
    }
    pod.set(
        &["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"],
        json!({"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": [node]},
        ]}]}),
    );
    pod.set(&["spec", "tolerations"], Value::Array(tolerations(set)));
    pod
}

/// The tolerations of the pods: those of the template and those of all node conditions.
fn tolerations(set: &Object) -> Vec<Value> {
    let mut list = set.array(&["spec", "template", "spec", "tolerations"]).to_vec();
    let host_network = set.bool(&["spec", "template", "spec", "hostNetwork"]) == Some(true);
    for (key, effect) in [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
        ("network-unavailable", "NoSchedule"),
    ] {
        if key == "network-unavailable" && !host_network {
            continue;
        }
        let key = format!("node.kubernetes.io/{key}");
        let toleration = json!({"key": key, "operator": "Exists", "effect": effect});
        let same = list
            .iter_mut()
            .find(|toleration| toleration["key"] == key && toleration["effect"] == effect);
        match same {
            Some(same) if same["operator"] == "Exists" => *same = toleration,
            _ => list.push(toleration),
        }
    }
    list
}
