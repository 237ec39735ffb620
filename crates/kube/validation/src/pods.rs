//! Pods and what pods are made from.

use super::fields::{Fields, each, fill, fill_number, inner, open, text_in};
use super::{Context, quantity};
use mainstay_object::{Object, Status};
use serde_json::{Value, json};

/// Where containers stand in a pod's spec.
const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// Account of pods that name none.
pub const DEFAULT_ACCOUNT: &str = "default";
/// How long a pod stays on a node that is lost, unless it says otherwise.
const LOST_NODE_SECONDS: i64 = 300;

/// Defaults of a pod.
pub(super) fn default_pod(object: &mut Object) {
    let Some(spec) = open(object.fields_mut(), "spec") else { return };
    default_pod_spec(spec);
    fill(spec, "enableServiceLinks", true);
    if spec
        .get("terminationGracePeriodSeconds")
        .and_then(Value::as_i64)
        .is_some_and(|seconds| seconds < 0)
    {
        spec.insert("terminationGracePeriodSeconds".to_owned(), 1.into());
    }
    let host_network = spec.get("hostNetwork").and_then(Value::as_bool).unwrap_or_default();
    for list in &CONTAINER_LISTS[..2] {
        each(spec, list, |container| {
            if let Some(resources) = inner(container, "resources")
                && let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned()
                && let Some(requests) = open(resources, "requests")
            {
                for (resource, limit) in limits {
                    fill(requests, &resource, limit);
                }
            }
            if host_network {
                each(container, "ports", |port| {
                    let number = port.get("containerPort").and_then(Value::as_i64);
                    fill_number(port, "hostPort", number.unwrap_or_default());
                });
            }
        });
    }
}

/// Defaults of a template that is kept for others to use.
pub(super) fn default_pod_template(object: &mut Object) {
    default_template(object.fields_mut());
}

/// Drops what a template asks for that the original's default gates do not allow.
pub(super) fn drop_disabled_in(object: &mut Object, path: &[&str]) {
    let mut fields = Some(object.fields_mut());
    for key in path.iter().chain(&["spec"]) {
        fields = fields.and_then(|fields| inner(fields, key));
    }
    if let Some(spec) = fields {
        drop_disabled(spec);
    }
}

/// The same of a pod's spec: what is switched off is as if it had not been said.
pub(super) fn drop_disabled(spec: &mut Fields) {
    spec.remove("workloadRef");
    for list in CONTAINER_LISTS {
        each(spec, list, |container| {
            if let Some(lifecycle) = inner(container, "lifecycle") {
                lifecycle.remove("stopSignal");
            }
        });
    }
    each(spec, "volumes", |volume| {
        if let Some(projected) = inner(volume, "projected") {
            each(projected, "sources", |source| {
                source.remove("clusterTrustBundle");
                source.remove("podCertificate");
            });
        }
    });
}

/// Defaults of an object that has a pod template in `spec.template`.
pub(super) fn default_template(spec: &mut Fields) {
    let Some(template) = open(spec, "template") else { return };
    fill(template, "metadata", json!({}));
    if let Some(spec) = open(template, "spec") {
        default_pod_spec(spec);
    }
}

/// Defaults of a pod's spec, alone or in a template.
pub(super) fn default_pod_spec(spec: &mut Fields) {
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "restartPolicy", "Always");
    fill(spec, "schedulerName", "default-scheduler");
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", 30);
    mirror_account(spec);
    for list in CONTAINER_LISTS {
        each(spec, list, default_container);
    }
    each(spec, "volumes", default_volume);
}

/// `serviceAccount` is the old name of `serviceAccountName`; both are always shown.
pub fn mirror_account(spec: &mut Fields) {
    let account = match text_in(spec, "serviceAccountName") {
        "" => text_in(spec, "serviceAccount"),
        name => name,
    };
    if !account.is_empty() {
        let account = Value::from(account);
        spec.insert("serviceAccountName".to_owned(), account.clone());
        spec.insert("serviceAccount".to_owned(), account);
    }
}

