//! Whether Deployments of a version run.

use crate::{World, condition, text};
use mainstay_cause::Cause;
use mainstay_object::Object;
use serde_json::Value;

/// What keeps the Deployments of a version from running.
pub(crate) fn causes(world: &World, version: &Object) -> Vec<Cause> {
    version
        .array(&["spec", "install", "spec", "deployments"])
        .iter()
        .filter_map(|it| of(world, version.namespace(), text(it, "name")))
        .collect()
}

fn of(world: &World, namespace: &str, name: &str) -> Option<Cause> {
    let Some(deployment) = world.find("Deployment", namespace, name) else {
        return Some(Cause::new(format!("Deployment {namespace}/{name} is not there")));
    };
    if condition(deployment, "Available", "True").is_some()
        && condition(deployment, "Progressing", "False").is_none()
    {
        return None;
    }
    let number = |field: &str| deployment.i64(&["status", field]).unwrap_or_default();
    let wanted = deployment.i64(&["spec", "replicas"]).unwrap_or(1);
    let mut cause = Cause::new(format!(
        "Deployment {namespace}/{name} has {} of {wanted} pods available",
        number("availableReplicas")
    ));
    if let Some((_, message)) = condition(deployment, "ReplicaFailure", "True") {
        cause = cause.because(Cause::new(message));
    }
    if let Some(("ProgressDeadlineExceeded", message)) =
        condition(deployment, "Progressing", "False")
    {
        cause = cause.because(Cause::new(message));
    }
    let mut pods: Vec<&Object> =
        world.within("Pod", namespace).filter(|it| selects(deployment, it)).collect();
    pods.sort_by_key(|it| it.name());
    // What stops one stops most of them.
    cause = cause.because_all(pods.into_iter().filter_map(pod).take(3));
    Some(cause.remedy(format!("see more: kubectl -n {namespace} describe deployment {name}")))
}

fn selects(deployment: &Object, pod: &Object) -> bool {
    let labels = deployment.get(&["spec", "selector", "matchLabels"]).and_then(Value::as_object);
    labels.is_some_and(|all| {
        !all.is_empty() && all.iter().all(|(key, value)| pod.label(key) == value.as_str())
    })
}

/// What keeps a pod from being ready.
fn pod(pod: &Object) -> Option<Cause> {
    if condition(pod, "Ready", "True").is_some() || pod.is_terminating() {
        return None;
    }
    let (namespace, name) = (pod.namespace(), pod.name());
    if let Some((_, message)) = condition(pod, "PodScheduled", "False") {
        return Some(Cause::new(format!("Pod {name} finds no node: {message}")));
    }
    let statuses = ["initContainerStatuses", "containerStatuses"]
        .into_iter()
        .flat_map(|it| pod.array(&["status", it]));
    for status in statuses {
        let container = text(status, "name");
        let state = |path: &str| status.get("state").and_then(|it| it.get(path));
        if let Some(waiting) = state("waiting") {
            let (reason, message) = (text(waiting, "reason"), text(waiting, "message"));
            let said = [reason, message].into_iter().filter(|it| !it.is_empty());
            let cause = Cause::new(format!(
                "container {container} of Pod {name} waits: {}",
                said.collect::<Vec<_>>().join(": ")
            ));
            return Some(if reason == "CrashLoopBackOff" {
                cause.remedy(format!(
                    "see what it said: kubectl -n {namespace} logs {name} -c {container} --previous"
                ))
            } else {
                cause
            });
        }
        let ready = status.get("ready").and_then(Value::as_bool).unwrap_or_default();
        if !ready && state("running").is_some() {
            return Some(
                Cause::new(format!("container {container} of Pod {name} runs and is not ready"))
                    .remedy(format!(
                        "see what it says: kubectl -n {namespace} logs {name} -c {container}"
                    )),
            );
        }
    }
    let phase = pod.str(&["status", "phase"]).unwrap_or("Pending");
    Some(Cause::new(format!("Pod {name} is {phase}")))
}
