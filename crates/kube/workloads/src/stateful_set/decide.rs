//! StatefulSet decisions: which Pods to create and delete next, and the new status.

use crate::common::put_count;
use crate::template::REVISION_HASH;
use crate::views::{Phase, PodView};
use crate::workload::Named;
use jiff::Timestamp;
use mainstay_object::Object;
use serde_json::{Map, Value};

/// The state that [`decide`] reads.
pub(super) struct Observed<'a> {
    pub(super) set: &'a Object,
    pub(super) pods: &'a [Named],
    /// The name of the current revision.
    pub(super) current: &'a str,
    /// The name of the update revision.
    pub(super) update: &'a str,
    pub(super) collisions: i64,
    pub(super) now: Timestamp,
}

/// The actions of one reconcile.
#[derive(Debug, Default)]
pub(super) struct Decision {
    /// Ordinals of new Pods, and whether each is of the update revision.
    pub(super) create: Vec<(i64, bool)>,
    pub(super) delete: Vec<Named>,
    pub(super) status: Value,
    pub(super) requeue_after: Option<u64>,
}

fn ordinal(set: &str, pod: &str) -> Option<i64> {
    let text = pod.strip_prefix(set)?.strip_prefix('-')?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// The Pods with a valid ordinal, and whether the `StatefulSet` wants a Pod with that ordinal.
pub(super) fn ordinals<'a>(
    set: &Object,
    pods: &'a [Named],
) -> impl Iterator<Item = (i64, bool, &'a Named)> {
    let (first, desired) = ordinal_range(set);
    let set_name = set.name().to_owned();
    pods.iter().filter_map(move |pod| {
        let at = ordinal(&set_name, &pod.0.name)?;
        Some((at, (first..first + desired).contains(&at), pod))
    })
}

/// The first ordinal of a `StatefulSet`, and its `replicas`.
fn ordinal_range(set: &Object) -> (i64, i64) {
    let first = set.i64(&["spec", "ordinals", "start"]).unwrap_or_default();
    (first, set.i64(&["spec", "replicas"]).unwrap_or(1).max(0))
}

struct Rules<'a> {
    observed: &'a Observed<'a>,
    min_ready: i64,
    in_order: bool,
}

impl Rules<'_> {
    fn is_available(&self, pod: &PodView) -> bool {
        pod.phase == Phase::Running && pod.is_available(self.min_ready, self.observed.now)
    }

    fn is_healthy(&self, pod: &PodView) -> bool {
        self.is_available(pod) && !pod.terminating
    }

    fn has_revision(pod: &PodView, revision: &str) -> bool {
        pod.labels.get(REVISION_HASH).is_some_and(|label| label == revision)
    }
}

/// Decides from the `StatefulSet`, its Pods and the time.
pub(super) fn decide(observed: &Observed<'_>) -> Decision {
    let set = observed.set;
    let (first, desired) = ordinal_range(set);
    let rules = Rules {
        observed,
        min_ready: set.i64(&["spec", "minReadySeconds"]).unwrap_or_default(),
        in_order: set.str(&["spec", "podManagementPolicy"]) != Some("Parallel")
            && !mainstay_fault::is_on("sets-are-never-in-order"),
    };
    let mut set_pods: Vec<(i64, &Named)> = observed
        .pods
        .iter()
        .filter_map(|pod| Some((ordinal(set.name(), &pod.0.name)?, pod)))
        .collect();
    set_pods.sort_by_key(|(ordinal, _)| *ordinal);
    let mut decision =
        Decision { status: status(&rules, &set_pods, desired), ..Decision::default() };
    // A ready Pod becomes available by time alone.
    decision.requeue_after = set_pods
        .iter()
        .filter_map(|(_, pod)| pod.1.ready_since)
        .map(|since| rules.min_ready - (observed.now.as_second() - since.as_second()))
        .filter_map(|remaining| u64::try_from(remaining).ok().filter(|remaining| *remaining > 0))
        .min();
    let (wanted_pods, condemned): (Vec<_>, Vec<_>) =
        set_pods.into_iter().partition(|(at, _)| (first..first + desired).contains(at));
    let blocked = create_missing(&rules, &mut decision, &wanted_pods, first, desired);
    if !blocked && !condemn(&rules, &mut decision, &wanted_pods, &condemned) {
        update(&rules, &mut decision, &wanted_pods, first, desired);
    }
    decision
}

/// Creates missing Pods; returns whether everything else has to wait.
fn create_missing(
    rules: &Rules<'_>,
    decision: &mut Decision,
    wanted_pods: &[(i64, &Named)],
    first: i64,
    desired: i64,
) -> bool {
    let rolling = ["spec", "updateStrategy", "rollingUpdate", "partition"];
    let set = rules.observed.set;
    let partition = set.i64(&rolling).unwrap_or_default();
    let partition = if mainstay_fault::is_on("partitions-keep-nothing") { 0 } else { partition };
    let on_delete = set.str(&["spec", "updateStrategy", "type"]) == Some("OnDelete");
    for at in first..first + desired {
        let Some((_, pod)) = wanted_pods.iter().find(|(ordinal, _)| *ordinal == at) else {
            decision.create.push((at, on_delete || at >= first + partition));
            if rules.in_order {
                return true;
            }
            continue;
        };
        if pod.1.is_finished() {
            // A Pod that has ended is created anew with the same name.
            if !pod.1.terminating {
                decision.delete.push((*pod).clone());
            }
            if rules.in_order {
                return true;
            }
        } else if rules.in_order && !rules.is_healthy(&pod.1) {
            return true;
        }
    }
    false
}

