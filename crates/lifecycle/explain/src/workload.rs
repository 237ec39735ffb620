//! Workloads: why the Deployments of a ClusterServiceVersion or a ClusterExtension are not available.

use crate::{ClusterObjects, condition, text};
use mainstay_cause::Cause;
use mainstay_object::Object;
use serde_json::Value;
use std::cmp::Reverse;

/// Most Pods that are explained: the Pods of a Deployment mostly fail for the same reason.
const MAX_PODS: usize = 3;

/// Why Deployments of a ClusterServiceVersion are not available.
pub(crate) fn causes(cluster: &ClusterObjects, csv: &Object) -> Vec<Cause> {
    let namespace = csv.namespace();
    let scheduling_remedy = scheduling_remedy(cluster, csv);
    csv.array(&["spec", "install", "spec", "deployments"])
        .iter()
        .filter_map(|deployment| {
            let name = text(deployment, "name");
            if cluster.hides("Deployment", namespace) {
                return None;
            }
            let Some(deployment) = cluster.find("Deployment", namespace, name) else {
                return Some(Cause::new(format!("Deployment {namespace}/{name} does not exist")));
            };
            deployment_cause(cluster, deployment, scheduling_remedy.as_deref())
        })
        .collect()
}

/// Why a Deployment is not available; none if it is. `scheduling_remedy` says how to change where its Pods
/// run.
pub(crate) fn deployment_cause(
    cluster: &ClusterObjects,
    deployment: &Object,
    scheduling_remedy: Option<&str>,
) -> Option<Cause> {
    let (namespace, name) = (deployment.namespace(), deployment.name());
    let replicas = deployment.i64(&["spec", "replicas"]).unwrap_or(1);
    let is_available = condition(deployment, "Available", "True").is_some();
    let is_late = condition(deployment, "Progressing", "False").is_some();
    if is_available && !is_late && is_rolled_out(deployment, replicas) {
        return None;
    }
    let number = |field: &str| deployment.i64(&["status", field]).unwrap_or_default();
    let mut cause = Cause::new(if is_available && !is_rolled_out(deployment, replicas) {
        format!(
            "Deployment {namespace}/{name} is being updated, and its new pods are not ready; the previous pods still run"
        )
    } else {
        format!(
            "Deployment {namespace}/{name} has {} of {replicas} pods available",
            number("availableReplicas")
        )
    });
    if let Some((_, message)) = condition(deployment, "ReplicaFailure", "True") {
        cause = cause.because(Cause::new(message));
    }
    if let Some(("ProgressDeadlineExceeded", message)) =
        condition(deployment, "Progressing", "False")
    {
        cause = cause.because(Cause::new(message));
    }
    let mut pods: Vec<&Object> =
        cluster.in_namespace("Pod", namespace).filter(|pod| selects(deployment, pod)).collect();
    // The newest Pods first: they have the current template.
    pods.sort_by_key(|pod| (Reverse(pod.creation_timestamp()), pod.name()));
    cause = cause.because_all(
        pods.into_iter().filter_map(|pod| pod_cause(pod, scheduling_remedy)).take(MAX_PODS),
    );
    Some(cause.remedy(format!("see more: kubectl -n {namespace} describe deployment {name}")))
}

/// Whether every Pod has the current template of the Deployment. While new Pods are not ready, the old
/// ones remain, and the Deployment stays available.
fn is_rolled_out(deployment: &Object, replicas: i64) -> bool {
    let number = |path: &[&str]| deployment.i64(path).unwrap_or_default();
    let updated = number(&["status", "updatedReplicas"]);
    number(&["status", "observedGeneration"]) >= number(&["metadata", "generation"])
        && updated >= replicas
        && number(&["status", "replicas"]) <= updated
}

fn selects(deployment: &Object, pod: &Object) -> bool {
    let labels = deployment.get(&["spec", "selector", "matchLabels"]).and_then(Value::as_object);
    labels.is_some_and(|labels| {
        !labels.is_empty() && labels.iter().all(|(key, value)| pod.label(key) == value.as_str())
    })
}

