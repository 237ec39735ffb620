//! The scheduler: binds Pods to nodes.
//!
//! ```text
//! change ─► all pending Pods, by priority ─► a snapshot of nodes and Pods
//!        ─► choose a node for each, which updates the snapshot ─► bind, or report why not
//! ```
//!
//! One round considers all pending Pods, so each sees the resources that the Pods before it take.
//! Bindings that the cache does not have yet are remembered. A round runs when Pods or nodes
//! change; an unschedulable Pod costs nothing in between.

mod affinity;
mod choose;
mod fit;
mod snapshot;

use crate::Started;
use crate::common::{Context, is_object_gone};
use crate::views::{PodView, UNASSIGNED, Views};
use choose::{Budget, Choice, choose};
use futures::{StreamExt, stream};
use mainstay_client::{Action, Cache, Controller, DeleteOptions, Error, Reconciler, Selection};
use mainstay_object::{NamespacedName, Object, builtin};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use snapshot::{Named, Snapshot};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of bindings that are written concurrently.
const CONCURRENT_BINDINGS: usize = 16;

/// Starts the scheduler.
pub(crate) fn start(context: &Context, views: &Views, started: &mut Started) {
    let controller = Controller::new("scheduler").workers(1);
    let round = || NamespacedName::cluster("round");
    let queue = controller.queue();
    views.pods.subscribe(move |change| {
        // A Pod is pending, or a scheduled Pod was deleted, is terminating or has changed.
        let waits = change.after.is_some_and(|pod| pod.node.is_none() && !pod.is_finished());
        let moved = change.before.is_some_and(|before| {
            before.node.is_some()
                && change.after.is_none_or(|after| {
                    after.is_finished() != before.is_finished()
                        || after.terminating != before.terminating
                        || after.labels != before.labels
                        || after.needs.requests != before.needs.requests
                })
        });
        if waits || moved {
            queue.add(round());
        }
    });
    let queue = controller.queue();
    views.nodes.subscribe(move |_| queue.add(round()));
    let queue = controller.queue();
    let namespaces = Cache::builder(Selection::all(builtin::NAMESPACE), |namespace| {
        let labels = namespace.labels();
        let labels: BTreeMap<String, String> =
            labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Some(labels)
    })
    .subscribe(move |_| queue.add(round()))
    .start(&context.cluster, context.stop.clone());
    let controller =
        controller.reads(&views.pods).reads(&views.nodes).reads(&views.budgets).reads(&namespaces);
    let scheduler = Scheduler {
        context: context.with_user_agent("kube-scheduler").with_component("default-scheduler"),
        views: views.clone(),
        namespaces,
        state: Mutex::default(),
    };
    started.controller(controller.start(scheduler, context.stop.clone()));
}

/// The state between rounds, by the uid of Pods.
#[derive(Default)]
struct State {
    /// Bindings that the cache does not have yet.
    assumed: FxHashMap<Arc<str>, (NamespacedName, Arc<str>)>,
    /// The last message for each unschedulable Pod.
    last_messages: FxHashMap<Arc<str>, String>,
    /// The node where Pods were preempted for a Pod.
    nominated: FxHashMap<Arc<str>, Arc<str>>,
}

struct Scheduler {
    context: Context,
    views: Views,
    namespaces: Cache<BTreeMap<String, String>>,
    state: Mutex<State>,
}

impl Reconciler for Scheduler {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, _: &NamespacedName) -> Result<Action, Error> {
        let mut waiting = self.views.pods.indexed(UNASSIGNED);
        self.forget(&waiting);
        waiting.retain(|(_, pod)| pod.needs.schedulable && !pod.terminating && !pod.is_finished());
        {
            let state = self.state.lock();
            waiting.retain(|(_, pod)| !state.assumed.contains_key(&pod.uid));
        }
        if waiting.is_empty() {
            return Ok(Action::Done);
        }
        waiting.sort_by_key(|(key, pod)| (Reverse(pod.needs.priority), pod.created, key.clone()));
        let outcomes = self.round(waiting);
        let failures: Vec<Error> = stream::iter(outcomes)
            .map(|(pod, choice)| async move {
                match choice {
                    Choice::Node(node) => self.bind(&pod, &node).await,
                    Choice::Unschedulable(message) => {
                        self.report_unschedulable(&pod, &message, None).await
                    }
                    Choice::Preempt { node, victims, message } => {
                        self.preempt(&pod, &node, &victims, &message).await
                    }
                }
            })
            .buffer_unordered(CONCURRENT_BINDINGS)
            .filter_map(|outcome| async { outcome.err().filter(|error| !is_object_gone(error)) })
            .collect()
            .await;
        failures.into_iter().next().map_or(Ok(Action::Done), Err)
    }
}

