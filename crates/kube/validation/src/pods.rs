//! Defaults and preparation of Pods and pod templates.

use super::fields::{
    FieldMap, for_each_object, object_mut, object_or_insert, set_default, set_default_number,
    text_in,
};
use super::{Context, quantity};
use mainstay_object::{Object, Status};
use serde_json::{Value, json};

/// The container lists of a pod spec.
const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// The ServiceAccount of pods that name none.
pub const DEFAULT_SERVICE_ACCOUNT: &str = "default";
/// How long a pod stays on an unreachable node by default.
const UNREACHABLE_NODE_SECONDS: i64 = 300;

/// Defaults of a pod.
pub(super) fn default_pod(object: &mut Object) {
    let Some(spec) = object_or_insert(object.fields_mut(), "spec") else { return };
    default_pod_spec(spec);
    set_default(spec, "enableServiceLinks", true);
    if spec
        .get("terminationGracePeriodSeconds")
        .and_then(Value::as_i64)
        .is_some_and(|seconds| seconds < 0)
    {
        spec.insert("terminationGracePeriodSeconds".to_owned(), 1.into());
    }
    let host_network = spec.get("hostNetwork").and_then(Value::as_bool).unwrap_or_default();
    for list in &CONTAINER_LISTS[..2] {
        for_each_object(spec, list, |container| {
            if let Some(resources) = object_mut(container, "resources")
                && let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned()
                && let Some(requests) = object_or_insert(resources, "requests")
            {
                for (resource, limit) in limits {
                    set_default(requests, &resource, limit);
                }
            }
            if host_network {
                for_each_object(container, "ports", |port| {
                    let number = port.get("containerPort").and_then(Value::as_i64);
                    set_default_number(port, "hostPort", number.unwrap_or_default());
                });
            }
        });
    }
}

/// Defaults of a `PodTemplate`.
pub(super) fn default_pod_template(object: &mut Object) {
    default_template(object.fields_mut());
}

/// Drops fields of a pod template whose feature gates are off by default in Kubernetes.
pub(super) fn drop_disabled_template_fields(object: &mut Object, path: &[&str]) {
    let mut fields = Some(object.fields_mut());
    for key in path.iter().chain(&["spec"]) {
        fields = fields.and_then(|fields| object_mut(fields, key));
    }
    if let Some(spec) = fields {
        drop_disabled_fields(spec);
    }
}

/// Drops fields of a pod spec whose feature gates are off by default in Kubernetes.
pub(super) fn drop_disabled_fields(spec: &mut FieldMap) {
    spec.remove("workloadRef");
    for list in CONTAINER_LISTS {
        for_each_object(spec, list, |container| {
            if let Some(lifecycle) = object_mut(container, "lifecycle") {
                lifecycle.remove("stopSignal");
            }
        });
    }
    for_each_object(spec, "volumes", |volume| {
        if let Some(projected) = object_mut(volume, "projected") {
            for_each_object(projected, "sources", |source| {
                source.remove("clusterTrustBundle");
                source.remove("podCertificate");
            });
        }
    });
}

/// Defaults of an object with a pod template in `spec.template`.
pub(super) fn default_template(spec: &mut FieldMap) {
    let Some(template) = object_or_insert(spec, "template") else { return };
    set_default(template, "metadata", json!({}));
    if let Some(spec) = object_or_insert(template, "spec") {
        default_pod_spec(spec);
    }
}

/// Defaults of a pod spec, in a Pod or in a template.
pub(super) fn default_pod_spec(spec: &mut FieldMap) {
    set_default(spec, "dnsPolicy", "ClusterFirst");
    set_default(spec, "restartPolicy", "Always");
    set_default(spec, "schedulerName", "default-scheduler");
    set_default(spec, "securityContext", json!({}));
    set_default(spec, "terminationGracePeriodSeconds", 30);
    sync_service_account_fields(spec);
    for list in CONTAINER_LISTS {
        for_each_object(spec, list, default_container);
    }
    for_each_object(spec, "volumes", default_volume);
}

