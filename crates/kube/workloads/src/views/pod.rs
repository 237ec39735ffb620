//! The fields that controllers read of a Pod.

use super::Owner;
use crate::job::{COMPLETION_INDEX, FAILURES, TRACKING};
use crate::placement::{Needs, single_allowed_node};
use crate::protection;
use jiff::Timestamp;
use mainstay_client::conditions;
use mainstay_object::Object;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The phase of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

/// The end of the containers of a failed Pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ending {
    /// Container names and exit codes; init containers last.
    pub(crate) exits: Vec<(String, i64)>,
    /// Types and statuses of conditions.
    pub(crate) conditions: Vec<(String, String)>,
}

impl Ending {
    fn of(pod: &Object) -> Self {
        let text = |value: &Value, key: &str| {
            value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let exits = ["containerStatuses", "initContainerStatuses"]
            .into_iter()
            .flat_map(|field| pod.array(&["status", field]))
            .filter_map(|status| {
                let code = status.get("state")?.get("terminated")?.get("exitCode")?.as_i64()?;
                Some((text(status, "name"), code))
            });
        let conditions = pod.array(&["status", "conditions"]).iter();
        Self {
            exits: exits.collect(),
            conditions: conditions
                .map(|condition| (text(condition, "type"), text(condition, "status")))
                .collect(),
        }
    }
}

/// When the last container of a pod ended.
fn ended_at(pod: &Object) -> Option<Timestamp> {
    let times = pod.array(&["status", "containerStatuses"]).iter().filter_map(|status| {
        status.get("state")?.get("terminated")?.get("finishedAt")?.as_str()?.parse().ok()
    });
    times.max().or_else(|| pod.deletion_timestamp())
}

/// The fields that controllers read of a Pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PodView {
    pub(crate) uid: Arc<str>,
    pub(crate) owner: Option<Owner>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) node: Option<Arc<str>>,
    pub(crate) phase: Phase,
    /// Since when the pod is ready; none if it is not.
    pub(crate) ready_since: Option<Timestamp>,
    pub(crate) terminating: bool,
    /// The grace period of a terminating Pod in seconds.
    pub(crate) grace: Option<i64>,
    pub(crate) ip: Option<Arc<str>>,
    pub(crate) created: Option<Timestamp>,
    /// Named ports of its containers.
    pub(crate) ports: Vec<(String, i64)>,
    /// The requested behaviour.
    pub(crate) simulate: Option<Arc<str>>,
    /// A message with its closed readiness gates.
    pub(crate) gates: Option<Arc<str>>,
    /// Whether the scheduler found no node for it.
    pub(crate) unschedulable: bool,
    /// The annotation `controller.kubernetes.io/pod-deletion-cost`: Pods with a higher cost are
    /// deleted later.
    pub(crate) deletion_cost: i64,
    /// The highest restart count of its containers.
    pub(crate) restarts: i64,
    /// The `PersistentVolumeClaims` that it mounts.
    pub(crate) claims: Vec<Arc<str>>,
    /// The sum of the restart counts of its containers.
    pub(crate) all_restarts: i64,
    /// Whether it has the finalizer of its Job.
    pub(crate) tracked: bool,
    /// Its completion index.
    pub(crate) index: Option<i64>,
    /// The failures of its index before it.
    pub(crate) index_failures: i64,
    /// Its end, if it failed and belongs to a Job.
    pub(crate) ending: Option<Arc<Ending>>,
    /// When it ended.
    pub(crate) ended: Option<Timestamp>,
    /// Its node, or the only node that its affinity allows.
    pub(crate) target: Option<Arc<str>>,
    /// Its scheduling requirements.
    pub(crate) needs: Arc<Needs>,
    /// The number of ephemeral containers; it never decreases.
    pub(crate) ephemeral: usize,
    /// `activeDeadlineSeconds`: scopes of quotas tell such Pods apart.
    pub(crate) deadline: Option<i64>,
}

