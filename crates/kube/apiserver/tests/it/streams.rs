//! What goes on in running pods, as clients see it.

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

/// A pod with these containers, on a node unless told otherwise.
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

/// Gives the first container of a pod a status.
pub(crate) async fn state(api: &Api, name: &str, status: Value) {
    let mut pod = api.get(&format!("{PODS}/{name}")).await.ok();
    let mut one = json!({
        "name": pod["spec"]["containers"][0]["name"], "image": "i", "imageID": "", "ready": false,
        "restartCount": 0,
    });
    for (field, value) in status.as_object().unwrap() {
        one[field] = value.clone();
    }
    pod["status"]["containerStatuses"] = json!([one]);
    pod["status"]["phase"] = "Running".into();
    api.put(&format!("{PODS}/{name}/status"), &pod).await.ok();
}

pub(crate) fn running() -> Value {
    json!({"containerID": "sim://1", "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}})
}
