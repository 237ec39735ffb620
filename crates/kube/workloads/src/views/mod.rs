//! Shared caches: the fields that controllers read of each kind.

use crate::common::Context;
mod pod;

pub(crate) use pod::{Ending, Phase, PodView};

use crate::placement::{Taint, amounts};
use crate::template;
use jiff::Timestamp;
use mainstay_client::{Cache, Selection, conditions};
use mainstay_object::selector::LabelSelector;
use mainstay_object::{Object, Resource, builtin};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The controller owner of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) kind: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) uid: Arc<str>,
}

impl Owner {
    fn of(object: &Object) -> Option<Self> {
        let owner = object.controller_owner()?;
        Some(Self { kind: owner.kind.into(), name: owner.name.into(), uid: owner.uid.into() })
    }
}

/// An object that a workload creates: it has an owner, or labels that a selector may match.
pub(crate) trait Dependent {
    /// Its controller owner.
    fn owner(&self) -> Option<&Owner>;

    /// Its labels.
    fn labels(&self) -> &BTreeMap<String, String>;

    /// Whether a selector matches its labels.
    fn matches(&self, selector: &LabelSelector) -> bool {
        selector.matches_with(|key| self.labels().get(key).map(String::as_str))
    }
}

impl Dependent for PodView {
    fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }
}

impl Dependent for ReplicaSetView {
    fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }
}

/// An object that creates and adopts other objects by their labels.
pub(crate) trait SelectorOwner {
    /// The selector of its dependents; none selects nothing.
    fn selector(&self) -> Option<&LabelSelector>;
}

impl SelectorOwner for WorkloadTrigger {
    fn selector(&self) -> Option<&LabelSelector> {
        self.selector.as_ref()
    }
}

impl SelectorOwner for ReplicaSetView {
    fn selector(&self) -> Option<&LabelSelector> {
        self.selector.as_ref()
    }
}

/// The fields that Deployments read of a ReplicaSet, and the selector that adopts Pods.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReplicaSetView {
    pub(crate) name: Arc<str>,
    pub(crate) uid: Arc<str>,
    pub(crate) resource_version: Arc<str>,
    pub(crate) generation: i64,
    pub(crate) owner: Option<Owner>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) selector: Option<LabelSelector>,
    pub(crate) fingerprint: u64,
    pub(crate) terminating: bool,
    pub(crate) created: Option<Timestamp>,
    pub(crate) annotations: BTreeMap<String, String>,
    /// `spec.replicas`.
    pub(crate) replicas: i64,
    /// `spec.minReadySeconds`.
    pub(crate) min_ready: i64,
    pub(crate) status_replicas: i64,
    pub(crate) ready: i64,
    pub(crate) available: i64,
    /// None until the status has it.
    pub(crate) terminating_replicas: Option<i64>,
    pub(crate) observed_generation: i64,
    /// Reason and message of the condition `ReplicaFailure`.
    pub(crate) failure: Option<(String, String)>,
}

impl ReplicaSetView {
    /// Reads a ReplicaSet.
    pub(crate) fn of(object: &Object) -> Self {
        let count = |field: &str| object.i64(&["status", field]).unwrap_or_default();
        let failure = conditions::find(object.array(&["status", "conditions"]), "ReplicaFailure")
            .filter(|condition| condition.get("status").and_then(Value::as_str) == Some("True"))
            .map(|condition| {
                let text = |key: &str| {
                    condition.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
                };
                (text("reason"), text("message"))
            });
        let pairs = |pairs: &mut dyn Iterator<Item = (&str, &str)>| {
            pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
        };
        Self {
            name: object.name().into(),
            uid: object.uid().into(),
            resource_version: object.resource_version().into(),
            generation: object.generation(),
            owner: Owner::of(object),
            labels: pairs(&mut object.labels()),
            selector: selector(object),
            fingerprint: object.get(&["spec", "template"]).map_or(0, template::fingerprint),
            terminating: object.is_terminating(),
            created: object.creation_timestamp(),
            annotations: pairs(&mut object.annotations()),
            replicas: object.i64(&["spec", "replicas"]).unwrap_or(1),
            min_ready: object.i64(&["spec", "minReadySeconds"]).unwrap_or_default(),
            status_replicas: count("replicas"),
            ready: count("readyReplicas"),
            available: count("availableReplicas"),
            terminating_replicas: object.i64(&["status", "terminatingReplicas"]),
            observed_generation: count("observedGeneration"),
            failure,
        }
    }
}

/// The fields whose change enqueues a workload; its controller reads the live object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WorkloadTrigger {
    pub(crate) uid: Arc<str>,
    /// `spec.replicas`, for kinds that have it.
    pub(crate) replicas: i64,
    pub(crate) resource_version: Arc<str>,
    pub(crate) selector: Option<LabelSelector>,
}

impl WorkloadTrigger {
    fn of(object: &Object, selector: Option<LabelSelector>) -> Self {
        Self {
            uid: object.uid().into(),
            replicas: object.i64(&["spec", "replicas"]).unwrap_or(1),
            resource_version: object.resource_version().into(),
            selector,
        }
    }
}