impl Scheduler {
    /// Drops bindings that the cache has by now, and Pods that are no longer pending.
    fn forget(&self, waiting: &[Named]) {
        let mut state = self.state.lock();
        if state.assumed.is_empty() && state.last_messages.is_empty() && state.nominated.is_empty()
        {
            return;
        }
        let present: rustc_hash::FxHashSet<&Arc<str>> =
            waiting.iter().map(|(_, pod)| &pod.uid).collect();
        state.assumed.retain(|uid, _| present.contains(uid));
        state.last_messages.retain(|uid, _| present.contains(uid));
        state.nominated.retain(|uid, _| present.contains(uid));
    }

    fn snapshot(&self) -> Snapshot {
        let nodes = self.views.nodes.list(None);
        let names: Vec<Arc<str>> = nodes.iter().map(|(key, _)| Arc::clone(&key.name)).collect();
        let mut snapshot = Snapshot::new(nodes.into_iter().map(|(_, node)| node));
        snapshot.namespaces = self
            .namespaces
            .list(None)
            .into_iter()
            .map(|(key, labels)| (Arc::clone(&key.name), labels))
            .collect();
        for name in names {
            for pod in self.views.pods.indexed(&format!("node/{name}")) {
                if !pod.1.is_finished() {
                    snapshot.add_pod(&name, pod);
                }
            }
        }
        let state = self.state.lock();
        for (uid, (key, node)) in &state.assumed {
            if let Some(pod) = self.views.pods.get(key).filter(|pod| pod.uid == *uid) {
                snapshot.add_pod(node, (key.clone(), pod));
            }
        }
        snapshot
    }

    fn round(&self, waiting: Vec<Named>) -> Vec<(Named, Choice)> {
        let mut snapshot = self.snapshot();
        let budgets: Vec<Budget> = self
            .views
            .budgets
            .list(None)
            .into_iter()
            .filter_map(|(key, budget)| {
                Some(Budget {
                    namespace: Arc::clone(&key.namespace),
                    selector: budget.selector.clone()?,
                    allowed: budget.allowed,
                })
            })
            .collect();
        let mut outcomes = Vec::new();
        for pod in waiting {
            let mut choice = choose(&snapshot, &budgets, &pod);
            let mut state = self.state.lock();
            let uid = &pod.1.uid;
            match &choice {
                Choice::Node(node) => {
                    state.assumed.insert(Arc::clone(uid), (pod.0.clone(), Arc::clone(node)));
                    snapshot.add_pod(node, pod.clone());
                }
                Choice::Preempt { node, message, .. } => {
                    let nominated_node = state.nominated.get(uid).cloned();
                    // Reserves the nominated node, so that no Pod of lower priority takes it
                    // meanwhile.
                    snapshot.add_pod(nominated_node.as_ref().unwrap_or(node), pod.clone());
                    if let Some(nominated_node) = nominated_node
                        && self.is_emptying(&nominated_node, &pod.1)
                    {
                        let message = format!(
                            "{message} no new claims to deallocate, preemption: not eligible due to terminating pod on the nominated node."
                        );
                        choice = Choice::Unschedulable(message);
                    } else {
                        state.nominated.insert(Arc::clone(uid), Arc::clone(node));
                    }
                }
                Choice::Unschedulable(_) => {
                    if let Some(node) = state.nominated.get(uid).cloned() {
                        snapshot.add_pod(&node, pod.clone());
                    }
                }
            }
            drop(state);
            outcomes.push((pod, choice));
        }
        outcomes
    }

    /// Whether Pods of lower priority are terminating on a node.
    fn is_emptying(&self, node: &str, pod: &PodView) -> bool {
        let node_pods = self.views.pods.indexed(&format!("node/{node}"));
        node_pods
            .iter()
            .any(|(_, other)| other.terminating && other.needs.priority < pod.needs.priority)
    }

