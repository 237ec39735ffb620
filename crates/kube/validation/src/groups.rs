//! Defaults of the kinds of smaller API groups.

use super::Context;
use super::fields::{
    FieldMap, for_each_object, object_mut, object_or_insert, set_default, text_in,
};
use mainstay_object::{Object, Status};
use serde_json::{Value, json};

/// The RBAC API group.
pub(super) const RBAC: &str = "rbac.authorization.k8s.io";

/// A role without rules has the value null.
pub(super) fn default_role(object: &mut Object) {
    object.fields_mut().entry("rules").or_insert(Value::Null);
}

pub(super) fn default_binding(object: &mut Object) {
    let fields = object.fields_mut();
    if let Some(role) = object_or_insert(fields, "roleRef") {
        set_default(role, "apiGroup", RBAC);
        set_default(role, "kind", "");
        set_default(role, "name", "");
    }
    for_each_object(fields, "subjects", |subject| match text_in(subject, "kind") {
        "User" | "Group" => set_default(subject, "apiGroup", RBAC),
        _ => {}
    });
}

pub(super) fn default_disruption_budget(object: &mut Object) {
    let Some(status) = object_or_insert(object.fields_mut(), "status") else { return };
    for key in ["currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"] {
        set_default(status, key, 0);
    }
}

pub(super) fn default_network_policy(object: &mut Object) {
    let Some(spec) = object_or_insert(object.fields_mut(), "spec") else { return };
    // An absent selector equals an empty one: all pods.
    set_default(spec, "podSelector", json!({}));
    if spec.get("policyTypes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let egress =
            spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
        let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        spec.insert("policyTypes".to_owned(), types);
    }
    for direction in ["ingress", "egress"] {
        for_each_object(spec, direction, |rule| {
            for_each_object(rule, "ports", |port| set_default(port, "protocol", "TCP"));
        });
    }
}

pub(super) fn default_ingress(object: &mut Object) {
    let fields = object.fields_mut();
    set_default(fields, "spec", json!({}));
    if let Some(status) = object_or_insert(fields, "status") {
        set_default(status, "loadBalancer", json!({}));
    }
}

pub(super) fn default_ingress_class(object: &mut Object) {
    let spec = object_mut(object.fields_mut(), "spec");
    if let Some(parameters) = spec.and_then(|spec| object_mut(spec, "parameters")) {
        set_default(parameters, "scope", "Cluster");
    }
}

pub(super) fn default_priority_class(object: &mut Object) {
    let fields = object.fields_mut();
    set_default(fields, "preemptionPolicy", "PreemptLowerPriority");
    set_default(fields, "value", 0);
}

pub(super) fn default_validating_webhooks(object: &mut Object) {
    for_each_object(object.fields_mut(), "webhooks", default_webhook);
}

pub(super) fn default_mutating_webhooks(object: &mut Object) {
    for_each_object(object.fields_mut(), "webhooks", |webhook| {
        default_webhook(webhook);
        set_default(webhook, "reinvocationPolicy", "Never");
    });
}

fn default_webhook(webhook: &mut FieldMap) {
    set_default(webhook, "failurePolicy", "Fail");
    set_default(webhook, "matchPolicy", "Equivalent");
    set_default(webhook, "namespaceSelector", json!({}));
    set_default(webhook, "objectSelector", json!({}));
    set_default(webhook, "timeoutSeconds", 10);
    set_default(webhook, "clientConfig", json!({}));
    if let Some(client) = object_mut(webhook, "clientConfig")
        && let Some(service) = object_mut(client, "service")
    {
        set_default(service, "port", 443);
    }
    for_each_object(webhook, "rules", |rule| set_default(rule, "scope", "*"));
}

pub(super) fn default_storage_class(object: &mut Object) {
    let fields = object.fields_mut();
    set_default(fields, "reclaimPolicy", "Delete");
    set_default(fields, "volumeBindingMode", "Immediate");
}

/// Warns if tokens of a CSI driver may be logged.
pub(super) fn storage_driver_warnings(object: &Object, old: Option<&Object>) -> Vec<String> {
    let requests = object.array(&["spec", "tokenRequests"]);
    let before = old.map_or(&[][..], |old| old.array(&["spec", "tokenRequests"]));
    let requests_changed = !requests.is_empty() && requests != before;
    if requests_changed && object.bool(&["spec", "serviceAccountTokenInSecrets"]).is_none() {
        return vec![
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes".to_owned(),
        ];
    }
    Vec::new()
}

