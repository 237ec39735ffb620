//! Streams of running pods: log, exec, attach, port-forward, proxy.

mod client;
mod exec;
mod forward;
mod kubectl;
mod log;
mod proxy;
mod spdy;

use crate::harness::Api;
use serde_json::{Value, json};

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";

/// Creates a pod with these containers; `node` says whether it has a node.
pub(crate) async fn pod(api: &Api, name: &str, containers: &[&str], node: bool) {
    let containers: Vec<Value> =
        containers.iter().map(|name| json!({"name": name, "image": "i"})).collect();
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": containers},
    });
    if node {
        pod["spec"]["nodeName"] = "n1".into();
    }
    api.post(PODS, &pod).await.ok();
}

/// Sets the status of the first container of a pod.
pub(crate) async fn set_container_status(api: &Api, name: &str, status: Value) {
    let mut pod = api.get(&format!("{PODS}/{name}")).await.ok();
    let mut container_status = json!({
        "name": pod["spec"]["containers"][0]["name"], "image": "i", "imageID": "", "ready": false,
        "restartCount": 0,
    });
    for (field, value) in status.as_object().unwrap() {
        container_status[field] = value.clone();
    }
    pod["status"]["containerStatuses"] = json!([container_status]);
    pod["status"]["phase"] = "Running".into();
    api.put(&format!("{PODS}/{name}/status"), &pod).await.ok();
}

pub(crate) fn running() -> Value {
    json!({"containerID": "sim://1", "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}})
}
