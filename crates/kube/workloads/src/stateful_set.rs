//! `StatefulSets`: pods with fixed names, one after the other.
//!
//! `OrderedReady` starts a pod when all before it are ready, `Parallel` starts all. A new template
//! replaces pods from the last to the first. Claims are named in the pods as the original does, but
//! nobody provides volumes.

use crate::Started;
use crate::common::{Context, put_count};
use crate::template::{self, REVISION_HASH};
use crate::views::Views;
use crate::workload::{Named, Pods, Workload, WorkloadController, again};
use jiff::Timestamp;
use mainstay_client::{Action, Error};
use mainstay_object::{Object, known};
use serde_json::{Map, Value, json};

const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// Starts the controller of `StatefulSets`.
pub(crate) fn start(context: &Context, views: &Views, started: &mut Started) {
    let sets = StatefulSets { context: context.clone(), pods: Pods::new(context, views) };
    WorkloadController::new("stateful-sets", known::STATEFUL_SET, &views.stateful_sets)
        .owns(&views.pods)
        .start(sets, context, started);
}

struct StatefulSets {
    context: Context,
    pods: Pods,
}

impl Workload for StatefulSets {
    async fn settle(&self, set: Object) -> Result<Action, Error> {
        let pods = self.pods.of(&set).await?;
        let decision = decide(&set, &pods, self.context.clock.now());
        self.pods.delete(&set, &decision.delete).await?;
        let wanted: Vec<Object> =
            decision.create.iter().map(|ordinal| pod(&set, *ordinal, &decision.hash)).collect();
        let outcome = self.pods.create(&set, wanted).await;
        self.context.write_status(&known::STATEFUL_SET, &set, decision.status).await?;
        match outcome {
            // The name is still held by a pod that goes; its event brings the set back.
            Err(error) if error.is_already_exists() => Ok(Action::Done),
            outcome => outcome.map(|()| again(decision.again)),
        }
    }
}

#[derive(Debug, Default)]
struct Decision {
    create: Vec<i64>,
    delete: Vec<Named>,
    hash: String,
    status: Value,
    again: Option<u64>,
}

fn ordinal(set: &str, pod: &str) -> Option<i64> {
    pod.strip_prefix(set)?.strip_prefix('-')?.parse().ok()
}