fn default_container(container: &mut Fields) {
    let policy =
        if follows_latest(text_in(container, "image")) { "Always" } else { "IfNotPresent" };
    fill(container, "imagePullPolicy", policy);
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    fill(container, "resources", json!({}));
    each(container, "ports", |port| fill(port, "protocol", "TCP"));
    each(container, "env", |variable| {
        if let Some(source) = inner(variable, "valueFrom") {
            default_field_source(source);
        }
    });
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = inner(container, probe) else { continue };
        fill_number(probe, "timeoutSeconds", 1);
        fill_number(probe, "periodSeconds", 10);
        fill_number(probe, "successThreshold", 1);
        fill_number(probe, "failureThreshold", 3);
        default_http_get(probe);
        if let Some(grpc) = inner(probe, "grpc") {
            fill(grpc, "service", "");
        }
    }
    if let Some(lifecycle) = inner(container, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(hook) = inner(lifecycle, hook) {
                default_http_get(hook);
            }
        }
    }
}

fn default_http_get(handler: &mut Fields) {
    if let Some(get) = inner(handler, "httpGet") {
        fill(get, "path", "/");
        fill(get, "scheme", "HTTP");
    }
}

/// What a variable or a downward file is read from.
fn default_field_source(source: &mut Fields) {
    if let Some(reference) = inner(source, "fieldRef") {
        fill(reference, "apiVersion", "v1");
    }
    if let Some(reference) = inner(source, "resourceFieldRef") {
        fill(reference, "divisor", "0");
    }
}

fn default_volume(volume: &mut Fields) {
    if volume.iter().all(|(key, value)| key == "name" || value.is_null()) {
        fill(volume, "emptyDir", json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = inner(volume, source) {
            fill(source, "defaultMode", 0o644);
        }
    }
    if let Some(image) = inner(volume, "image") {
        let reference = text_in(image, "reference");
        let latest = reference.is_empty() || follows_latest(reference);
        fill(image, "pullPolicy", if latest { "Always" } else { "IfNotPresent" });
    }
    if let Some(path) = inner(volume, "hostPath") {
        fill(path, "type", "");
    }
    if let Some(downward) = inner(volume, "downwardAPI") {
        each(downward, "items", default_field_source);
    }
    if let Some(projected) = inner(volume, "projected") {
        each(projected, "sources", |source| {
            if let Some(token) = inner(source, "serviceAccountToken") {
                fill(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = inner(source, "downwardAPI") {
                each(downward, "items", default_field_source);
            }
        });
    }
}

/// Whether an image reference means "whatever is newest": the tag `latest`, or no tag and no digest.
fn follows_latest(image: &str) -> bool {
    let (reference, digest) = match image.split_once('@') {
        Some((reference, _)) => (reference, true),
        None => (image, false),
    };
    let last = reference.rsplit('/').next().unwrap_or(reference);
    match last.split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => !digest,
    }
}

/// What pods need not say, and the first status of a new one.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn create_pod(object: &mut Object, context: &Context<'_>) -> Result<(), Status> {
    let Some(spec) = open(object.fields_mut(), "spec") else { return Ok(()) };
    drop_disabled(spec);
    let labels = object.get(&["metadata", "labels"]).cloned().unwrap_or_default();
    let Some(spec) = inner(object.fields_mut(), "spec") else { return Ok(()) };
    select_by_own_labels(spec, &labels);
    let mut status = json!({"phase": "Pending", "qosClass": quality(spec)});
    if !super::fields::items(&Value::from(spec.clone()), "schedulingGates").is_empty() {
        status["conditions"] = json!([{
            "lastProbeTime": null,
            "lastTransitionTime": context.clock.now_rfc3339(),
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "reason": "SchedulingGated",
            "status": "False",
            "type": "PodScheduled",
        }]);
    }
    object.set(&["status"], status);
    Ok(())
}

/// Adds to selectors the pod's own labels whose keys they name.
fn select_by_own_labels(spec: &mut Fields, labels: &Value) {
    let add = |term: &mut Fields| {
        for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
            let keys = term.get(keys).and_then(Value::as_array).cloned().unwrap_or_default();
            let Some(selector) = inner(term, "labelSelector") else { return };
            for key in keys.iter().filter_map(Value::as_str) {
                let Some(value) = labels.get(key) else { continue };
                fill(selector, "matchExpressions", json!([]));
                if let Some(Value::Array(list)) = selector.get_mut("matchExpressions") {
                    list.push(json!({"key": key, "operator": operator, "values": [value]}));
                }
            }
        }
    };
    each(spec, "topologySpreadConstraints", add);
    let Some(affinity) = inner(spec, "affinity") else { return };
    for side in ["podAffinity", "podAntiAffinity"] {
        let Some(side) = inner(affinity, side) else { continue };
        each(side, "requiredDuringSchedulingIgnoredDuringExecution", add);
        each(side, "preferredDuringSchedulingIgnoredDuringExecution", |one| {
            if let Some(term) = inner(one, "podAffinityTerm") {
                add(term);
            }
        });
    }
}

