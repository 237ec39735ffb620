//! Validation of built-in kinds: the mistakes people make, in the words they search for.
//!
//! Field paths and texts are the original's. The rules are those that decide whether an object can
//! work at all (selectors, names, ports, references, what may not change); the original has several
//! hundred more for rarely written fields, which are accepted here as they are.

mod access;
mod core;
mod network;
mod pod;
mod workloads;

pub(super) use access::{binding, binding_update, cluster_binding, cluster_role, role};
pub(super) use core::{
    config_map, config_map_update, event, quota, secret, secret_update, volume_claim,
    volume_claim_update,
};
pub(super) use network::{endpoint_slice, ingress, network_policy, service, service_update};
pub(super) use pod::{pod, pod_update_problems};
pub(super) use workloads::{
    autoscaler, cron_job, daemon_set, deployment, disruption_budget, job, job_update, replica_set,
    selector_update, stateful_set, stateful_set_update,
};

use super::fields::{entries, field, has, items, number, part, text};
use mainstay_object::selector::LabelSelector;
use mainstay_object::{FieldError, FieldErrorKind, FieldPath, Object, names};
use serde_json::Value;

/// What is found wrong.
pub(super) type Errors = Vec<FieldError>;

const IMMUTABLE: &str = "field is immutable";
const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

fn not_negative(value: &Value, key: &str, path: &FieldPath, errors: &mut Errors) {
    if let Some(number) = number(value, key).filter(|number| *number < 0) {
        errors.push(FieldError::invalid(&path.child(key), number, NOT_NEGATIVE));
    }
}

/// A text that must be one of several; empty is another rule's business.
fn one_of(value: &Value, key: &str, allowed: &[&str], path: &FieldPath, errors: &mut Errors) {
    let text = text(value, key);
    if !text.is_empty() && !allowed.contains(&text) {
        errors.push(FieldError::not_supported(&path.child(key), text, allowed));
    }
}

fn required(value: &Value, key: &str, path: &FieldPath, errors: &mut Errors) -> bool {
    let missing = text(value, key).is_empty();
    if missing {
        errors.push(FieldError::required(&path.child(key), ""));
    }
    !missing
}

/// Each problem of a text as an error of its field.
fn problems(text: &str, found: Vec<String>, path: &FieldPath, errors: &mut Errors) {
    errors.extend(found.into_iter().map(|problem| FieldError::invalid(path, text, problem)));
}

fn port_number(number: i64, path: &FieldPath, errors: &mut Errors) {
    if !(1..=65535).contains(&number) {
        errors.push(FieldError::invalid(path, number, PORT_RANGE));
    }
}

/// A port by number or by name.
fn port_or_name(value: &Value, path: &FieldPath, errors: &mut Errors) {
    match value {
        Value::Number(number) => port_number(number.as_i64().unwrap_or_default(), path, errors),
        Value::String(name) => problems(name, port_name(name), path, errors),
        _ => {}
    }
}

/// Names of ports: at most 15 letters, digits and single hyphens, at least one letter.
fn port_name(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    if name.len() > 15 {
        found.push("must be no more than 15 characters");
    }
    if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        found.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        found.push("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        found.push("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        found.push("must not begin or end with a hyphen");
    }
    found.into_iter().map(ToOwned::to_owned).collect()
}

fn labels(value: &Value, key: &str, path: &FieldPath, errors: &mut Errors) {
    for (key, value) in entries(value, key) {
        problems(key, names::qualified_name(key), path, errors);
        problems(value, names::label_value(value), path, errors);
    }
}