    async fn bind(&self, (key, pod): &Named, node: &str) -> Result<(), Error> {
        let cluster = &self.context.cluster;
        let binding = Object::from_value(json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": &*key.name, "namespace": &*key.namespace, "uid": &*pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }))
        .unwrap_or_default();
        let bound = cluster
            .create_subresource(&builtin::POD, key.namespace(), &key.name, "binding", &binding)
            .await;
        match bound {
            Ok(_) => {
                let message = format!("Successfully assigned {key} to {node}");
                if !mainstay_fault::is_on("scheduled-pods-have-no-event") {
                    self.context.report_action(
                        &event_target(key, pod),
                        "Binding",
                        "Scheduled",
                        message,
                    );
                }
                Ok(())
            }
            Err(error) => {
                self.state.lock().assumed.remove(&pod.uid);
                // The Pod was bound or changed meanwhile: that event is on its way.
                if error.is_conflict() { Ok(()) } else { Err(error) }
            }
        }
    }

    /// Reports why a Pod is unschedulable, unless the message is unchanged.
    async fn report_unschedulable(
        &self,
        pod: &Named,
        message: &str,
        nominated: Option<&str>,
    ) -> Result<(), Error> {
        let (key, view) = pod;
        let last_messages = self
            .state
            .lock()
            .last_messages
            .get(&view.uid)
            .is_some_and(|last_message| last_message == message);
        if last_messages && nominated.is_none() {
            return Ok(());
        }
        let cluster = &self.context.cluster;
        let live = cluster.get(&builtin::POD, key.namespace(), &key.name).await?;
        let assigned = live.str(&["spec", "nodeName"]).is_some_and(|node| !node.is_empty());
        if live.uid() != &*view.uid || assigned {
            return Ok(());
        }
        let now = self.context.clock.now_rfc3339();
        if let Some(mut status) = unschedulable(&live, message, &now) {
            if let Some(node) = nominated {
                status["nominatedNodeName"] = node.into();
            }
            self.context.write_status(&builtin::POD, &live, status).await?;
            self.context.report_failed_action(
                &live,
                "Scheduling",
                "FailedScheduling",
                message.to_owned(),
            );
        }
        self.state.lock().last_messages.insert(Arc::clone(&view.uid), message.to_owned());
        Ok(())
    }

    /// Preempts Pods on a node for a Pod of higher priority.
    async fn preempt(
        &self,
        pod: &Named,
        node: &str,
        victims: &[Named],
        message: &str,
    ) -> Result<(), Error> {
        let cluster = &self.context.cluster;
        self.report_unschedulable(pod, message, Some(node)).await?;
        for (key, victim) in victims {
            if victim.terminating {
                continue;
            }
            let live = cluster.get(&builtin::POD, key.namespace(), &key.name).await?;
            if live.uid() != &*victim.uid {
                continue;
            }
            let now = self.context.clock.now_rfc3339();
            let message =
                "default-scheduler: preempting to accommodate a higher priority pod".to_owned();
            let status = disrupted(&live, "PreemptionByScheduler", &message, &now);
            self.context.write_status(&builtin::POD, &live, status).await?;
            let options = DeleteOptions::uid(victim.uid.as_ref());
            cluster.ensure_deleted(&builtin::POD, key.namespace(), &key.name, &options).await?;
            let message = format!("Preempted by pod {} on node {node}", pod.1.uid);
            self.context.report_action(&live, "Preempting", "Preempted", message);
        }
        Ok(())
    }
}

/// The fields of a Pod that an event about it needs.
fn event_target(key: &NamespacedName, pod: &PodView) -> Object {
    let mut object = Object::new(&builtin::POD.gvk(), &key.name);
    object.set(&["metadata", "namespace"], (*key.namespace).into());
    object.set(&["metadata", "uid"], (*pod.uid).into());
    object
}

/// The status of a Pod with the condition `DisruptionTarget`, its reason and its message.
pub(crate) fn disrupted(pod: &Object, reason: &str, message: &str, now: &str) -> Value {
    let mut conditions = pod.array(&["status", "conditions"]).to_vec();
    conditions.retain(|condition| condition["type"] != "DisruptionTarget");
    conditions.push(json!({
        "type": "DisruptionTarget", "status": "True", "reason": reason, "message": message,
        "lastProbeTime": null, "lastTransitionTime": now,
    }));
    let mut status = pod.get(&["status"]).cloned().unwrap_or_else(|| json!({}));
    status["conditions"] = Value::Array(conditions);
    status
}

/// The status of an unschedulable Pod; none if it has the condition already.
fn unschedulable(pod: &Object, message: &str, now: &str) -> Option<Value> {
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
    let same = |old: &Value| {
        ["status", "reason", "message"].iter().all(|field| old.get(field) == condition.get(field))
    };
    match old {
        Some(at) if same(&conditions[at]) => return None,
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

    #[test]
    fn an_unschedulable_condition_is_written_once() {
        let mut pod = Object::from_value(json!({"spec": {}})).unwrap();
        pod.set(&["status"], unschedulable(&pod, "why", "t1").unwrap());
        assert_eq!(unschedulable(&pod, "why", "t2"), None);
        assert!(unschedulable(&pod, "else", "t2").is_some());
    }
}