/// The end of a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobEnd {
    Complete,
    Failed,
}

/// The fields that a `CronJob` reads of a Job, and those that enqueue the Job itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct JobView {
    pub(crate) uid: Arc<str>,
    pub(crate) resource_version: Arc<str>,
    pub(crate) selector: Option<LabelSelector>,
    pub(crate) owner: Option<Owner>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) end: Option<JobEnd>,
    pub(crate) started: Option<Timestamp>,
    pub(crate) completed: Option<Timestamp>,
    pub(crate) terminating: bool,
}

impl JobView {
    fn of(object: &Object) -> Self {
        let time = |field: &str| object.str(&["status", field]).and_then(|text| text.parse().ok());
        let end = if object.condition("Complete") == Some("True") {
            Some(JobEnd::Complete)
        } else if object.condition("Failed") == Some("True") {
            Some(JobEnd::Failed)
        } else {
            None
        };
        Self {
            uid: object.uid().into(),
            resource_version: object.resource_version().into(),
            selector: selector(object),
            owner: Owner::of(object),
            labels: BTreeMap::new(),
            end,
            started: time("startTime"),
            completed: time("completionTime"),
            terminating: object.is_terminating(),
        }
    }
}

impl Dependent for JobView {
    fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }
}

impl SelectorOwner for JobView {
    fn selector(&self) -> Option<&LabelSelector> {
        self.selector.as_ref()
    }
}

/// The fields that controllers read of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NodeView {
    pub(crate) name: Arc<str>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) ready: bool,
    pub(crate) unschedulable: bool,
    pub(crate) ip: Option<Arc<str>>,
    pub(crate) taints: Vec<Taint>,
    /// `status.allocatable`.
    pub(crate) allocatable: BTreeMap<Arc<str>, i64>,
    pub(crate) uid: Arc<str>,
    /// Whether its kubelet is simulated.
    pub(crate) simulated: bool,
    /// Types and statuses of its conditions.
    pub(crate) conditions: Vec<(String, String)>,
    /// The requested behaviour.
    pub(crate) simulate: Option<Arc<str>>,
}

impl NodeView {
    fn of(node: &Object) -> Self {
        let address = node
            .array(&["status", "addresses"])
            .iter()
            .find(|address| address.get("type").and_then(Value::as_str) == Some("InternalIP"));
        Self {
            name: node.name().into(),
            labels: node.labels().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            ready: node.condition("Ready") == Some("True"),
            unschedulable: node.bool(&["spec", "unschedulable"]) == Some(true),
            ip: address
                .and_then(|address| address.get("address"))
                .and_then(Value::as_str)
                .map(Arc::from),
            taints: node.array(&["spec", "taints"]).iter().map(Taint::of).collect(),
            allocatable: amounts(node.get(&["status", "allocatable"])),
            uid: node.uid().into(),
            simulated: node.label("mainstay.dev/simulated") != Some("false"),
            conditions: node
                .array(&["status", "conditions"])
                .iter()
                .map(|condition| {
                    let text = |key: &str| {
                        condition.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
                    };
                    (text("type"), text("status"))
                })
                .collect(),
            simulate: node.annotation(crate::simulate::ANNOTATION).map(Arc::from),
        }
    }
}

/// `spec.selector` of a `ReplicationController`, which is a plain map.
pub(crate) fn plain_selector(object: &Object) -> Option<LabelSelector> {
    let labels = object.get(&["spec", "selector"])?.as_object()?;
    let pairs =
        labels.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()));
    let selector = LabelSelector::from_pairs(pairs);
    (!selector.is_everything()).then_some(selector)
}

/// `spec.selector` of a workload; none if absent or unreadable, which matches nothing.
pub(crate) fn selector(object: &Object) -> Option<LabelSelector> {
    let selector = LabelSelector::from_value(object.get(&["spec", "selector"])?).ok()?;
    (!selector.is_everything()).then_some(selector)
}

/// The fields of a `ControllerRevision`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RevisionView {
    pub(crate) uid: Arc<str>,
    pub(crate) resource_version: Arc<str>,
    pub(crate) owner: Option<Owner>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) revision: i64,
    pub(crate) data: Value,
    pub(crate) terminating: bool,
    pub(crate) created: Option<Timestamp>,
}

impl RevisionView {
    /// Reads a revision.
    pub(crate) fn of(object: &Object) -> Self {
        Self {
            uid: object.uid().into(),
            resource_version: object.resource_version().into(),
            owner: Owner::of(object),
            labels: object
                .labels()
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
            revision: object.i64(&["revision"]).unwrap_or_default(),
            data: object.get(&["data"]).cloned().unwrap_or_default(),
            terminating: object.is_terminating(),
            created: object.creation_timestamp(),
        }
    }
}

impl Dependent for RevisionView {
    fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }
}

