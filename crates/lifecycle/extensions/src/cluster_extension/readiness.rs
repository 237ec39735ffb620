//! The condition Ready: one answer for scripts and tools that wait.
//!
//! An extension is ready if the bundle that its spec asks for is installed, its objects pass their probes (with
//! ClusterObjectSets), and all its Deployments are available. Upstream has no such condition.

use mainstay_api::conditions::{condition, find, set_condition};
use mainstay_api::names::olm_v1::{OWNER_KIND_LABEL, OWNER_NAME_LABEL};
use mainstay_api::{
    ClusterExtensionConditionType as Type, ClusterExtensionReason, ClusterExtensionStatus,
    Condition, ConditionStatus, Time,
};
use mainstay_client::{Cache, CacheBuilder, Selection};
use mainstay_object::{Object, builtin};
use std::sync::Arc;

/// The type of the condition.
const READY: &str = "Ready";
/// The reason if nothing is left to do.
const REASON_READY: &str = "Ready";
/// The reason if a Deployment is not available.
const REASON_UNAVAILABLE: &str = "DeploymentsUnavailable";
/// The message if nothing is left to do.
const MESSAGE_READY: &str = "the requested bundle is installed, and its Deployments are available";

/// A Deployment of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeploymentState {
    /// The name of the extension.
    pub(crate) extension: Arc<str>,
    /// Why it is not available; none if it is.
    problem: Option<String>,
}

impl DeploymentState {
    /// The cache of the Deployments of all extensions, indexed by extension.
    pub(crate) fn cache() -> CacheBuilder<Self> {
        let selection = Selection::all(builtin::DEPLOYMENT)
            .labels(format!("{OWNER_KIND_LABEL}={}", super::OWNER_KIND));
        Cache::builder(selection, Self::of)
            .index(|deployment: &Self| vec![Arc::clone(&deployment.extension)])
    }

    fn of(deployment: &Object) -> Option<Self> {
        let extension = deployment.label(OWNER_NAME_LABEL)?.into();
        Some(Self { extension, problem: problem(deployment) })
    }
}

/// Whether [`DeploymentState::cache`] has an object, which is stored.
pub(super) fn is_watched(object: &Object) -> bool {
    object.gvk() == builtin::DEPLOYMENT.gvk()
        && object.label(OWNER_KIND_LABEL) == Some(super::OWNER_KIND)
}

/// Why a Deployment is not available; none if it is.
fn problem(deployment: &Object) -> Option<String> {
    let count = |path: &[&str]| deployment.i64(path).unwrap_or_default();
    let is_observed = count(&["status", "observedGeneration"]) >= deployment.generation();
    let replicas = deployment.i64(&["spec", "replicas"]).unwrap_or(1);
    let mut conditions = deployment.array(&["status", "conditions"]).iter();
    let is_available = conditions
        .any(|condition| condition["type"] == "Available" && condition["status"] == "True");
    let is_updated = is_observed && count(&["status", "updatedReplicas"]) >= replicas;
    // One message, so that a rollout costs one write.
    (!is_updated || !is_available).then(|| {
        let (namespace, name) = (deployment.namespace(), deployment.name());
        format!("Deployment {namespace}/{name} has fewer available pods of its present template than it needs")
    })
}

/// Sets the condition of a status, from its other conditions and the Deployments of the extension.
pub(super) fn set_ready<'d>(
    status: &mut ClusterExtensionStatus,
    generation: i64,
    deployments: impl IntoIterator<Item = &'d DeploymentState>,
    now: Time,
) {
    let ready = ready(status, generation, deployments);
    set_condition(&mut status.conditions, ready, now);
}

fn ready<'d>(
    status: &ClusterExtensionStatus,
    generation: i64,
    deployments: impl IntoIterator<Item = &'d DeploymentState>,
) -> Condition {
    let conditions = [&Type::Progressing, &Type::Installed, &Type::Available]
        .map(|kind| find(&status.conditions, &kind.to_string()));
    let [progressing, installed, available] = conditions;
    let is_true = |condition: &Condition| condition.status == ConditionStatus::True;
    let has_progressed = |condition: &Condition| {
        is_true(condition) && ClusterExtensionReason::Succeeded == *condition.reason
    };
    let unmet = [
        progressing.filter(|condition| !has_progressed(condition)),
        installed.filter(|condition| !is_true(condition)),
        available.filter(|condition| !is_true(condition)),
    ];
    let of =
        |truth, reason: &str, message: &str| condition(&READY, truth, &reason, message, generation);
    if let Some(unmet) = unmet.into_iter().flatten().next() {
        let truth = match unmet.status {
            ConditionStatus::Unknown => ConditionStatus::Unknown,
            _ => ConditionStatus::False,
        };
        return of(truth, &unmet.reason, &unmet.message);
    }
    let mut problems: Vec<&str> =
        deployments.into_iter().filter_map(|deployment| deployment.problem.as_deref()).collect();
    if problems.is_empty() {
        return of(ConditionStatus::True, REASON_READY, MESSAGE_READY);
    }
    problems.sort_unstable();
    of(ConditionStatus::False, REASON_UNAVAILABLE, &problems.join("\n"))
}