/// `metav1.LabelSelector`; true if it can be used.
fn selector(value: &Value, path: &FieldPath, errors: &mut Errors) -> bool {
    let before = errors.len();
    for (at, expression) in items(value, "matchExpressions").iter().enumerate() {
        let path = path.child("matchExpressions").index(at);
        let values = items(expression, "values").len();
        match text(expression, "operator") {
            "In" | "NotIn" if values == 0 => errors.push(FieldError::required(
                &path.child("values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if values > 0 => errors.push(FieldError::forbidden(
                &path.child("values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.push(FieldError::invalid(
                &path.child("operator"),
                other,
                "not a valid selector operator",
            )),
        }
        let key = text(expression, "key");
        problems(key, names::qualified_name(key), &path.child("key"), errors);
    }
    labels(value, "matchLabels", &path.child("matchLabels"), errors);
    if errors.len() > before {
        return false;
    }
    if LabelSelector::from_value(value).is_err() {
        errors.push(FieldError::invalid(path, value.clone(), "invalid label selector"));
        return false;
    }
    true
}

/// Whether a selector matches the labels of a template.
fn selects(selector: &Value, labels: &Value) -> bool {
    LabelSelector::from_value(selector)
        .is_ok_and(|selector| selector.matches_with(|key| labels.get(key).and_then(Value::as_str)))
}

/// A field that may not change; absent and null are the same.
fn immutable(new: &Value, old: &Value, path: &FieldPath, errors: &mut Errors) {
    if new != old {
        errors.push(FieldError::invalid(path, new.clone(), IMMUTABLE));
    }
}

pub(super) fn priority_class(object: &Object, errors: &mut Errors) {
    let value = object.i64(&["value"]).unwrap_or_default();
    if object.name().starts_with("system-") {
        let known =
            [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
        if !known.contains(&(object.name(), value)) {
            let words = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {} is not a known system priority class",
                object.name()
            );
            errors.push(FieldError::forbidden(&FieldPath::new("metadata").child("name"), words));
        }
    } else if value > 1_000_000_000 {
        let words = "maximum allowed value of a user defined priority is 1000000000";
        errors.push(FieldError::forbidden(&FieldPath::new("value"), words));
    }
}

pub(super) fn priority_class_update(object: &Object, old: &Object, errors: &mut Errors) {
    if field(object, "value") != field(old, "value") {
        let words = "may not be changed in an update.";
        errors.push(FieldError::forbidden(&FieldPath::new("value"), words));
    }
    let key = "preemptionPolicy";
    immutable(field(object, key), field(old, key), &FieldPath::new(key), errors);
}

pub(super) fn lease(object: &Object, errors: &mut Errors) {
    let (spec, path) = (field(object, "spec"), FieldPath::new("spec"));
    if let Some(seconds) = number(spec, "leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        let field = path.child("leaseDurationSeconds");
        errors.push(FieldError::invalid(&field, seconds, "must be greater than 0"));
    }
    not_negative(spec, "leaseTransitions", &path, errors);
}

pub(super) fn webhooks(object: &Object, errors: &mut Errors) {
    let mut seen = Vec::new();
    for (at, webhook) in items(&object_value(object), "webhooks").iter().enumerate() {
        let path = FieldPath::new("webhooks").index(at);
        let name = text(webhook, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else if name.split('.').count() < 3 || name.split('.').any(str::is_empty) {
            let words = "should be a domain with at least three segments separated by dots";
            errors.push(FieldError::invalid(&path.child("name"), name, words));
        }
        for (at, rule) in items(webhook, "rules").iter().enumerate() {
            let path = path.child("rules").index(at);
            for key in ["operations", "apiGroups", "apiVersions", "resources"] {
                if items(rule, key).is_empty() {
                    errors.push(FieldError::required(&path.child(key), ""));
                }
            }
        }
        one_of(webhook, "failurePolicy", &["Fail", "Ignore"], &path, errors);
        one_of(webhook, "matchPolicy", &["Equivalent", "Exact"], &path, errors);
        match text(webhook, "sideEffects") {
            "None" | "NoneOnDryRun" => {}
            "" => errors.push(FieldError::required(
                &path.child("sideEffects"),
                "must specify one of None, NoneOnDryRun",
            )),
            other => errors.push(FieldError::not_supported(
                &path.child("sideEffects"),
                other,
                &["None", "NoneOnDryRun"],
            )),
        }
        let timeout = number(webhook, "timeoutSeconds").unwrap_or(10);
        if !(1..=30).contains(&timeout) {
            let words = "the timeout value must be between 1 and 30 seconds";
            errors.push(FieldError::invalid(&path.child("timeoutSeconds"), timeout, words));
        }
        webhook_client(part(webhook, "clientConfig"), &path.child("clientConfig"), errors);
        if items(webhook, "admissionReviewVersions").is_empty() {
            errors.push(FieldError::required(
                &path.child("admissionReviewVersions"),
                "must specify one of v1, v1beta1",
            ));
        }
        if !name.is_empty() && seen.contains(&name.to_owned()) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        seen.push(name.to_owned());
    }
}

fn webhook_client(client: &Value, path: &FieldPath, errors: &mut Errors) {
    if !super::groups::names_one_target(client) {
        errors.push(FieldError::required(path, "exactly one of url or service is required"));
        return;
    }
    if has(client, "service") {
        let service = part(client, "service");
        required(service, "name", &path.child("service"), errors);
        required(service, "namespace", &path.child("service"), errors);
    } else if let Some((scheme, _)) =
        text(client, "url").split_once("://").filter(|(s, _)| *s != "https")
    {
        let words = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
        errors.push(FieldError::invalid(&path.child("url"), scheme, words));
    }
}

pub(super) fn api_service(object: &Object, errors: &mut Errors) {
    let (spec, path) = (field(object, "spec"), FieldPath::new("spec"));
    let wanted = format!("{}.{}", text(spec, "version"), text(spec, "group"));
    if object.name() != wanted {
        let words = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        let field = FieldPath::new("metadata").child("name");
        errors.push(FieldError::invalid(&field, object.name(), words));
    }
    for (key, below) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let priority = number(spec, key).unwrap_or_default();
        if priority <= 0 || priority > below {
            let words = format!("must be positive and less than {below}");
            errors.push(FieldError::invalid(&path.child(key), priority, words));
        }
    }
}

pub(super) fn storage_class(object: &Object, errors: &mut Errors) {
    let value = object_value(object);
    required(&value, "provisioner", &FieldPath::root(), errors);
    one_of(&value, "reclaimPolicy", &["Delete", "Retain"], &FieldPath::root(), errors);
    let modes = ["Immediate", "WaitForFirstConsumer"];
    one_of(&value, "volumeBindingMode", &modes, &FieldPath::root(), errors);
}

pub(super) fn runtime_class(object: &Object, errors: &mut Errors) {
    let handler = object.str(&["handler"]).unwrap_or_default();
    problems(handler, names::dns1123_label(handler), &FieldPath::new("handler"), errors);
}

/// The object as a value: for checks that look at its top level.
fn object_value(object: &Object) -> Value {
    object.to_value()
}

/// An error of a kind that has no constructor of its own.
fn not_found(path: &FieldPath, value: &str) -> FieldError {
    FieldError::new(path, FieldErrorKind::NotFound(value.into()), "")
}