impl PodView {
    /// Reads a pod.
    pub(crate) fn of(pod: &Object) -> Self {
        let list = pod.array(&["status", "conditions"]);
        let ready = conditions::find(list, "Ready")
            .filter(|condition| condition.get("status").and_then(Value::as_str) == Some("True"));
        let ready_since = ready.and_then(|condition| {
            let since = condition.get("lastTransitionTime").and_then(Value::as_str)?;
            since.parse().ok()
        });
        let scheduled = conditions::find(list, "PodScheduled");
        let text = |path: &[&str]| pod.str(path).filter(|text| !text.is_empty()).map(Arc::from);
        let ports = pod
            .array(&["spec", "containers"])
            .iter()
            .filter_map(|container| container.get("ports").and_then(Value::as_array))
            .flatten()
            .filter_map(|port| {
                Some((port.get("name")?.as_str()?.to_owned(), port.get("containerPort")?.as_i64()?))
            })
            .collect();
        Self {
            uid: pod.uid().into(),
            owner: Owner::of(pod),
            labels: pod.labels().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            node: text(&["spec", "nodeName"]),
            phase: match pod.str(&["status", "phase"]) {
                Some("Running") => Phase::Running,
                Some("Succeeded") => Phase::Succeeded,
                Some("Failed") => Phase::Failed,
                _ => Phase::Pending,
            },
            ready_since: ready_since.or_else(|| ready.map(|_| Timestamp::UNIX_EPOCH)),
            terminating: pod.is_terminating(),
            grace: pod.i64(&["metadata", "deletionGracePeriodSeconds"]),
            ip: text(&["status", "podIP"]),
            created: pod.creation_timestamp(),
            ports,
            simulate: pod.annotation(crate::simulate::ANNOTATION).map(Arc::from),
            gates: crate::simulate::unmet_gates(pod).map(Arc::from),
            unschedulable: scheduled
                .and_then(|condition| condition.get("reason"))
                .and_then(Value::as_str)
                == Some("Unschedulable"),
            deletion_cost: pod
                .annotation("controller.kubernetes.io/pod-deletion-cost")
                .and_then(|cost| cost.parse::<i32>().ok())
                .map_or(0, i64::from),
            claims: protection::claims_of(pod),
            restarts: pod
                .array(&["status", "containerStatuses"])
                .iter()
                .filter_map(|status| status.get("restartCount")?.as_i64())
                .max()
                .unwrap_or_default(),
            all_restarts: ["initContainerStatuses", "containerStatuses"]
                .into_iter()
                .flat_map(|field| pod.array(&["status", field]))
                .filter_map(|status| status.get("restartCount")?.as_i64())
                .sum(),
            tracked: pod.finalizers().any(|finalizer| finalizer == TRACKING),
            index: pod.annotation(COMPLETION_INDEX).and_then(|text| text.parse().ok()),
            index_failures: pod
                .annotation(FAILURES)
                .and_then(|text| text.parse().ok())
                .unwrap_or_default(),
            ending: (pod.str(&["status", "phase"]) == Some("Failed"))
                .then(|| Arc::new(Ending::of(pod))),
            ended: matches!(pod.str(&["status", "phase"]), Some("Failed" | "Succeeded"))
                .then(|| ended_at(pod))
                .flatten(),
            target: text(&["spec", "nodeName"])
                .or_else(|| single_allowed_node(pod.get(&["spec", "affinity"])).map(Arc::from)),
            needs: Arc::new(Needs::of(pod)),
            ephemeral: pod.array(&["spec", "ephemeralContainers"]).len(),
            deadline: pod.i64(&["spec", "activeDeadlineSeconds"]),
        }
    }

    /// Whether it counts towards the replicas of its controller: neither finished nor terminating.
    pub(crate) fn is_active(&self) -> bool {
        !self.terminating && !self.is_finished()
    }

    /// Whether its containers have ended for good.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Whether it is ready.
    pub(crate) const fn is_ready(&self) -> bool {
        self.ready_since.is_some()
    }

    /// Whether it has been ready for that many seconds.
    pub(crate) fn is_available(&self, min_ready_seconds: i64, now: Timestamp) -> bool {
        self.ready_since
            .is_some_and(|since| now.as_second() - since.as_second() >= min_ready_seconds)
    }
}
