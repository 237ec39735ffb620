//! Kinds of the smaller API groups.

use super::Context;
use super::fields::{Fields, each, fill, inner, open, text_in};
use mainstay_object::{Object, Status};
use serde_json::{Value, json};

/// Group of roles and bindings.
pub(super) const RBAC: &str = "rbac.authorization.k8s.io";

/// A role without rules says so.
pub(super) fn default_role(object: &mut Object) {
    object.fields_mut().entry("rules").or_insert(Value::Null);
}

pub(super) fn default_binding(object: &mut Object) {
    let fields = object.fields_mut();
    if let Some(role) = open(fields, "roleRef") {
        fill(role, "apiGroup", RBAC);
        fill(role, "kind", "");
        fill(role, "name", "");
    }
    each(fields, "subjects", |subject| match text_in(subject, "kind") {
        "User" | "Group" => fill(subject, "apiGroup", RBAC),
        _ => {}
    });
}

pub(super) fn default_disruption_budget(object: &mut Object) {
    let Some(status) = open(object.fields_mut(), "status") else { return };
    for key in ["currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"] {
        fill(status, key, 0);
    }
}

pub(super) fn default_network_policy(object: &mut Object) {
    let Some(spec) = open(object.fields_mut(), "spec") else { return };
    // An absent selector and the empty one are the same here: all pods.
    fill(spec, "podSelector", json!({}));
    if spec.get("policyTypes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let egress = spec.get("egress").and_then(Value::as_array).is_some_and(|e| !e.is_empty());
        let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        spec.insert("policyTypes".to_owned(), types);
    }
    for direction in ["ingress", "egress"] {
        each(spec, direction, |rule| {
            each(rule, "ports", |port| fill(port, "protocol", "TCP"));
        });
    }
}

pub(super) fn default_ingress(object: &mut Object) {
    let fields = object.fields_mut();
    fill(fields, "spec", json!({}));
    if let Some(status) = open(fields, "status") {
        fill(status, "loadBalancer", json!({}));
    }
}

pub(super) fn default_ingress_class(object: &mut Object) {
    let spec = inner(object.fields_mut(), "spec");
    if let Some(parameters) = spec.and_then(|spec| inner(spec, "parameters")) {
        fill(parameters, "scope", "Cluster");
    }
}

pub(super) fn default_priority_class(object: &mut Object) {
    let fields = object.fields_mut();
    fill(fields, "preemptionPolicy", "PreemptLowerPriority");
    fill(fields, "value", 0);
}

pub(super) fn default_validating_webhooks(object: &mut Object) {
    each(object.fields_mut(), "webhooks", default_webhook);
}

pub(super) fn default_mutating_webhooks(object: &mut Object) {
    each(object.fields_mut(), "webhooks", |webhook| {
        default_webhook(webhook);
        fill(webhook, "reinvocationPolicy", "Never");
    });
}

fn default_webhook(webhook: &mut Fields) {
    fill(webhook, "failurePolicy", "Fail");
    fill(webhook, "matchPolicy", "Equivalent");
    fill(webhook, "namespaceSelector", json!({}));
    fill(webhook, "objectSelector", json!({}));
    fill(webhook, "timeoutSeconds", 10);
    fill(webhook, "clientConfig", json!({}));
    if let Some(client) = inner(webhook, "clientConfig")
        && let Some(service) = inner(client, "service")
    {
        fill(service, "port", 443);
    }
    each(webhook, "rules", |rule| fill(rule, "scope", "*"));
}

pub(super) fn default_storage_class(object: &mut Object) {
    let fields = object.fields_mut();
    fill(fields, "reclaimPolicy", "Delete");
    fill(fields, "volumeBindingMode", "Immediate");
}

/// Tokens for a driver belong where they are not logged.
pub(super) fn storage_driver_warnings(object: &Object, old: Option<&Object>) -> Vec<String> {
    let requests = object.array(&["spec", "tokenRequests"]);
    let before = old.map_or(&[][..], |old| old.array(&["spec", "tokenRequests"]));
    let asks = !requests.is_empty() && requests != before;
    if asks && object.bool(&["spec", "serviceAccountTokenInSecrets"]).is_none() {
        return vec![
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes".to_owned(),
        ];
    }
    Vec::new()
}