/// Whether the condition Ready is all that two statuses differ in.
pub(super) fn is_only_change(
    before: &ClusterExtensionStatus,
    after: &ClusterExtensionStatus,
) -> bool {
    let without = |status: &ClusterExtensionStatus| {
        let mut status = status.clone();
        status.conditions.retain(|condition| condition.kind != READY);
        status
    };
    without(before) == without(after)
}

/// The condition as the decision log says it.
pub(super) fn report(status: &ClusterExtensionStatus) -> Option<(&'static str, &str)> {
    let ready = find(&status.conditions, READY)?;
    let is_ready = ready.status == ConditionStatus::True;
    Some((if is_ready { "ready" } else { "not ready" }, &ready.message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use serde_json::{Value, json};

    fn deployment(status: &Value) -> DeploymentState {
        let object = Object::from_value(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "kiwi", "namespace": "fruit", "generation": 2,
                "labels": {OWNER_NAME_LABEL: "kiwi"},
            },
            "spec": {"replicas": 2},
            "status": status,
        }));
        DeploymentState::of(&object.unwrap()).unwrap()
    }

    fn available(observed: i64, updated: i64, status: &str) -> Value {
        json!({
            "observedGeneration": observed, "updatedReplicas": updated,
            "conditions": [{"type": "Available", "status": status}],
        })
    }

    #[test]
    fn deployment_is_available_once_its_present_template_is() {
        let unavailable = Some(
            "Deployment fruit/kiwi has fewer available pods of its present template than it needs",
        );
        for (status, expected) in [
            (json!({}), unavailable),
            (available(1, 2, "True"), unavailable),
            (available(2, 1, "True"), unavailable),
            (available(2, 2, "False"), unavailable),
            (json!({"observedGeneration": 2, "updatedReplicas": 2}), unavailable),
            (available(2, 2, "True"), None),
        ] {
            assert_eq!(deployment(&status).problem.as_deref(), expected, "{status}");
        }
    }

    #[test]
    fn first_unmet_condition_says_why_an_extension_is_not_ready() {
        let of = |kind: &Type, truth, reason: &str, message: &str| {
            condition(kind, truth, &reason, message, 1)
        };
        let installed = |truth| of(&Type::Installed, truth, "Succeeded", "installed");
        let succeeded = of(&Type::Progressing, ConditionStatus::True, "Succeeded", "reached");
        let retrying = of(&Type::Progressing, ConditionStatus::True, "Retrying", "no bundle");
        let probes = of(&Type::Available, ConditionStatus::False, "ProbeFailure", "CRD");
        let unready = [deployment(&json!({}))];
        let ready_deployments = [deployment(&available(2, 2, "True"))];
        let yes = || ConditionStatus::True;
        for (conditions, deployments, expected) in [
            (vec![succeeded.clone(), installed(yes())], &ready_deployments[..], ("True", "Ready")),
            (vec![succeeded.clone(), installed(yes())], &[], ("True", "Ready")),
            (
                vec![succeeded.clone(), installed(yes())],
                &unready[..],
                ("False", "DeploymentsUnavailable"),
            ),
            (vec![retrying, installed(yes())], &ready_deployments[..], ("False", "Retrying")),
            (
                vec![succeeded.clone(), installed(ConditionStatus::Unknown)],
                &[],
                ("Unknown", "Succeeded"),
            ),
            (
                vec![succeeded, installed(yes()), probes],
                &ready_deployments[..],
                ("False", "ProbeFailure"),
            ),
        ] {
            let mut status = ClusterExtensionStatus { conditions, ..Default::default() };
            let now = Time::new(Timestamp::UNIX_EPOCH);
            set_ready(&mut status, 7, deployments, now);
            let ready = find(&status.conditions, READY).unwrap();
            assert_eq!((ready.status.as_str(), &*ready.reason), expected, "{}", ready.message);
            assert_eq!(ready.observed_generation, 7);
        }
    }
}
