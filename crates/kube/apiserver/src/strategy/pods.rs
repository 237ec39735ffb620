//! Pods and what pods are made from.

use super::fields::{Fields, each, fill, fill_number, inner, open, text_in};
use super::{Context, quantity};
use mainstay_object::{Object, Status};
use serde_json::{Value, json};

/// Where containers stand in a pod's spec.
const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// Account of pods that name none.
const DEFAULT_ACCOUNT: &str = "default";
/// How long a pod stays on a node that is lost, unless it says otherwise.
const LOST_NODE_SECONDS: i64 = 300;

/// Defaults of a pod.
pub(super) fn default_pod(object: &mut Object) {
    let Some(spec) = open(object.fields_mut(), "spec") else { return };
    default_pod_spec(spec);
    fill(spec, "enableServiceLinks", true);
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
fn mirror_account(spec: &mut Fields) {
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

/// What admission sets on a new pod, and its first status.
pub(super) fn create_pod(object: &mut Object, context: &Context<'_>) -> Result<(), Status> {
    let namespace = object.namespace().to_owned();
    let name = object.name().to_owned();
    let forbidden = |why: &str| Status::forbidden("", "pods", &name, why);
    let Some(spec) = open(object.fields_mut(), "spec") else { return Ok(()) };
    drop_disabled(spec);

    fill(spec, "serviceAccountName", DEFAULT_ACCOUNT);
    mirror_account(spec);
    let account = text_in(spec, "serviceAccountName");
    // The default account of a new namespace is made a moment after it; a pod need not wait for it.
    if account != DEFAULT_ACCOUNT
        && context.objects.get("serviceaccounts", &namespace, account).is_none()
    {
        return Err(forbidden(&format!(
            "error looking up service account {namespace}/{account}: serviceaccount {account:?} not found"
        )));
    }

    let class = text_in(spec, "priorityClassName").to_owned();
    let (priority, policy) = match class.as_str() {
        "" => (0, None),
        "system-cluster-critical" => (2_000_000_000, None),
        "system-node-critical" => (2_000_001_000, None),
        name => {
            let class =
                context.objects.get("scheduling.k8s.io/priorityclasses", "", name).ok_or_else(
                    || forbidden(&format!("no PriorityClass with name {name} was found")),
                )?;
            let policy = class.str(&["preemptionPolicy"]).map(ToOwned::to_owned);
            (class.i64(&["value"]).unwrap_or_default(), policy)
        }
    };
    fill(spec, "priority", priority);
    fill(spec, "preemptionPolicy", policy.unwrap_or_else(|| "PreemptLowerPriority".to_owned()));

    tolerate_lost_nodes(spec);
    let class = quality(spec);
    object.set(&["status"], json!({"phase": "Pending", "qosClass": class}));
    Ok(())
}

/// Drops what is switched off; what may change is a matter of validation.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn update_pod(
    object: &mut Object,
    old: &Object,
    context: &Context<'_>,
) -> Result<(), Status> {
    let _ = old;
    if context.subresource.is_empty()
        && let Some(spec) = inner(object.fields_mut(), "spec")
    {
        drop_disabled(spec);
    }
    Ok(())
}

/// A pod leaves a lost node after a while, unless it says what it tolerates itself.
fn tolerate_lost_nodes(spec: &mut Fields) {
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