/// Why a Pod is not ready.
fn pod_cause(pod: &Object, scheduling_remedy: Option<&str>) -> Option<Cause> {
    if condition(pod, "Ready", "True").is_some() || pod.is_terminating() {
        return None;
    }
    let (namespace, name) = (pod.namespace(), pod.name());
    if let Some((reason, message)) = condition(pod, "PodScheduled", "False") {
        return Some(scheduling_cause(name, reason, message, scheduling_remedy));
    }
    let statuses = ["initContainerStatuses", "containerStatuses"]
        .into_iter()
        .flat_map(|field| pod.array(&["status", field]));
    for status in statuses {
        let container = text(status, "name");
        let state = |path: &str| status.get("state").and_then(|state| state.get(path));
        if let Some(waiting) = state("waiting") {
            let (reason, message) = (text(waiting, "reason"), text(waiting, "message"));
            let texts = [reason, message].into_iter().filter(|text| !text.is_empty());
            let cause = Cause::new(format!(
                "container {container} of Pod {name} waits: {}",
                texts.collect::<Vec<_>>().join(": ")
            ));
            return Some(match reason {
                "CrashLoopBackOff" => cause.remedy(format!(
                    "see its previous log: kubectl -n {namespace} logs {name} -c {container} --previous"
                )),
                "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
                    image_pull_cause(cause, pod, container)
                }
                // The container is about to start.
                "ContainerCreating" | "PodInitializing" => cause,
                _ => cause
                    .remedy(format!("see its events: kubectl -n {namespace} describe pod {name}")),
            });
        }
        let ready = status.get("ready").and_then(Value::as_bool).unwrap_or_default();
        if !ready && state("running").is_some() {
            return Some(
                Cause::new(format!("container {container} of Pod {name} runs and is not ready"))
                    .remedy(format!(
                        "see its log: kubectl -n {namespace} logs {name} -c {container}"
                    )),
            );
        }
    }
    let phase = pod.str(&["status", "phase"]).unwrap_or("Pending");
    Some(Cause::new(format!("Pod {name} is {phase}")))
}

/// Why no node takes a Pod.
fn scheduling_cause(pod: &str, reason: &str, message: &str, remedy: Option<&str>) -> Cause {
    let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    let cause = Cause::new(format!("Pod {pod} is not scheduled{reason}: {message}"))
        .remedy("see the resources and taints of the nodes: kubectl describe nodes");
    remedy.into_iter().fold(cause, Cause::remedy)
}

/// How to change where the Pods of a ClusterServiceVersion run: by its Subscription.
fn scheduling_remedy(cluster: &ClusterObjects, csv: &Object) -> Option<String> {
    let namespace = csv.namespace();
    let is_of_csv = |subscription: &&Object| {
        ["currentCSV", "installedCSV"]
            .iter()
            .any(|field| subscription.str(&["status", field]) == Some(csv.name()))
    };
    let subscription = cluster.in_namespace("Subscription", namespace).find(is_of_csv)?;
    Some(format!(
        "adapt spec.config to them (nodeSelector, tolerations, affinity, resources): kubectl -n {namespace} edit subscription {}",
        subscription.name()
    ))
}

/// Adds remedies for an image that cannot be pulled.
fn image_pull_cause(cause: Cause, pod: &Object, container: &str) -> Cause {
    let image = ["initContainers", "containers"]
        .into_iter()
        .flat_map(|field| pod.array(&["spec", field]))
        .find(|spec| text(spec, "name") == container)
        .map(|spec| text(spec, "image"))
        .unwrap_or_default();
    let cause = if image.is_empty() {
        cause
    } else {
        cause.remedy(format!("check that the image exists: mainstay image inspect {image}"))
    };
    let namespace = pod.namespace();
    let account = pod
        .str(&["spec", "serviceAccountName"])
        .filter(|account| !account.is_empty())
        .unwrap_or("default");
    cause.remedy(format!(
        "if its registry requires credentials, add a pull secret to imagePullSecrets: kubectl -n {namespace} edit serviceaccount {account}"
    ))
}