fn decide(set: &Object, pods: &[Named], now: Timestamp) -> Decision {
    let number = |path: &[&str]| set.i64(path);
    let wanted = number(&["spec", "replicas"]).unwrap_or(1).max(0);
    let first = number(&["spec", "ordinals", "start"]).unwrap_or_default();
    let min_ready = number(&["spec", "minReadySeconds"]).unwrap_or_default();
    let in_order = set.str(&["spec", "podManagementPolicy"]) != Some("Parallel");
    let print = set.get(&["spec", "template"]).map_or(0, template::fingerprint);
    let hash = template::name_hash(print, 0);
    let revision = format!("{}-{hash}", set.name());
    let current = set
        .str(&["status", "currentRevision"])
        .filter(|text| !text.is_empty())
        .unwrap_or(&revision)
        .to_owned();

    let mut mine: Vec<(i64, &Named)> =
        pods.iter().filter_map(|pod| Some((ordinal(set.name(), &pod.0.name)?, pod))).collect();
    mine.sort_by_key(|(ordinal, _)| *ordinal);
    let is_updated =
        |pod: &Named| pod.1.labels.get(REVISION_HASH).is_some_and(|it| *it == revision);
    let mut decision = Decision { hash, ..Decision::default() };

    let count = |holds: &dyn Fn(&Named) -> bool| {
        let count = mine.iter().filter(|(_, pod)| pod.1.is_active() && holds(pod)).count();
        i64::try_from(count).unwrap_or(i64::MAX)
    };
    let replicas = count(&|_| true);
    let ready = count(&|pod| pod.1.is_ready());
    let available = count(&|pod| pod.1.is_available(min_ready, now));
    let updated = count(&is_updated);
    if ready > available {
        decision.again = u64::try_from(min_ready).ok();
    }
    let mut status: Map<String, Value> =
        set.get(&["status"]).and_then(Value::as_object).cloned().unwrap_or_default();
    status.insert("replicas".to_owned(), replicas.into());
    status.insert("availableReplicas".to_owned(), available.into());
    put_count(&mut status, "readyReplicas", ready);
    put_count(&mut status, "updatedReplicas", updated);
    put_count(&mut status, "observedGeneration", set.generation());
    status.entry("collisionCount").or_insert_with(|| 0.into());
    let complete = updated == wanted && replicas == wanted && ready == wanted;
    let current = if complete { revision.clone() } else { current };
    let at_current = count(&|pod| pod.1.labels.get(REVISION_HASH).is_some_and(|it| *it == current));
    put_count(&mut status, "currentReplicas", at_current);
    status.insert("currentRevision".to_owned(), current.into());
    status.insert("updateRevision".to_owned(), revision.clone().into());
    decision.status = Value::Object(status);
    if set.is_terminating() {
        return decision;
    }

    for at in first..first + wanted {
        match mine.iter().find(|(ordinal, _)| *ordinal == at) {
            None => {
                decision.create.push(at);
                if in_order {
                    return decision;
                }
            }
            // A pod that has ended is made anew, under the same name.
            Some((_, pod)) if pod.1.is_finished() && !pod.1.terminating => {
                decision.delete.push((*pod).clone());
                if in_order {
                    return decision;
                }
            }
            Some((_, pod)) if in_order && (pod.1.terminating || !pod.1.is_ready()) => {
                return decision;
            }
            Some(_) => {}
        }
    }
    let surplus: Vec<&(i64, &Named)> = mine
        .iter()
        .filter(|(at, pod)| (*at >= first + wanted || *at < first) && !pod.1.terminating)
        .collect();
    if !surplus.is_empty() {
        let most = if in_order { 1 } else { surplus.len() };
        decision.delete.extend(surplus.into_iter().rev().take(most).map(|(_, pod)| (*pod).clone()));
        return decision;
    }
    // A new template: the last pod that is not of it, once all others are well.
    let on_delete = set.str(&["spec", "updateStrategy", "type"]) == Some("OnDelete");
    let partition =
        number(&["spec", "updateStrategy", "rollingUpdate", "partition"]).unwrap_or_default();
    if !on_delete && ready == wanted && decision.create.is_empty() {
        let outdated = mine
            .iter()
            .rev()
            .find(|(at, pod)| *at - first >= partition && !is_updated(pod) && pod.1.is_active());
        decision.delete.extend(outdated.map(|(_, pod)| (*pod).clone()));
    }
    decision
}