/// Sets `serviceAccount` and `serviceAccountName` to the same value; the former is deprecated.
pub fn sync_service_account_fields(spec: &mut FieldMap) {
    let name = match text_in(spec, "serviceAccountName") {
        "" => text_in(spec, "serviceAccount"),
        name => name,
    };
    if !name.is_empty() {
        let name = Value::from(name);
        spec.insert("serviceAccountName".to_owned(), name.clone());
        spec.insert("serviceAccount".to_owned(), name);
    }
}

fn default_container(container: &mut FieldMap) {
    let policy =
        if uses_latest_tag(text_in(container, "image")) { "Always" } else { "IfNotPresent" };
    set_default(container, "imagePullPolicy", policy);
    set_default(container, "terminationMessagePath", "/dev/termination-log");
    set_default(container, "terminationMessagePolicy", "File");
    set_default(container, "resources", json!({}));
    for_each_object(container, "ports", |port| set_default(port, "protocol", "TCP"));
    for_each_object(container, "env", |variable| {
        if let Some(source) = object_mut(variable, "valueFrom") {
            default_field_source(source);
        }
    });
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = object_mut(container, probe) else { continue };
        set_default_number(probe, "timeoutSeconds", 1);
        set_default_number(probe, "periodSeconds", 10);
        set_default_number(probe, "successThreshold", 1);
        set_default_number(probe, "failureThreshold", 3);
        default_http_get(probe);
        if let Some(grpc) = object_mut(probe, "grpc") {
            set_default(grpc, "service", "");
        }
    }
    if let Some(lifecycle) = object_mut(container, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(hook) = object_mut(lifecycle, hook) {
                default_http_get(hook);
            }
        }
    }
}

fn default_http_get(handler: &mut FieldMap) {
    if let Some(get) = object_mut(handler, "httpGet") {
        set_default(get, "path", "/");
        set_default(get, "scheme", "HTTP");
    }
}

/// Defaults of the source of an environment variable or of a downward API file.
fn default_field_source(source: &mut FieldMap) {
    if let Some(reference) = object_mut(source, "fieldRef") {
        set_default(reference, "apiVersion", "v1");
    }
    if let Some(reference) = object_mut(source, "resourceFieldRef") {
        set_default(reference, "divisor", "0");
    }
}