pub(super) fn default_storage_driver(object: &mut Object) {
    let Some(spec) = object_or_insert(object.fields_mut(), "spec") else { return };
    set_default(spec, "attachRequired", true);
    set_default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    for key in ["podInfoOnMount", "requiresRepublish", "seLinuxMount", "storageCapacity"] {
        set_default(spec, key, false);
    }
    if spec.get("volumeLifecycleModes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        spec.insert("volumeLifecycleModes".to_owned(), json!(["Persistent"]));
    }
}

/// A `PriorityClass` always has generation 1.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn create_priority_class(object: &mut Object, _: &Context<'_>) -> Result<(), Status> {
    object.set(&["metadata", "generation"], 1.into());
    Ok(())
}

/// A new EndpointSlice has no deprecated topology, which this version cannot write.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn create_endpoint_slice(object: &mut Object, _: &Context<'_>) -> Result<(), Status> {
    drop_topology(object, None);
    Ok(())
}

/// Changed endpoints lose their deprecated topology.
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
        for_each_object(object.fields_mut(), "endpoints", |endpoint| {
            endpoint.remove("deprecatedTopology");
        });
    }
}

pub(super) fn default_endpoint_slice(object: &mut Object) {
    let fields = object.fields_mut();
    fields.entry("endpoints").or_insert(Value::Null);
    fields.entry("ports").or_insert(Value::Null);
    for_each_object(fields, "endpoints", |endpoint| set_default(endpoint, "conditions", json!({})));
    for_each_object(fields, "ports", |port| {
        set_default(port, "name", "");
        set_default(port, "protocol", "TCP");
    });
}

pub(super) fn default_autoscaler(object: &mut Object) {
    let fields = object.fields_mut();
    if let Some(status) = object_or_insert(fields, "status") {
        status.entry("currentMetrics").or_insert(Value::Null);
        set_default(status, "desiredReplicas", 0);
    }
    let Some(spec) = object_or_insert(fields, "spec") else { return };
    set_default(spec, "minReplicas", 1);
    if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let target = json!({"averageUtilization": 80, "type": "Utilization"});
        let cpu = json!({"resource": {"name": "cpu", "target": target}, "type": "Resource"});
        spec.insert("metrics".to_owned(), json!([cpu]));
    }
    let Some(behavior) = object_mut(spec, "behavior") else { return };
    let policy =
        |kind: &str, value: i64| json!({"type": kind, "value": value, "periodSeconds": 15});
    if let Some(up) = object_or_insert(behavior, "scaleUp") {
        set_default(up, "stabilizationWindowSeconds", 0);
        set_default(up, "selectPolicy", "Max");
        set_default(up, "policies", json!([policy("Pods", 4), policy("Percent", 100)]));
    }
    if let Some(down) = object_or_insert(behavior, "scaleDown") {
        set_default(down, "selectPolicy", "Max");
        set_default(down, "policies", json!([policy("Percent", 100)]));
    }
}

pub(super) fn default_api_service(object: &mut Object) {
    let fields = object.fields_mut();
    set_default(fields, "status", json!({}));
    let service = object_mut(fields, "spec").and_then(|spec| object_mut(spec, "service"));
    if let Some(service) = service {
        set_default(service, "port", 443);
    }
}

pub(super) fn default_request(object: &mut Object) {
    let fields = object.fields_mut();
    set_default(fields, "status", json!({}));
}

/// Policies fail closed and match equivalent resources by default.
pub(super) fn default_admission_policy(object: &mut Object) {
    let Some(spec) = object_or_insert(object.fields_mut(), "spec") else { return };
    set_default(spec, "failurePolicy", "Fail");
    if let Some(constraints) = object_mut(spec, "matchConstraints") {
        default_match_resources(constraints);
    }
}

pub(super) fn default_policy_binding(object: &mut Object) {
    let resources =
        object_mut(object.fields_mut(), "spec").and_then(|spec| object_mut(spec, "matchResources"));
    if let Some(resources) = resources {
        default_match_resources(resources);
    }
}

fn default_match_resources(resources: &mut FieldMap) {
    set_default(resources, "matchPolicy", "Equivalent");
    set_default(resources, "namespaceSelector", json!({}));
    set_default(resources, "objectSelector", json!({}));
    for rules in ["resourceRules", "excludeResourceRules"] {
        for_each_object(resources, rules, |rule| set_default(rule, "scope", "*"));
    }
}