/// Deletes Pods beyond `replicas`, the last first; returns whether an update has to wait.
fn condemn(
    rules: &Rules<'_>,
    decision: &mut Decision,
    wanted_pods: &[(i64, &Named)],
    condemned: &[(i64, &Named)],
) -> bool {
    if !rules.in_order {
        let to_delete = condemned.iter().filter(|(_, pod)| !pod.1.terminating);
        decision.delete.extend(to_delete.map(|(_, pod)| (*pod).clone()));
        return false;
    }
    let Some((_, last)) = condemned.last() else { return false };
    let unhealthy = wanted_pods.iter().chain(condemned).find(|(_, pod)| !rules.is_healthy(&pod.1));
    let is_first_sick = unhealthy.is_some_and(|(_, pod)| pod.1.uid == last.1.uid);
    if !last.1.terminating && (rules.is_available(&last.1) || is_first_sick) {
        decision.delete.push((*last).clone());
    }
    true
}

/// Rolling update: deletes the last Pod of an old revision, once all Pods behind it are healthy.
fn update(
    rules: &Rules<'_>,
    decision: &mut Decision,
    wanted_pods: &[(i64, &Named)],
    first: i64,
    desired: i64,
) {
    let set = rules.observed.set;
    if set.str(&["spec", "updateStrategy", "type"]) == Some("OnDelete") {
        return;
    }
    let partition =
        set.i64(&["spec", "updateStrategy", "rollingUpdate", "partition"]).unwrap_or_default();
    for at in (first + partition..first + desired).rev() {
        let Some((_, pod)) = wanted_pods.iter().find(|(ordinal, _)| *ordinal == at) else { return };
        if !Rules::has_revision(&pod.1, rules.observed.update) && !pod.1.terminating {
            if !decision.delete.iter().any(|(key, _)| *key == pod.0) {
                decision.delete.push((*pod).clone());
            }
            return;
        }
        if !rules.is_healthy(&pod.1) {
            return;
        }
    }
}

fn status(rules: &Rules<'_>, set_pods: &[(i64, &Named)], desired: i64) -> Value {
    let observed = rules.observed;
    let set = observed.set;
    let count = |holds: &dyn Fn(&PodView) -> bool| {
        let count = set_pods.iter().filter(|(_, pod)| holds(&pod.1)).count();
        i64::try_from(count).unwrap_or(i64::MAX)
    };
    let replicas = count(&|_| true);
    let ready = count(&|pod| pod.phase == Phase::Running && pod.is_ready());
    let available = count(&|pod| rules.is_available(pod));
    let updated = count(&|pod| !pod.terminating && Rules::has_revision(pod, observed.update));
    let mut current = observed.current;
    let mut at_current = count(&|pod| !pod.terminating && Rules::has_revision(pod, current));
    let rolling = set.str(&["spec", "updateStrategy", "type"]) != Some("OnDelete");
    if rolling && updated == desired && ready == desired && replicas == desired {
        current = observed.update;
        at_current = updated;
    }
    let mut status: Map<String, Value> =
        set.get(&["status"]).and_then(Value::as_object).cloned().unwrap_or_default();
    status.insert("replicas".to_owned(), replicas.into());
    status.insert("availableReplicas".to_owned(), available.into());
    status.insert("collisionCount".to_owned(), observed.collisions.into());
    for (field, count) in [
        ("readyReplicas", ready),
        ("currentReplicas", at_current),
        ("updatedReplicas", updated),
        ("observedGeneration", set.generation()),
    ] {
        put_count(&mut status, field, count);
    }
    status.insert("currentRevision".to_owned(), current.into());
    status.insert("updateRevision".to_owned(), observed.update.into());
    Value::Object(status)
}

#[cfg(test)]
mod tests {
    use super::super::pod::pod;
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn set(spec: &Value) -> Object {
        let mut set = Object::from_value(json!({
            "metadata": {"name": "db", "namespace": "n", "uid": "s"}, "spec": {},
        }))
        .unwrap();
        for (key, value) in spec.as_object().unwrap() {
            set.set(&["spec", key], value.clone());
        }
        set
    }

