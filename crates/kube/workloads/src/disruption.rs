//! The `PodDisruptionBudget` controller: counts how many of the selected pods may be evicted now.
//!
//! Evictions read the status and decrement it. `status.disruptedPods` remembers an evicted pod
//! until it is gone, two minutes at most.

use crate::Started;
use crate::common::{Context, int_or_percent};
use crate::views::{Dependent, PodView, Views};
use crate::workload::requeue_after;
use jiff::Timestamp;
use mainstay_client::{Action, Controller, Error, Reconciler, conditions};
use mainstay_object::selector::LabelSelector;
use mainstay_object::{NamespacedName, Object, builtin};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};
use std::sync::Arc;

/// After so many seconds an evicted pod that still exists counts again.
const EVICTION_TIMEOUT: i64 = 120;

/// When a pod with a name last ended, for pods that budgets select. Timestamps of objects have
/// whole seconds: without this, a pod created in the second in which its namesake was evicted
/// passes for that one.
#[derive(Clone, Default)]
struct EndedPods(Arc<Mutex<FxHashMap<NamespacedName, Timestamp>>>);

impl EndedPods {
    /// How many names are remembered before those that no budget remembers are dropped.
    const MAX_ENDED_PODS: usize = 1024;

    fn note(&self, pod: &NamespacedName, now: Timestamp) {
        let mut ended = self.0.lock();
        if ended.len() >= Self::MAX_ENDED_PODS {
            ended.retain(|_, at| now.as_second() - at.as_second() <= EVICTION_TIMEOUT);
        }
        ended.insert(pod.clone(), now);
    }

    fn last(&self, pod: &NamespacedName) -> Option<Timestamp> {
        self.0.lock().get(pod).copied()
    }
}

/// Starts the controller.
pub(crate) fn start(context: &Context, views: &Views, started: &mut Started) {
    let ended = EndedPods::default();
    let mut controller = Controller::new("disruption");
    let queue = controller.queue();
    views.budgets.subscribe(move |change| {
        if change.after.is_some() {
            queue.add(change.key.clone());
        }
    });
    let (queue, budgets) = (controller.queue(), views.budgets.clone());
    let (ends, clock) = (ended.clone(), context.clock);
    views.pods.subscribe(move |change| {
        let part = |pod: &Arc<PodView>| (pod.is_ready(), pod.terminating, pod.is_finished());
        if let (Some(before), Some(after)) = (change.before, change.after)
            && before.labels == after.labels
            && part(before) == part(after)
        {
            return;
        }
        for (key, budget) in budgets.list(Some(&change.key.namespace)) {
            let Some(selector) = &budget.selector else { continue };
            if [change.before, change.after].into_iter().flatten().any(|pod| pod.matches(selector))
            {
                let is_same_pod = |before: &Arc<PodView>| {
                    change.after.is_some_and(|pod| pod.uid == before.uid && !pod.terminating)
                };
                if change.before.is_some_and(|pod| !is_same_pod(pod)) {
                    ends.note(change.key, clock.now());
                }
                queue.add(key);
            }
        }
    });
    // A new size of an owner changes the expected pods.
    let resized = |budgets: &mainstay_client::Cache<crate::views::BudgetView>,
                   queue: &mainstay_client::Queue<NamespacedName>,
                   namespace: &str| {
        for (key, _) in budgets.list(Some(namespace)) {
            queue.add(key);
        }
    };
    let (queue, budgets) = (controller.queue(), views.budgets.clone());
    views.replica_sets.subscribe(move |change| {
        if change.before.map(|owner| owner.replicas) != change.after.map(|owner| owner.replicas) {
            resized(&budgets, &queue, &change.key.namespace);
        }
    });
    for cache in [&views.deployments, &views.stateful_sets, &views.replication_controllers] {
        let (queue, budgets) = (controller.queue(), views.budgets.clone());
        cache.subscribe(move |change| {
            if change.before.map(|owner| owner.replicas) != change.after.map(|owner| owner.replicas)
            {
                resized(&budgets, &queue, &change.key.namespace);
            }
        });
        controller = controller.reads(cache);
    }
    let controller = controller.reads(&views.budgets).reads(&views.pods).reads(&views.replica_sets);
    let context_of = context.with_component("controllermanager");
    let budgets = Budgets { context: context_of, views: views.clone(), ended };
    started.controller(controller.start(budgets, context.stop.clone()));
}

struct Budgets {
    context: Context,
    views: Views,
    ended: EndedPods,
}

