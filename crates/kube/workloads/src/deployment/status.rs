//! Deployment status: conditions with the reasons and messages that clients wait for.

use super::Named;
use super::decide::Bounds;
use crate::common::put_count;
use jiff::Timestamp;
use mainstay_object::Object;
use serde_json::{Map, Value, json};

/// The state that the status is computed from.
pub(crate) struct Observed<'a> {
    pub(crate) deployment: &'a Object,
    /// The ReplicaSets that the Deployment owns, before the steps of this reconcile.
    pub(crate) sets: &'a [Named],
    /// The ReplicaSet of the current template.
    pub(crate) new: Option<&'a Named>,
    /// The ReplicaSet that this reconcile created.
    pub(crate) created: Option<&'a str>,
    /// Why the ReplicaSet of the current template could not be created.
    pub(crate) failure: Option<&'a str>,
    pub(crate) collisions: i64,
    pub(crate) now: Timestamp,
}

struct Totals {
    replicas: i64,
    updated: i64,
    ready: i64,
    available: i64,
}

/// The status, and in how many seconds it must be computed again.
pub(crate) fn status(observed: &Observed<'_>) -> (Value, Option<u64>) {
    let deployment = observed.deployment;
    let sum = |count: fn(&crate::views::ReplicaSetView) -> i64| {
        observed.sets.iter().map(|(_, set)| count(set)).sum::<i64>()
    };
    let totals = Totals {
        replicas: sum(|set| set.status_replicas),
        updated: observed.new.map_or(0, |(_, set)| set.status_replicas),
        ready: sum(|set| set.ready),
        available: sum(|set| set.available),
    };
    let old = deployment.get(&["status"]).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut status: Map<String, Value> = old;
    let unavailable = (sum(|set| set.replicas) - totals.available).max(0);
    for (field, count) in [
        ("observedGeneration", deployment.generation()),
        ("replicas", totals.replicas),
        ("updatedReplicas", totals.updated),
        ("readyReplicas", totals.ready),
        ("availableReplicas", totals.available),
        ("unavailableReplicas", unavailable),
        ("collisionCount", observed.collisions),
    ] {
        put_count(&mut status, field, count);
    }
    match observed.sets.iter().map(|(_, set)| set.terminating_replicas).sum::<Option<i64>>() {
        Some(count) => status.insert("terminatingReplicas".to_owned(), count.into()),
        None => status.remove("terminatingReplicas"),
    };
    let mut conditions = Conditions {
        list: deployment.array(&["status", "conditions"]).to_vec(),
        now: mainstay_clock::rfc3339(observed.now),
    };
    availability(&mut conditions, deployment, &totals);
    let requeue_after = progress(&mut conditions, observed, &totals);
    let failed = observed.sets.iter().rev().find_map(|(_, set)| set.failure.as_ref());
    let failed = failed.filter(|_| !mainstay_fault::is_on("failures-of-replicas-are-not-told"));
    match failed {
        Some((reason, message)) => conditions.set("ReplicaFailure", "True", reason, message),
        None => conditions.remove("ReplicaFailure"),
    }
    if conditions.list.is_empty() {
        status.remove("conditions");
    } else {
        status.insert("conditions".to_owned(), Value::Array(conditions.list));
    }
    (Value::Object(status), requeue_after)
}

fn availability(conditions: &mut Conditions, deployment: &Object, totals: &Totals) {
    let bounds = Bounds::of(deployment);
    if totals.available >= bounds.replicas - bounds.unavailable {
        conditions.set(
            "Available",
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        );
    } else {
        conditions.set(
            "Available",
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        );
    }
}

