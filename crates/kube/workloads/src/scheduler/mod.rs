//! The scheduler: pods that no node has yet get one.
//!
//! ```text
//! something changed ─► all waiting pods, the most important first ─► a world of nodes and pods
//!                  ─► choose for each, which changes the world ─► bind, or say why not
//! ```
//!
//! One round looks at all pods that wait, so what one of them takes is seen by the next. What was
//! bound and is not in the cache yet is remembered. Rounds happen when pods or nodes change; a pod
//! that no node takes costs nothing in between.

mod choose;
mod fit;
mod near;
mod world;

use crate::Started;
use crate::common::{Context, overtaken};
use crate::views::{PodView, UNASSIGNED, Views};
use choose::{Budget, Choice, choose};
use futures::{StreamExt, stream};
use mainstay_client::{Action, Cache, Controller, DeleteOptions, Error, Reconciler, Selection};
use mainstay_object::{NamespacedName, Object, known};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use world::{Named, World};

/// How many bindings are written at the same time.
const AT_ONCE: usize = 16;

/// Starts the scheduler.
pub(crate) fn start(context: &Context, views: &Views, started: &mut Started) {
    let controller = Controller::new("scheduler").workers(1);
    let round = || NamespacedName::cluster("round");
    let queue = controller.queue();
    views.pods.subscribe(move |change| {
        // A pod waits, or one that was somewhere has gone, is going or has become another.
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
    let namespaces = Cache::builder(Selection::all(known::NAMESPACE), |namespace| {
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
        context: context.named("kube-scheduler").signed("default-scheduler"),
        views: views.clone(),
        namespaces,
        state: Mutex::default(),
    };
    started.controller(controller.start(scheduler, context.stop.clone()));
}

/// What is remembered between rounds, by the uid of pods.
#[derive(Default)]
struct State {
    /// Bound to a node, and not in the cache yet.
    assumed: FxHashMap<Arc<str>, (NamespacedName, Arc<str>)>,
    /// What was said last of pods that no node takes.
    said: FxHashMap<Arc<str>, String>,
    /// The node where others had to go for a pod.
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
                    Choice::Nowhere(why) => self.refuse(&pod, &why, None).await,
                    Choice::Instead { node, victims, why } => {
                        self.make_room(&pod, &node, &victims, &why).await
                    }
                }
            })
            .buffer_unordered(AT_ONCE)
            .filter_map(|outcome| async { outcome.err().filter(|error| !overtaken(error)) })
            .collect()
            .await;
        failures.into_iter().next().map_or(Ok(Action::Done), Err)
    }
}

impl Scheduler {
    /// Forgets what the cache knows by now, and pods that wait no more.
    fn forget(&self, waiting: &[Named]) {
        let mut state = self.state.lock();
        if state.assumed.is_empty() && state.said.is_empty() && state.nominated.is_empty() {
            return;
        }
        let present: rustc_hash::FxHashSet<&Arc<str>> =
            waiting.iter().map(|(_, pod)| &pod.uid).collect();
        state.assumed.retain(|uid, _| present.contains(uid));
        state.said.retain(|uid, _| present.contains(uid));
        state.nominated.retain(|uid, _| present.contains(uid));
    }

    fn world(&self) -> World {
        let nodes = self.views.nodes.list(None);
        let names: Vec<Arc<str>> = nodes.iter().map(|(key, _)| Arc::clone(&key.name)).collect();
        let mut world = World::new(nodes.into_iter().map(|(_, node)| node));
        world.namespaces = self
            .namespaces
            .list(None)
            .into_iter()
            .map(|(key, labels)| (Arc::clone(&key.name), labels))
            .collect();
        for name in names {
            for pod in self.views.pods.indexed(&format!("node/{name}")) {
                if !pod.1.is_finished() {
                    world.put(&name, pod);
                }
            }
        }
        let state = self.state.lock();
        for (uid, (key, node)) in &state.assumed {
            if let Some(pod) = self.views.pods.get(key).filter(|pod| pod.uid == *uid) {
                world.put(node, (key.clone(), pod));
            }
        }
        world
    }