impl Reconciler for Budgets {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        let resource = &builtin::POD_DISRUPTION_BUDGET;
        let cluster = &self.context.cluster;
        let Some(live) = cluster.find(resource, key.namespace(), &key.name).await? else {
            return Ok(Action::Done);
        };
        let selector = live.get(&["spec", "selector"]).filter(|selector| !selector.is_null());
        let selector = selector.and_then(|selector| LabelSelector::from_value(selector).ok());
        let mut pods = self.views.pods.list(Some(&key.namespace));
        pods.retain(|(_, pod)| selector.as_ref().is_some_and(|selector| pod.matches(selector)));
        // Emits an event once for each generation of the budget.
        let is_new_generation =
            live.i64(&["status", "observedGeneration"]) != Some(live.generation());
        if pods.is_empty() && is_new_generation {
            self.context.report_normal(&live, "NoPods", "No matching pods found".to_owned());
        }
        let now = self.context.clock.now();
        let scale = self.scale(&key.namespace, &pods);
        if let Ok((_, true)) = &scale
            && is_new_generation
        {
            let text = selector.as_ref().map(ToString::to_string).unwrap_or_default();
            self.context.report_warning(&live, "UnmanagedPods", format!(
                "Pods selected by this PodDisruptionBudget (selector: {text}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value."
            ));
        }
        if let Err(scale_error) = &scale
            && needs_scale(&live)
        {
            let message = format!("Failed to calculate the number of expected pods: {scale_error}");
            self.context.report_warning(&live, "CalculateExpectedPodCountFailed", message);
        }
        let scale = scale.map(|(scale, _)| scale);
        let ended = |pod: &NamespacedName| self.ended.last(pod);
        let (status, wait) = status(&live, &pods, scale, &ended, now);
        match self.context.write_status(resource, &live, status).await {
            // An eviction wrote the status meanwhile; its event brings the budget back.
            Err(error) if error.is_conflict() => Ok(Action::Done),
            other => other.map(|()| requeue_after(self.context.clock, wait)),
        }
    }
}

/// The size of a pod's owner is unknown; the texts are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum ScaleError {
    /// The kind of the owner has no scale subresource.
    #[error("{resource} does not implement the scale subresource")]
    NoScale {
        /// The resource.
        resource: &'static str,
    },
    /// The owner of a pod does not exist.
    #[error("found no controllers for pod {pod:?}")]
    NoController {
        /// The name of the pod.
        pod: String,
    },
}

impl Budgets {
    /// The sum of the sizes of the pods' owners, and whether some pods have no owner.
    fn scale(
        &self,
        namespace: &str,
        pods: &[(NamespacedName, Arc<PodView>)],
    ) -> Result<(i64, bool), ScaleError> {
        let mut sizes: FxHashMap<Arc<str>, i64> = FxHashMap::default();
        let mut unmanaged = false;
        for (key, pod) in pods {
            let Some(owner) = &pod.owner else {
                unmanaged = true;
                continue;
            };
            let key_of = |name: &Arc<str>| NamespacedName::new(namespace, Arc::clone(name));
            let found = match &*owner.kind {
                "ReplicaSet" => {
                    let set = self.views.replica_sets.get(&key_of(&owner.name));
                    set.filter(|set| set.uid == owner.uid).and_then(|set| {
                        let Some(above) = &set.owner else {
                            return Some((Arc::clone(&set.uid), set.replicas));
                        };
                        let deployment = self.views.deployments.get(&key_of(&above.name))?;
                        Some((Arc::clone(&deployment.uid), deployment.replicas))
                    })
                }
                "StatefulSet" | "ReplicationController" => {
                    let cache = if &*owner.kind == "StatefulSet" {
                        &self.views.stateful_sets
                    } else {
                        &self.views.replication_controllers
                    };
                    let found = cache.get(&key_of(&owner.name));
                    found
                        .filter(|owner_view| owner_view.uid == owner.uid)
                        .map(|owner_view| (Arc::clone(&owner_view.uid), owner_view.replicas))
                }
                "Job" => return Err(ScaleError::NoScale { resource: "jobs.batch" }),
                "DaemonSet" => return Err(ScaleError::NoScale { resource: "daemonsets.apps" }),
                _ => None,
            };
            let Some((uid, size)) = found else {
                return Err(ScaleError::NoController { pod: key.name.to_string() });
            };
            sizes.insert(uid, size);
        }
        Ok((sizes.values().sum(), unmanaged))
    }
}

fn needs_scale(budget: &Object) -> bool {
    budget.get(&["spec", "maxUnavailable"]).is_some()
        || budget.str(&["spec", "minAvailable"]).is_some()
}

