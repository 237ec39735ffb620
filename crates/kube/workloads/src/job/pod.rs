//! The pods of a Job.

use super::{COMPLETION_INDEX, FAILURES, TRACKING};
use crate::template;
use mainstay_object::Object;
use serde_json::{Value, json};

/// A pod of a Job; with an index and its failures if the Job has indexes.
pub(super) fn pod(job: &Object, index: Option<(i64, Option<i64>)>) -> Object {
    let template = job.get(&["spec", "template"]).cloned().unwrap_or_default();
    let mut pod = template::generated_pod(job, &template);
    let mut finalizers = pod.array(&["metadata", "finalizers"]).to_vec();
    if !finalizers.iter().any(|finalizer| finalizer == TRACKING) {
        finalizers.push(TRACKING.into());
    }
    pod.set(&["metadata", "finalizers"], Value::Array(finalizers));
    let Some((index, failures)) = index else { return pod };
    let base = format!("{}-{index}", job.name());
    pod.set(&["metadata", "generateName"], format!("{base}-").into());
    pod.set_annotation(COMPLETION_INDEX, index.to_string());
    pod.set_label(COMPLETION_INDEX, index.to_string());
    if let Some(failures) = failures {
        pod.set_annotation(FAILURES, failures.to_string());
    }
    if pod.str(&["spec", "hostname"]).is_none_or(str::is_empty) {
        pod.set(&["spec", "hostname"], base.into());
    }
    for list in ["initContainers", "containers"] {
        let mut containers = pod.array(&["spec", list]).to_vec();
        for container in &mut containers {
            let env = container.get("env").and_then(Value::as_array).cloned();
            let mut env = env.unwrap_or_default();
            if !env.iter().any(|variable| variable["name"] == "JOB_COMPLETION_INDEX") {
                let path = format!("metadata.labels['{COMPLETION_INDEX}']");
                env.push(json!({
                    "name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}},
                }));
            }
            container["env"] = Value::Array(env);
        }
        if !containers.is_empty() {
            pod.set(&["spec", list], Value::Array(containers));
        }
    }
    pod
}