    fn round(&self, waiting: Vec<Named>) -> Vec<(Named, Choice)> {
        let mut world = self.world();
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
            let mut choice = choose(&world, &budgets, &pod);
            let mut state = self.state.lock();
            let uid = &pod.1.uid;
            match &choice {
                Choice::Node(node) => {
                    state.assumed.insert(Arc::clone(uid), (pod.0.clone(), Arc::clone(node)));
                    world.put(node, pod.clone());
                }
                Choice::Instead { node, why, .. } => {
                    let known = state.nominated.get(uid).cloned();
                    // Nobody of less importance takes the place meanwhile.
                    world.put(known.as_ref().unwrap_or(node), pod.clone());
                    if let Some(known) = known
                        && self.is_emptying(&known, &pod.1)
                    {
                        let why = format!(
                            "{why} no new claims to deallocate, preemption: not eligible due to terminating pod on the nominated node."
                        );
                        choice = Choice::Nowhere(why);
                    } else {
                        state.nominated.insert(Arc::clone(uid), Arc::clone(node));
                    }
                }
                Choice::Nowhere(_) => {
                    if let Some(node) = state.nominated.get(uid).cloned() {
                        world.put(&node, pod.clone());
                    }
                }
            }
            drop(state);
            outcomes.push((pod, choice));
        }
        outcomes
    }

    /// Whether pods of lower priority are about to leave a node.
    fn is_emptying(&self, node: &str, pod: &PodView) -> bool {
        let there = self.views.pods.indexed(&format!("node/{node}"));
        there
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
            .create_subresource(&known::POD, key.namespace(), &key.name, "binding", &binding)
            .await;
        match bound {
            Ok(_) => {
                let message = format!("Successfully assigned {key} to {node}");
                if !mainstay_fault::is_on("scheduled-pods-have-no-event") {
                    self.context.did(&about(key, pod), "Binding", "Scheduled", message);
                }
                Ok(())
            }
            Err(error) => {
                self.state.lock().assumed.remove(&pod.uid);
                // Assigned meanwhile, or changed: the event of that is on its way.
                if error.is_conflict() { Ok(()) } else { Err(error) }
            }
        }
    }

    /// Says why no node takes a pod, unless that was said.
    async fn refuse(&self, pod: &Named, why: &str, nominated: Option<&str>) -> Result<(), Error> {
        let (key, view) = pod;
        let said = self.state.lock().said.get(&view.uid).is_some_and(|said| said == why);
        if said && nominated.is_none() {
            return Ok(());
        }
        let cluster = &self.context.cluster;
        let live = cluster.get(&known::POD, key.namespace(), &key.name).await?;
        let assigned = live.str(&["spec", "nodeName"]).is_some_and(|node| !node.is_empty());
        if live.uid() != &*view.uid || assigned {
            return Ok(());
        }
        let now = self.context.clock.now_rfc3339();
        if let Some(mut status) = unschedulable(&live, why, &now) {
            if let Some(node) = nominated {
                status["nominatedNodeName"] = node.into();
            }
            self.context.write_status(&known::POD, &live, status).await?;
            self.context.could_not(&live, "Scheduling", "FailedScheduling", why.to_owned());
        }
        self.state.lock().said.insert(Arc::clone(&view.uid), why.to_owned());
        Ok(())
    }

    /// Makes pods leave a node for one that is more important.
    async fn make_room(
        &self,
        pod: &Named,
        node: &str,
        victims: &[Named],
        why: &str,
    ) -> Result<(), Error> {
        let cluster = &self.context.cluster;
        self.refuse(pod, why, Some(node)).await?;
        for (key, victim) in victims {
            if victim.terminating {
                continue;
            }
            let live = cluster.get(&known::POD, key.namespace(), &key.name).await?;
            if live.uid() != &*victim.uid {
                continue;
            }
            let now = self.context.clock.now_rfc3339();
            let message =
                "default-scheduler: preempting to accommodate a higher priority pod".to_owned();
            let status = disrupted(&live, "PreemptionByScheduler", &message, &now);
            self.context.write_status(&known::POD, &live, status).await?;
            let options = DeleteOptions::uid(victim.uid.as_ref());
            cluster.ensure_deleted(&known::POD, key.namespace(), &key.name, &options).await?;
            let message = format!("Preempted by pod {} on node {node}", pod.1.uid);
            self.context.did(&live, "Preempting", "Preempted", message);
        }
        Ok(())
    }
}

/// As much of a pod as an event about it needs.
fn about(key: &NamespacedName, pod: &PodView) -> Object {
    let mut object = Object::new(&known::POD.gvk(), &key.name);
    object.set(&["metadata", "namespace"], (*key.namespace).into());
    object.set(&["metadata", "uid"], (*pod.uid).into());
    object
}

/// The status of a pod with the condition that says that and why it has to go.
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

/// The status of a pod that no node takes; none if it says so already.
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
    fn a_pod_that_says_so_already_is_left_alone() {
        let mut it = Object::from_value(json!({"spec": {}})).unwrap();
        it.set(&["status"], unschedulable(&it, "why", "t1").unwrap());
        assert_eq!(unschedulable(&it, "why", "t2"), None);
        assert!(unschedulable(&it, "else", "t2").is_some());
    }
}