/// The fields of a `PodDisruptionBudget`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BudgetView {
    pub(crate) resource_version: Arc<str>,
    /// The empty selector selects all pods; none selects nothing.
    pub(crate) selector: Option<LabelSelector>,
    pub(crate) allowed: i64,
}

impl BudgetView {
    fn of(object: &Object) -> Self {
        let selector = object.get(&["spec", "selector"]).filter(|selector| !selector.is_null());
        Self {
            resource_version: object.resource_version().into(),
            selector: selector.and_then(|selector| LabelSelector::from_value(selector).ok()),
            allowed: object.i64(&["status", "disruptionsAllowed"]).unwrap_or_default(),
        }
    }
}

/// The index value of Pods without a node.
pub(crate) const UNASSIGNED: &str = "unassigned";

/// The index value of objects without a controller owner.
pub(crate) const ORPHANS: &str = "orphans";

/// The shared caches.
#[derive(Clone)]
pub(crate) struct Views {
    /// Indexed by the uid of the controller (or [`ORPHANS`]) and by `node/` and the node's name.
    pub(crate) pods: Cache<PodView>,
    /// Indexed by the uid of the controller, or [`ORPHANS`].
    pub(crate) replica_sets: Cache<ReplicaSetView>,
    pub(crate) replication_controllers: Cache<WorkloadTrigger>,
    pub(crate) deployments: Cache<WorkloadTrigger>,
    /// Indexed by the uid of the controller, or [`ORPHANS`].
    pub(crate) revisions: Cache<RevisionView>,
    pub(crate) stateful_sets: Cache<WorkloadTrigger>,
    pub(crate) daemon_sets: Cache<WorkloadTrigger>,
    /// Indexed by the uid of the controller.
    pub(crate) jobs: Cache<JobView>,
    pub(crate) cron_jobs: Cache<WorkloadTrigger>,
    pub(crate) nodes: Cache<NodeView>,
    pub(crate) budgets: Cache<BudgetView>,
}

impl Views {
    /// Starts the caches.
    pub(crate) fn start(context: &Context) -> Self {
        let triggers = |resource: Resource| {
            Cache::builder(Selection::all(resource), |object| {
                Some(WorkloadTrigger::of(object, selector(object)))
            })
            .start(&context.cluster, context.stop.clone())
        };
        Self {
            pods: Cache::builder(Selection::all(builtin::POD), |pod| Some(PodView::of(pod)))
                .index(|pod| {
                    let owner = match &pod.owner {
                        Some(owner) => Arc::clone(&owner.uid),
                        None => ORPHANS.into(),
                    };
                    let place = match &pod.node {
                        Some(node) => Some(format!("node/{node}").into()),
                        None if pod.is_finished() => None,
                        None => Some(UNASSIGNED.into()),
                    };
                    std::iter::once(owner).chain(place).collect()
                })
                .start(&context.cluster, context.stop.clone()),
            replica_sets: Cache::builder(Selection::all(builtin::REPLICA_SET), |object| {
                Some(ReplicaSetView::of(object))
            })
            .index(|set| {
                vec![
                    set.owner
                        .as_ref()
                        .map_or_else(|| ORPHANS.into(), |owner| Arc::clone(&owner.uid)),
                ]
            })
            .start(&context.cluster, context.stop.clone()),
            replication_controllers: Cache::builder(
                Selection::all(builtin::REPLICATION_CONTROLLER),
                |object| Some(WorkloadTrigger::of(object, plain_selector(object))),
            )
            .start(&context.cluster, context.stop.clone()),
            deployments: triggers(builtin::DEPLOYMENT),
            revisions: Cache::builder(Selection::all(builtin::CONTROLLER_REVISION), |object| {
                Some(RevisionView::of(object))
            })
            .index(|revision| {
                vec![
                    revision
                        .owner
                        .as_ref()
                        .map_or_else(|| ORPHANS.into(), |owner| Arc::clone(&owner.uid)),
                ]
            })
            .start(&context.cluster, context.stop.clone()),
            stateful_sets: triggers(builtin::STATEFUL_SET),
            daemon_sets: triggers(builtin::DAEMON_SET),
            jobs: Cache::builder(Selection::all(builtin::JOB), |object| Some(JobView::of(object)))
                .index(|job| job.owner.iter().map(|owner| Arc::clone(&owner.uid)).collect())
                .start(&context.cluster, context.stop.clone()),
            cron_jobs: Cache::builder(Selection::all(builtin::CRON_JOB), |object| {
                Some(WorkloadTrigger::of(object, None))
            })
            .start(&context.cluster, context.stop.clone()),
            budgets: Cache::builder(Selection::all(builtin::POD_DISRUPTION_BUDGET), |object| {
                Some(BudgetView::of(object))
            })
            .start(&context.cluster, context.stop.clone()),
            nodes: Cache::builder(Selection::all(builtin::NODE), |node| Some(NodeView::of(node)))
                .start(&context.cluster, context.stop.clone()),
        }
    }
}