    /// Pods by ordinal: `new` and `old` are healthy, the others are of the update revision.
    fn pods(set: &Object, states: &[(i64, &str)]) -> Vec<Named> {
        let make = |(ordinal, state): &(i64, &str)| {
            let revision = if *state == "old" { "db-old" } else { "db-new" };
            let mut pod = pod(set, &json!({}), *ordinal, revision);
            pod.set(&["metadata", "uid"], ordinal.to_string().into());
            pod.set(&["status", "phase"], "Running".into());
            if *state != "starting" {
                let ready = json!([{
                    "type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z",
                }]);
                pod.set(&["status", "conditions"], ready);
            }
            if *state == "going" {
                pod.set(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z".into());
            }
            if *state == "failed" {
                pod.set(&["status", "phase"], "Failed".into());
            }
            (pod.key(), Arc::new(PodView::of(&pod)))
        };
        states.iter().map(make).collect()
    }

    fn run(set: &Object, states: &[(i64, &str)], now: i64) -> Decision {
        decide(&Observed {
            set,
            pods: &pods(set, states),
            current: "db-old",
            update: "db-new",
            collisions: 0,
            now: Timestamp::from_second(now).unwrap(),
        })
    }

    #[test]
    fn stateful_pods_are_created_in_order_and_deleted_in_reverse() {
        let two = json!({"replicas": 2});
        let three = json!({"replicas": 3});
        let parallel = json!({"replicas": 2, "podManagementPolicy": "Parallel"});
        let on_delete = json!({"replicas": 2, "updateStrategy": {"type": "OnDelete"}});
        let part = json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}});
        let from_five = json!({"replicas": 2, "ordinals": {"start": 5}});
        for (spec, states, create, delete) in [
            (&two, vec![], vec![0], vec![]),
            (&two, vec![(0, "starting")], vec![], vec![]),
            (&two, vec![(0, "new")], vec![1], vec![]),
            (&two, vec![(0, "failed"), (1, "new")], vec![], vec!["db-0"]),
            (&parallel, vec![], vec![0, 1], vec![]),
            (&parallel, vec![(0, "new"), (2, "new"), (3, "new")], vec![1], vec!["db-2", "db-3"]),
            (&two, vec![(0, "new"), (1, "new"), (2, "new"), (3, "new")], vec![], vec!["db-3"]),
            (&two, vec![(0, "new"), (1, "new"), (2, "new"), (3, "going")], vec![], vec![]),
            // Only the first unhealthy Pod may be deleted while it is unhealthy.
            (&two, vec![(0, "new"), (1, "new"), (2, "starting")], vec![], vec!["db-2"]),
            (&two, vec![(0, "starting"), (1, "new"), (2, "new")], vec![], vec![]),
            (&two, vec![(0, "going"), (1, "new")], vec![], vec![]),
            (&three, vec![(0, "old"), (1, "old"), (2, "old")], vec![], vec!["db-2"]),
            (&three, vec![(0, "old"), (1, "old"), (2, "new")], vec![], vec!["db-1"]),
            (&three, vec![(0, "old"), (1, "old"), (2, "starting")], vec![], vec![]),
            (&on_delete, vec![(0, "old"), (1, "old")], vec![], vec![]),
            (&part, vec![(0, "old"), (1, "old"), (2, "old")], vec![], vec!["db-2"]),
            (&part, vec![(0, "old"), (1, "old"), (2, "new")], vec![], vec![]),
            (&from_five, vec![(0, "new"), (5, "new"), (6, "new")], vec![], vec!["db-0"]),
            (&from_five, vec![(5, "new")], vec![6], vec![]),
        ] {
            let decision = run(&set(spec), &states, 100);
            let deleted: Vec<&str> = decision.delete.iter().map(|(key, _)| &*key.name).collect();
            let created: Vec<i64> = decision.create.iter().map(|(at, _)| *at).collect();
            assert_eq!((created, deleted), (create, delete), "{spec} {states:?}");
        }
    }

    #[test]
    fn below_the_partition_pods_keep_their_revision() {
        let part = json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}});
        let set = set(&part);
        assert_eq!(run(&set, &[(0, "old")], 100).create, [(1, false)]);
        assert_eq!(run(&set, &[(0, "old"), (1, "old")], 100).create, [(2, true)]);
    }

    #[test]
    fn the_next_pod_waits_until_the_last_is_available() {
        let set = set(&json!({"replicas": 2, "minReadySeconds": 30}));
        let before_min_ready = run(&set, &[(0, "new")], 10);
        assert_eq!((before_min_ready.create.len(), before_min_ready.requeue_after), (0, Some(20)));
        assert_eq!(before_min_ready.status["readyReplicas"], 1);
        assert_eq!(before_min_ready.status["availableReplicas"], 0);
        assert_eq!(run(&set, &[(0, "new")], 30).create, [(1, true)]);
    }

    #[test]
    fn the_current_revision_advances_when_every_pod_has_it() {
        let set = set(&json!({"replicas": 2}));
        let rolling = run(&set, &[(0, "old"), (1, "new")], 100).status;
        assert_eq!(rolling["currentRevision"], "db-old");
        assert_eq!(
            (&rolling["currentReplicas"], &rolling["updatedReplicas"]),
            (&json!(1), &json!(1))
        );
        let done = run(&set, &[(0, "new"), (1, "new")], 100).status;
        assert_eq!(
            (&done["currentRevision"], &done["currentReplicas"]),
            (&json!("db-new"), &json!(2))
        );
    }
}