fn pod(set: &Object, ordinal: i64, hash: &str) -> Object {
    let template = set.get(&["spec", "template"]).cloned().unwrap_or_default();
    let name = format!("{}-{ordinal}", set.name());
    let mut pod = template::pod(set, &template);
    pod.set(&["metadata", "name"], name.as_str().into());
    pod.set_label(POD_NAME, name.as_str());
    pod.set_label(POD_INDEX, ordinal.to_string());
    pod.set_label(REVISION_HASH, format!("{}-{hash}", set.name()));
    pod.set(&["spec", "hostname"], name.as_str().into());
    if let Some(service) = set.get(&["spec", "serviceName"]) {
        pod.set(&["spec", "subdomain"], service.clone());
    }
    let mut volumes = pod.array(&["spec", "volumes"]).to_vec();
    for claim in set.array(&["spec", "volumeClaimTemplates"]) {
        let volume = claim["metadata"]["name"].as_str().unwrap_or_default();
        volumes.retain(|known| known["name"] != volume);
        volumes.push(json!({
            "name": volume, "persistentVolumeClaim": {"claimName": format!("{volume}-{name}")},
        }));
    }
    if !volumes.is_empty() {
        pod.set(&["spec", "volumes"], Value::Array(volumes));
    }
    pod
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::PodView;
    use std::sync::Arc;

    fn set(spec: &Value) -> Object {
        let mut it = Object::from_value(json!({
            "metadata": {"name": "db", "namespace": "n", "uid": "s"},
            "spec": {"template": {"spec": {"v": 1}}},
        }))
        .unwrap();
        for (key, value) in spec.as_object().unwrap() {
            it.set(&["spec", key], value.clone());
        }
        it
    }

    fn pods(set: &Object, states: &[(i64, &str)]) -> Vec<Named> {
        let hash = decide(set, &[], Timestamp::UNIX_EPOCH).hash;
        states
            .iter()
            .map(|(ordinal, state)| {
                let mut it = pod(set, *ordinal, if *state == "old" { "x" } else { &hash });
                it.set(&["metadata", "uid"], (*ordinal).into());
                if *state != "starting" {
                    let ready = json!([{"type": "Ready", "status": "True"}]);
                    it.set(&["status", "conditions"], ready);
                }
                if *state == "going" {
                    it.set(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z".into());
                }
                (it.key(), Arc::new(PodView::of(&it)))
            })
            .collect()
    }

    #[test]
    fn pods_come_in_order_and_leave_from_the_end() {
        let parallel = json!("Parallel");
        for (spec, states, create, delete) in [
            (json!({"replicas": 2}), vec![], vec![0], vec![]),
            (json!({"replicas": 2}), vec![(0, "starting")], vec![], vec![]),
            (json!({"replicas": 2}), vec![(0, "ready")], vec![1], vec![]),
            (json!({"replicas": 2, "podManagementPolicy": parallel}), vec![], vec![0, 1], vec![]),
            (
                json!({"replicas": 1}),
                vec![(0, "ready"), (1, "ready"), (2, "ready")],
                vec![],
                vec!["db-2"],
            ),
            (json!({"replicas": 2}), vec![(0, "going"), (1, "ready")], vec![], vec![]),
            (json!({"replicas": 2}), vec![(0, "old"), (1, "old")], vec![], vec!["db-1"]),
            (json!({"replicas": 2}), vec![(0, "old"), (1, "ready")], vec![], vec!["db-0"]),
            (
                json!({"replicas": 2, "updateStrategy": {"type": "OnDelete"}}),
                vec![(0, "old"), (1, "old")],
                vec![],
                vec![],
            ),
        ] {
            let it = set(&spec);
            let decision = decide(&it, &pods(&it, &states), Timestamp::UNIX_EPOCH);
            let deleted: Vec<&str> = decision.delete.iter().map(|(key, _)| &*key.name).collect();
            assert_eq!((decision.create, deleted), (create, delete), "{spec} {states:?}");
        }
    }

    #[test]
    fn the_revision_moves_on_when_every_pod_has_it() {
        let mut it = set(&json!({"replicas": 2}));
        let status = |it: &Object, states: &[(i64, &str)]| {
            decide(it, &pods(it, states), Timestamp::UNIX_EPOCH).status
        };
        it.set(&["status"], json!({"currentRevision": "db-x"}));
        let rolling = status(&it, &[(0, "old"), (1, "ready")]);
        assert_eq!(rolling["currentRevision"], "db-x");
        assert_eq!(
            (&rolling["currentReplicas"], &rolling["updatedReplicas"]),
            (&json!(1), &json!(1))
        );
        let done = status(&it, &[(0, "ready"), (1, "ready")]);
        assert_eq!(done["currentRevision"], done["updateRevision"]);
        it.set(&["status"], done.clone());
        assert_eq!(status(&it, &[(0, "ready"), (1, "ready")]), done);
    }

    #[test]
    fn a_pod_carries_its_name_and_claims() {
        let it = set(&json!({
            "serviceName": "svc", "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
        }));
        let pod = pod(&it, 3, "h");
        assert_eq!(pod.name(), "db-3");
        assert_eq!(pod.label(POD_NAME), Some("db-3"));
        assert_eq!(pod.str(&["spec", "subdomain"]), Some("svc"));
        assert_eq!(
            pod.array(&["spec", "volumes"])[0]["persistentVolumeClaim"]["claimName"],
            "data-db-3"
        );
    }
}