/// Sets `Progressing` and returns in how many seconds the deadline passes.
fn progress(conditions: &mut Conditions, observed: &Observed<'_>, totals: &Totals) -> Option<u64> {
    const KIND: &str = "Progressing";
    let deployment = observed.deployment;
    let deadline = deployment.i64(&["spec", "progressDeadlineSeconds"]).unwrap_or(600);
    // The largest `i32` stands for "no deadline".
    if deadline >= i64::from(i32::MAX) {
        conditions.remove(KIND);
        return None;
    }
    let reason_now = |conditions: &Conditions| conditions.text(KIND, "reason").to_owned();
    if deployment.bool(&["spec", "paused"]) == Some(true) {
        if reason_now(conditions) != "DeploymentPaused" {
            conditions.set(KIND, "Unknown", "DeploymentPaused", "Deployment is paused");
        }
        return None;
    }
    if reason_now(conditions) == "DeploymentPaused" {
        conditions.set(KIND, "Unknown", "DeploymentResumed", "Deployment is resumed");
    }
    let name = observed.new.map(|(key, _)| key.name.to_string());
    if let Some(failure) = observed.failure {
        let message = format!("Failed to create new replica set: {failure}");
        conditions.set(KIND, "False", "ReplicaSetCreateError", &message);
        return None;
    }
    if let Some(name) = observed.created {
        let message = format!("Created new replica set {name:?}");
        conditions.set(KIND, "True", "NewReplicaSetCreated", &message);
        return u64::try_from(deadline).ok();
    }
    let name = name?;
    if conditions.find(KIND).is_none() {
        let message = format!("Found new replica set {name:?}");
        conditions.set(KIND, "True", "FoundNewReplicaSet", &message);
    }
    let bounds = Bounds::of(deployment);
    let settled =
        totals.replicas == totals.updated && reason_now(conditions) == "NewReplicaSetAvailable";
    if settled {
        return None;
    }
    let before = |field: &str| deployment.i64(&["status", field]).unwrap_or_default();
    let complete = totals.updated == bounds.replicas
        && totals.replicas == bounds.replicas
        && totals.available == bounds.replicas;
    let progressed = totals.updated > before("updatedReplicas")
        || totals.replicas - totals.updated < before("replicas") - before("updatedReplicas")
        || totals.ready > before("readyReplicas")
        || totals.available > before("availableReplicas");
    if complete {
        let message = format!("ReplicaSet {name:?} has successfully progressed.");
        conditions.set(KIND, "True", "NewReplicaSetAvailable", &message);
        return None;
    }
    if progressed {
        let message = format!("ReplicaSet {name:?} is progressing.");
        conditions.touch(KIND, "True", "ReplicaSetUpdated", &message);
        return u64::try_from(deadline).ok();
    }
    if matches!(
        reason_now(conditions).as_str(),
        "ProgressDeadlineExceeded" | "NewReplicaSetAvailable"
    ) {
        return None;
    }
    let since: Option<Timestamp> = conditions.text(KIND, "lastUpdateTime").parse().ok();
    let waited = since.map_or(0, |since| observed.now.as_second() - since.as_second());
    if waited > deadline && !mainstay_fault::is_on("deadlines-of-rollouts-never-pass") {
        let message = format!("ReplicaSet {name:?} has timed out progressing.");
        conditions.set(KIND, "False", "ProgressDeadlineExceeded", &message);
        return None;
    }
    // One second after the deadline, because times are whole seconds.
    u64::try_from(deadline - waited + 1).ok()
}

/// Deployment conditions: they have `lastUpdateTime`, and do not change while status and reason
/// stay.
struct Conditions {
    list: Vec<Value>,
    now: String,
}

impl Conditions {
    fn find(&self, kind: &str) -> Option<&Value> {
        self.list.iter().find(|condition| condition["type"] == kind)
    }

    fn text(&self, kind: &str, field: &str) -> &str {
        self.find(kind)
            .and_then(|condition| condition.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn remove(&mut self, kind: &str) {
        self.list.retain(|condition| condition["type"] != kind);
    }

    fn set(&mut self, kind: &str, status: &str, reason: &str, message: &str) {
        if self.text(kind, "status") != status || self.text(kind, "reason") != reason {
            self.touch(kind, status, reason, message);
        }
    }

    /// Sets a condition even if status and reason stay, so that `lastUpdateTime` moves.
    fn touch(&mut self, kind: &str, status: &str, reason: &str, message: &str) {
        let transition = if self.text(kind, "status") == status {
            self.text(kind, "lastTransitionTime").to_owned()
        } else {
            self.now.clone()
        };
        self.remove(kind);
        self.list.push(json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastUpdateTime": self.now, "lastTransitionTime": transition,
        }));
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