/// The status, and in how many seconds an eviction expires. `ended` returns when a pod with a name
/// last ended.
fn status(
    budget: &Object,
    pods: &[(NamespacedName, Arc<PodView>)],
    scale: Result<i64, ScaleError>,
    ended: &dyn Fn(&NamespacedName) -> Option<Timestamp>,
    now: Timestamp,
) -> (Value, Option<u64>) {
    let old = budget.get(&["status"]).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut list = budget.array(&["status", "conditions"]).to_vec();
    let text = mainstay_clock::rfc3339(now);
    let mut say = |truth, reason: &str, message: String| {
        let condition = conditions::Condition::new("DisruptionAllowed", truth, reason, message);
        conditions::set(&mut list, &condition.observed(budget.generation()), &text);
        Value::Array(list.clone())
    };
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let all = count(pods.len());
    let (expected, desired) = match expected(budget, all, scale) {
        Ok(numbers) => numbers,
        Err(error) => {
            let mut status = old;
            status.insert("disruptionsAllowed".to_owned(), 0.into());
            let conditions = say(conditions::Truth::False, "SyncFailed", error.to_string());
            status.insert("conditions".to_owned(), conditions);
            return (Value::Object(status), None);
        }
    };
    let mut disrupted = Map::new();
    let mut wait = None;
    let disrupted_before = budget.get(&["status", "disruptedPods"]).and_then(Value::as_object);
    for (name, since) in disrupted_before.into_iter().flatten() {
        let since: Option<Timestamp> = since.as_str().and_then(|text| text.parse().ok());
        // A pod created since then only shares the name of the evicted one.
        let is_evicted_pod = |key: &NamespacedName, pod: &PodView| {
            let (Some(created), Some(since)) = (pod.created, since) else { return true };
            // Within one second, a pod is another one if a pod with its name has ended.
            let replaced = || ended(key).is_some_and(|end| end >= since);
            created < since || (created == since && !replaced())
        };
        let exists = pods
            .iter()
            .any(|(key, pod)| *key.name == **name && !pod.terminating && is_evicted_pod(key, pod));
        let remaining =
            since.map_or(0, |since| EVICTION_TIMEOUT - (now.as_second() - since.as_second()));
        if let (true, Ok(remaining @ 1..)) = (exists, u64::try_from(remaining)) {
            disrupted.insert(
                name.clone(),
                disrupted_before.map(|names| names[name].clone()).unwrap_or_default(),
            );
            wait = Some(wait.map_or(remaining, |wait: u64| wait.min(remaining)));
        }
    }
    let healthy = pods.iter().filter(|(key, pod)| {
        pod.is_ready() && !pod.terminating && !disrupted.contains_key(&*key.name)
    });
    let current = count(healthy.count());
    let desired =
        if mainstay_fault::is_on("budgets-allow-one-too-many") { desired - 1 } else { desired };
    let allowed = if expected <= 0 { 0 } else { (current - desired).max(0) };
    let mut status = Map::new();
    for (field, number) in [
        ("currentHealthy", current),
        ("desiredHealthy", desired),
        ("disruptionsAllowed", allowed),
        ("expectedPods", expected),
        ("observedGeneration", budget.generation()),
    ] {
        status.insert(field.to_owned(), number.into());
    }
    if !disrupted.is_empty() {
        status.insert("disruptedPods".to_owned(), Value::Object(disrupted));
    }
    let conditions = if allowed > 0 {
        say(conditions::Truth::True, "SufficientPods", String::new())
    } else {
        say(conditions::Truth::False, "InsufficientPods", String::new())
    };
    status.insert("conditions".to_owned(), conditions);
    (Value::Object(status), wait)
}