pub(super) fn default_storage_driver(object: &mut Object) {
    let Some(spec) = open(object.fields_mut(), "spec") else { return };
    fill(spec, "attachRequired", true);
    fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    for key in ["podInfoOnMount", "requiresRepublish", "seLinuxMount", "storageCapacity"] {
        fill(spec, key, false);
    }
    if spec.get("volumeLifecycleModes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        spec.insert("volumeLifecycleModes".to_owned(), json!(["Persistent"]));
    }
}

/// A class is counted once, and never again.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn create_priority_class(object: &mut Object, _: &Context<'_>) -> Result<(), Status> {
    object.set(&["metadata", "generation"], 1.into());
    Ok(())
}

/// The topology of endpoints can only be read through this version.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn create_endpoint_slice(object: &mut Object, _: &Context<'_>) -> Result<(), Status> {
    drop_topology(object, None);
    Ok(())
}

/// The same, but for what is there.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn update_endpoint_slice(
    object: &mut Object,
    old: &Object,
    _: &Context<'_>,
) -> Result<(), Status> {
    drop_topology(object, Some(old));
    Ok(())
}

fn drop_topology(object: &mut Object, old: Option<&Object>) {
    if old.is_none_or(|old| old.get(&["endpoints"]) != object.get(&["endpoints"])) {
        each(object.fields_mut(), "endpoints", |endpoint| {
            endpoint.remove("deprecatedTopology");
        });
    }
}

pub(super) fn default_endpoint_slice(object: &mut Object) {
    let fields = object.fields_mut();
    fields.entry("endpoints").or_insert(Value::Null);
    fields.entry("ports").or_insert(Value::Null);
    each(fields, "endpoints", |endpoint| fill(endpoint, "conditions", json!({})));
    each(fields, "ports", |port| {
        fill(port, "name", "");
        fill(port, "protocol", "TCP");
    });
}

pub(super) fn default_autoscaler(object: &mut Object) {
    let fields = object.fields_mut();
    if let Some(status) = open(fields, "status") {
        status.entry("currentMetrics").or_insert(Value::Null);
        fill(status, "desiredReplicas", 0);
    }
    let Some(spec) = open(fields, "spec") else { return };
    fill(spec, "minReplicas", 1);
    if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let target = json!({"averageUtilization": 80, "type": "Utilization"});
        let cpu = json!({"resource": {"name": "cpu", "target": target}, "type": "Resource"});
        spec.insert("metrics".to_owned(), json!([cpu]));
    }
    let Some(behavior) = inner(spec, "behavior") else { return };
    let policy =
        |kind: &str, value: i64| json!({"type": kind, "value": value, "periodSeconds": 15});
    if let Some(up) = open(behavior, "scaleUp") {
        fill(up, "stabilizationWindowSeconds", 0);
        fill(up, "selectPolicy", "Max");
        fill(up, "policies", json!([policy("Pods", 4), policy("Percent", 100)]));
    }
    if let Some(down) = open(behavior, "scaleDown") {
        fill(down, "selectPolicy", "Max");
        fill(down, "policies", json!([policy("Percent", 100)]));
    }
}

pub(super) fn default_api_service(object: &mut Object) {
    let fields = object.fields_mut();
    fill(fields, "status", json!({}));
    let service = inner(fields, "spec").and_then(|spec| inner(spec, "service"));
    if let Some(service) = service {
        fill(service, "port", 443);
    }
}

pub(super) fn default_request(object: &mut Object) {
    let fields = object.fields_mut();
    fill(fields, "status", json!({}));
}

/// Policies fail closed and match equivalents, unless they say otherwise.
pub(super) fn default_admission_policy(object: &mut Object) {
    let Some(spec) = open(object.fields_mut(), "spec") else { return };
    fill(spec, "failurePolicy", "Fail");
    if let Some(constraints) = inner(spec, "matchConstraints") {
        default_match(constraints);
    }
}

pub(super) fn default_policy_binding(object: &mut Object) {
    let resources =
        inner(object.fields_mut(), "spec").and_then(|spec| inner(spec, "matchResources"));
    if let Some(resources) = resources {
        default_match(resources);
    }
}

fn default_match(resources: &mut Fields) {
    fill(resources, "matchPolicy", "Equivalent");
    fill(resources, "namespaceSelector", json!({}));
    fill(resources, "objectSelector", json!({}));
    for rules in ["resourceRules", "excludeResourceRules"] {
        each(resources, rules, |rule| fill(rule, "scope", "*"));
    }
}