fn default_volume(volume: &mut FieldMap) {
    if volume.iter().all(|(key, value)| key == "name" || value.is_null()) {
        set_default(volume, "emptyDir", json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = object_mut(volume, source) {
            set_default(source, "defaultMode", 0o644);
        }
    }
    if let Some(image) = object_mut(volume, "image") {
        let reference = text_in(image, "reference");
        let is_latest = reference.is_empty() || uses_latest_tag(reference);
        set_default(image, "pullPolicy", if is_latest { "Always" } else { "IfNotPresent" });
    }
    if let Some(path) = object_mut(volume, "hostPath") {
        set_default(path, "type", "");
    }
    if let Some(downward) = object_mut(volume, "downwardAPI") {
        for_each_object(downward, "items", default_field_source);
    }
    if let Some(projected) = object_mut(volume, "projected") {
        for_each_object(projected, "sources", |source| {
            if let Some(token) = object_mut(source, "serviceAccountToken") {
                set_default(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = object_mut(source, "downwardAPI") {
                for_each_object(downward, "items", default_field_source);
            }
        });
    }
}

/// Whether an image reference has the tag `latest`, or neither tag nor digest.
fn uses_latest_tag(image: &str) -> bool {
    let (reference, has_digest) = match image.split_once('@') {
        Some((reference, _)) => (reference, true),
        None => (image, false),
    };
    let last = reference.rsplit('/').next().unwrap_or(reference);
    match last.split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => !has_digest,
    }
}

/// Prepares a new Pod: derived selectors and the initial status.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn create_pod(object: &mut Object, context: &Context<'_>) -> Result<(), Status> {
    let Some(spec) = object_or_insert(object.fields_mut(), "spec") else { return Ok(()) };
    drop_disabled_fields(spec);
    let labels = object.get(&["metadata", "labels"]).cloned().unwrap_or_default();
    let Some(spec) = object_mut(object.fields_mut(), "spec") else { return Ok(()) };
    add_label_key_selectors(spec, &labels);
    let mut status = json!({"phase": "Pending", "qosClass": qos_class(spec)});
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

/// Adds the pod's labels named by `matchLabelKeys` and `mismatchLabelKeys` to the selectors.
fn add_label_key_selectors(spec: &mut FieldMap, labels: &Value) {
    let add = |term: &mut FieldMap| {
        for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
            let keys = term.get(keys).and_then(Value::as_array).cloned().unwrap_or_default();
            let Some(selector) = object_mut(term, "labelSelector") else { return };
            for key in keys.iter().filter_map(Value::as_str) {
                let Some(value) = labels.get(key) else { continue };
                set_default(selector, "matchExpressions", json!([]));
                if let Some(Value::Array(list)) = selector.get_mut("matchExpressions") {
                    list.push(json!({"key": key, "operator": operator, "values": [value]}));
                }
            }
        }
    };
    for_each_object(spec, "topologySpreadConstraints", add);
    let Some(affinity) = object_mut(spec, "affinity") else { return };
    for side in ["podAffinity", "podAntiAffinity"] {
        let Some(side) = object_mut(affinity, side) else { continue };
        for_each_object(side, "requiredDuringSchedulingIgnoredDuringExecution", add);
        for_each_object(side, "preferredDuringSchedulingIgnoredDuringExecution", |weighted| {
            if let Some(term) = object_mut(weighted, "podAffinityTerm") {
                add(term);
            }
        });
    }
}

/// Drops disabled fields of an updated Pod; validation decides which changes are allowed.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn update_pod(
    object: &mut Object,
    old: &Object,
    context: &Context<'_>,
) -> Result<(), Status> {
    if context.subresource.is_empty()
        && let Some(spec) = object_mut(object.fields_mut(), "spec")
    {
        drop_disabled_fields(spec);
        // Fields that admission set keep their value if the update omits them.
        for field in ["priority", "preemptionPolicy"] {
            if let Some(value) = old.get(&["spec", field]) {
                set_default(spec, field, value.clone());
            }
        }
    }
    Ok(())
}

/// Adds tolerations that make a pod leave an unreachable node after a while, unless it has its own.
pub fn tolerate_unreachable_nodes(spec: &mut FieldMap) {
    set_default(spec, "tolerations", json!([]));
    let Some(tolerations) = spec.get_mut("tolerations").and_then(Value::as_array_mut) else {
        return;
    };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().filter_map(Value::as_object).any(|toleration| {
            let matches = match text_in(toleration, "key") {
                "" => text_in(toleration, "operator") == "Exists",
                present => present == key,
            };
            matches && matches!(text_in(toleration, "effect"), "" | "NoExecute")
        });
        if !tolerated {
            tolerations.push(json!({
                "effect": "NoExecute",
                "key": key,
                "operator": "Exists",
                "tolerationSeconds": UNREACHABLE_NODE_SECONDS,
            }));
        }
    }
}

/// The `QoS` class: `Guaranteed` if all requests equal limits, `BestEffort` without any, else
/// `Burstable`.
pub(super) fn qos_class(spec: &FieldMap) -> &'static str {
    let amount = |container: &Value, side: &str, resource: &str| {
        let amount = container.get("resources")?.get(side)?.get(resource)?;
        match amount {
            Value::String(text) => quantity::parse_nano(text),
            other => quantity::parse_nano(&other.to_string()),
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
    use super::uses_latest_tag;

    #[test]
    fn an_image_without_tag_and_digest_has_the_latest_tag() {
        for image in ["nginx", "nginx:latest", "reg:5000/a/b", "reg:5000/a/b:latest"] {
            assert!(uses_latest_tag(image), "{image}");
        }
        for image in ["nginx:1", "reg:5000/b:2", "nginx@sha256:0", "a:1@sha256:0"] {
            assert!(!uses_latest_tag(image), "{image}");
        }
    }
}