/// How many pods are expected, and how many must stay healthy.
fn expected(
    budget: &Object,
    all: i64,
    scale: Result<i64, ScaleError>,
) -> Result<(i64, i64), ScaleError> {
    if let Some(most) = budget.get(&["spec", "maxUnavailable"]) {
        let scale = scale?;
        return Ok((scale, (scale - int_or_percent(Some(most), "0", scale, true)).max(0)));
    }
    match budget.get(&["spec", "minAvailable"]) {
        Some(least @ Value::String(_)) => {
            let scale = scale?;
            Ok((scale, int_or_percent(Some(least), "0", scale, true)))
        }
        Some(least) => Ok((all, least.as_i64().unwrap_or_default())),
        None => Ok((all, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pods(states: &[&str]) -> Vec<(NamespacedName, Arc<PodView>)> {
        let make = |(at, state): (usize, &&str)| {
            let name = format!("p-{at}");
            let mut pod = Object::from_value(json!({
                "metadata": {"name": name, "namespace": "n", "uid": name},
                "status": {"phase": "Running"},
            }))
            .unwrap();
            if *state != "sick" {
                pod.set(&["status", "conditions"], json!([{"type": "Ready", "status": "True"}]));
            }
            if matches!(*state, "new" | "young") {
                pod.set(&["metadata", "creationTimestamp"], "2026-01-01T00:00:30Z".into());
            }
            if *state == "going" {
                pod.set(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z".into());
            }
            (pod.key(), Arc::new(PodView::of(&pod)))
        };
        states.iter().enumerate().map(make).collect()
    }

    fn budget(spec: &Value, status: &Value) -> Object {
        Object::from_value(json!({
            "metadata": {"name": "b", "namespace": "n", "generation": 3},
            "spec": spec, "status": status,
        }))
        .unwrap()
    }

    fn run(spec: &Value, old: &Value, states: &[&str], scale: i64) -> Value {
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        // Two of the pods are new and have replaced others with their names.
        let ended = |pod: &NamespacedName| {
            let at: usize = pod.name.strip_prefix("p-")?.parse().ok()?;
            (states[at] == "new").then(|| "2026-01-01T00:00:30.5Z".parse().unwrap())
        };
        status(&budget(spec, old), &pods(states), Ok(scale), &ended, now).0
    }

    #[test]
    fn disruptions_allowed_are_healthy_pods_beyond_the_desired_ones() {
        for (spec, states, scale, numbers) in [
            (json!({"minAvailable": 2}), vec!["ok", "ok", "ok"], 9, (3, 2, 3, 1)),
            (json!({"minAvailable": "50%"}), vec!["ok", "ok", "ok"], 3, (3, 2, 3, 1)),
            (json!({"maxUnavailable": 1}), vec!["ok", "ok", "sick"], 3, (2, 2, 3, 0)),
            (json!({"maxUnavailable": 1}), vec!["ok", "ok", "going"], 2, (2, 1, 2, 1)),
            (json!({"maxUnavailable": "34%"}), vec!["ok", "ok", "ok"], 3, (3, 1, 3, 2)),
            (json!({"minAvailable": 5}), vec!["ok"], 1, (1, 5, 1, 0)),
            (json!({"minAvailable": 0}), vec![], 0, (0, 0, 0, 0)),
        ] {
            let status = run(&spec, &json!({}), &states, scale);
            let fields = ["currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed"];
            let (a, b, c, d) = numbers;
            for (field, number) in fields.into_iter().zip([a, b, c, d]) {
                assert_eq!(status[field], number, "{spec}: {field}");
            }
            let reason = if d > 0 { "SufficientPods" } else { "InsufficientPods" };
            assert_eq!(status["conditions"][0]["reason"], reason);
            assert_eq!(run(&spec, &status, &states, scale), status, "settles");
        }
    }

    #[test]
    fn a_disrupted_pod_is_remembered_until_it_is_gone_or_the_timeout_passes() {
        let spec = json!({"minAvailable": 1});
        let with_disrupted = |since: &str| json!({"disruptedPods": {"p-0": since, "gone": since}});
        let recent = run(&spec, &with_disrupted("2026-01-01T00:00:30Z"), &["ok", "ok"], 2);
        assert_eq!(recent["disruptedPods"], json!({"p-0": "2026-01-01T00:00:30Z"}));
        assert_eq!(recent["disruptionsAllowed"], 0);
        let replaced = run(&spec, &with_disrupted("2026-01-01T00:00:30Z"), &["new", "ok"], 2);
        assert_eq!(
            (&replaced["disruptedPods"], &replaced["currentHealthy"]),
            (&Value::Null, &json!(2))
        );
        let young = run(&spec, &with_disrupted("2026-01-01T00:00:30Z"), &["young", "ok"], 2);
        assert_eq!(
            young["disruptedPods"],
            json!({"p-0": "2026-01-01T00:00:30Z"}),
            "the same second"
        );
        let old = run(&spec, &with_disrupted("2025-12-31T23:50:00Z"), &["ok", "ok"], 2);
        assert_eq!((&old["disruptedPods"], &old["disruptionsAllowed"]), (&Value::Null, &json!(1)));
    }

    #[test]
    fn an_unknown_scale_allows_no_disruption() {
        let budget = budget(&json!({"maxUnavailable": 1}), &json!({}));
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        let scale = Err(ScaleError::NoScale { resource: "jobs.batch" });
        let status = status(&budget, &pods(&["ok"]), scale, &|_| None, now).0;
        assert_eq!(status["conditions"][0]["reason"], "SyncFailed");
        assert_eq!(status["disruptionsAllowed"], 0);
    }
}