/// Drops what is switched off; what may change is a matter of validation.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn update_pod(
    object: &mut Object,
    old: &Object,
    context: &Context<'_>,
) -> Result<(), Status> {
    if context.subresource.is_empty()
        && let Some(spec) = inner(object.fields_mut(), "spec")
    {
        drop_disabled(spec);
        // What admission set stays, if the client does not say it again.
        for field in ["priority", "preemptionPolicy"] {
            if let Some(value) = old.get(&["spec", field]) {
                fill(spec, field, value.clone());
            }
        }
    }
    Ok(())
}

/// A pod leaves a lost node after a while, unless it says what it tolerates itself.
pub fn tolerate_lost_nodes(spec: &mut Fields) {
    fill(spec, "tolerations", json!([]));
    let Some(tolerations) = spec.get_mut("tolerations").and_then(Value::as_array_mut) else {
        return;
    };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().filter_map(Value::as_object).any(|one| {
            let matches = match text_in(one, "key") {
                "" => text_in(one, "operator") == "Exists",
                present => present == key,
            };
            matches && matches!(text_in(one, "effect"), "" | "NoExecute")
        });
        if !tolerated {
            tolerations.push(json!({
                "effect": "NoExecute",
                "key": key,
                "operator": "Exists",
                "tolerationSeconds": LOST_NODE_SECONDS,
            }));
        }
    }
}

/// Quality of service: all containers have equal limits and requests, none has any, or between.
pub(super) fn quality(spec: &Fields) -> &'static str {
    let amount = |container: &Value, side: &str, resource: &str| {
        let amount = container.get("resources")?.get(side)?.get(resource)?;
        match amount {
            Value::String(text) => quantity::nano(text),
            other => quantity::nano(&other.to_string()),
        }
        .filter(|amount| *amount != 0)
    };
    let (mut any, mut all) = (false, true);
    for list in &CONTAINER_LISTS[..2] {
        for container in spec.get(*list).and_then(Value::as_array).into_iter().flatten() {
            for resource in ["cpu", "memory"] {
                let limit = amount(container, "limits", resource);
                let request = amount(container, "requests", resource);
                any |= limit.is_some() || request.is_some();
                all &= limit.is_some() && request == limit;
            }
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use super::follows_latest;

    #[test]
    fn images_without_tag_and_digest_follow_the_latest() {
        for image in ["nginx", "nginx:latest", "reg:5000/a/b", "reg:5000/a/b:latest"] {
            assert!(follows_latest(image), "{image}");
        }
        for image in ["nginx:1", "reg:5000/b:2", "nginx@sha256:0", "a:1@sha256:0"] {
            assert!(!follows_latest(image), "{image}");
        }
    }
}
