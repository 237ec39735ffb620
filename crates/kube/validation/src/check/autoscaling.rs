//! Validation of `HorizontalPodAutoscalers`.

use super::super::rules::{Errors, FieldRule, Node, Rule, one_of, quantities, walk};
use super::{object_field, path_name};
use mainstay_object::{Object, names};
use serde_json::Value;

const KINDS: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

/// Options for the API version of a reference.
#[derive(Clone, Copy)]
struct ReferenceOptions {
    allow_any_version: bool,
    allow_empty_group: bool,
}

pub(in super::super) fn autoscaler(object: &Object, errors: &mut Errors) {
    validate(object, None, errors);
}

pub(in super::super) fn autoscaler_update(object: &Object, old: &Object, errors: &mut Errors) {
    validate(object, Some(old), errors);
}

fn validate(object: &Object, old: Option<&Object>, errors: &mut Errors) {
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    let before = old.map(|old| Node::root(object_field(old, "spec")));
    let (min, max) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    let bound = match &before {
        Some(before) if before.number_of("minReplicas") == Some(0) => 0,
        _ => 1,
    };
    if min.number().is_some_and(|min| min < bound) {
        errors.invalid_value(&min, format!("must be greater than or equal to {bound}"));
    }
    let count = max.number().unwrap_or_default();
    if count < 1 {
        errors.invalid(&max, count, "must be greater than 0");
    }
    if min.number().is_some_and(|min| count < min) {
        errors.invalid(&max, count, "must be greater than or equal to `minReplicas`");
    }
    let target = spec.get("scaleTargetRef");
    let unchanged = before.as_ref().is_some_and(|before| {
        let before = before.get("scaleTargetRef");
        ["apiVersion", "kind"].iter().all(|key| before.text_of(key) == target.text_of(key))
    });
    let allowed = ReferenceOptions {
        allow_any_version: unchanged,
        allow_empty_group: target.text_of("kind") == "ReplicationController",
    };
    reference(&target, allowed, errors);
    metrics(&spec.get("metrics"), &min, before.as_ref(), errors);
    let behavior = spec.get("behavior");
    for direction in ["scaleUp", "scaleDown"] {
        scaling_rules(&behavior.get(direction), errors);
    }
}

fn reference(node: &Node<'_, '_>, allowed: ReferenceOptions, errors: &mut Errors) {
    walk(
        node,
        &[("kind", Rule::RequiredFormat(path_name)), ("name", Rule::RequiredFormat(path_name))],
        errors,
    );
    if let Some(problem) = version_problem(node.text_of("apiVersion"), allowed) {
        errors.invalid(&node.get("apiVersion"), node.text_of("apiVersion"), problem);
    }
}

fn version_problem(version: &str, allowed: ReferenceOptions) -> Option<String> {
    if allowed.allow_any_version {
        return None;
    }
    match version.matches('/').count() {
        0 if version.is_empty() || !allowed.allow_empty_group => {
            (!allowed.allow_empty_group).then(|| "apiVersion must specify API group".to_owned())
        }
        1 if version.starts_with('/') && !allowed.allow_empty_group => {
            Some("apiVersion must specify API group".to_owned())
        }
        0 | 1 => None,
        _ => Some(format!("unexpected GroupVersion string: {version}")),
    }
}

fn metrics(
    list: &Node<'_, '_>,
    min: &Node<'_, '_>,
    before: Option<&Node<'_, '_>>,
    errors: &mut Errors,
) {
    let group = ReferenceOptions { allow_any_version: false, allow_empty_group: true };
    let was_invalid = before.is_some_and(|before| {
        before.get("metrics").list().iter().any(|metric| {
            let version = metric.pointer("/object/describedObject/apiVersion");
            let version = version.and_then(Value::as_str).unwrap_or_default();
            metric.get("type") == Some(&"Object".into())
                && version_problem(version, group).is_some()
        })
    });
    let group = ReferenceOptions { allow_any_version: was_invalid, ..group };
    for metric in list.items() {
        self::metric(&metric, group, errors);
    }
    let has_external_metric =
        list.items().any(|metric| matches!(metric.text_of("type"), "Object" | "External"));
    if min.number() == Some(0) && !has_external_metric {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.forbidden(list, detail);
    }
}

fn metric(node: &Node<'_, '_>, group: ReferenceOptions, errors: &mut Errors) {
    const FIELDS: [&str; 5] = ["object", "external", "pods", "resource", "containerResource"];
    let kind = node.get("type");
    if kind.text().is_empty() {
        errors.required(&kind, "must specify a metric source type");
    }
    one_of(&kind, &KINDS, errors);
    let mut present = Vec::new();
    for field in FIELDS {
        let source = node.get(field);
        if !source.is_set() {
            continue;
        }
        present.push(field);
        if present.len() > 1 {
            continue;
        }
        match field {
            "object" => {
                reference(&source.get("describedObject"), group, errors);
                metric_identifier(&source, errors);
                let target = source.get("target");
                if !target.has("value") && !target.has("averageValue") {
                    let detail = "must set either a target value or averageValue";
                    errors.required(&target.get("averageValue"), detail);
                }
            }
            "external" => external(&source, errors),
            "pods" => {
                metric_identifier(&source, errors);
                let target = source.get("target");
                if !target.has("averageValue") {
                    let detail = "must specify a positive target averageValue";
                    errors.required(&target.get("averageValue"), detail);
                }
            }
            _ => resource(&source, field == "containerResource", errors),
        }
    }
    let expected = match kind.text() {
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "External" => "external",
        "ContainerResource" => "containerResource",
        _ => "",
    };
    if expected.is_empty() {
        one_of(&kind, &KINDS, errors);
    } else if !node.has(expected) {
        let detail = "must populate information for the given metric source";
        errors.required(&node.get(expected), detail);
    }
    if present.len() != 1 {
        present.sort_unstable();
        for field in present.into_iter().filter(|field| *field != expected) {
            errors.forbidden(&node.get(field), "must populate the given metric source only");
        }
    }
}

fn metric_identifier(source: &Node<'_, '_>, errors: &mut Errors) {
    let metric = source.get("metric");
    let name = metric.get("name");
    if name.text().is_empty() {
        errors.required(&name, "must specify a metric name");
    } else {
        errors.add_problems(&name, name.text(), path_name(name.text()));
    }
    target(&source.get("target"), errors);
}

fn external(source: &Node<'_, '_>, errors: &mut Errors) {
    metric_identifier(source, errors);
    let target = source.get("target");
    match (target.has("value"), target.has("averageValue")) {
        (false, false) => {
            let detail = "must set either a target value for metric or a per-pod target";
            errors.required(&target.get("averageValue"), detail);
        }
        (true, true) => {
            let detail = "may not set both a target value for metric and a per-pod target";
            errors.forbidden(&target.get("value"), detail);
        }
        _ => {}
    }
}

fn resource(source: &Node<'_, '_>, of_container: bool, errors: &mut Errors) {
    let name = source.get("name");
    if name.text().is_empty() {
        errors.required(&name, "must specify a resource name");
    } else if of_container {
        quantities::container_resource_name(name.text(), &name, errors);
    }
    if of_container {
        let container = source.get("container");
        if container.text().is_empty() {
            errors.required(&container, "must specify a container");
        } else {
            errors.add_problems(
                &container,
                container.text(),
                names::dns1123_label(container.text()),
            );
        }
    }
    let target = source.get("target");
    self::target(&target, errors);
    match (target.has("averageUtilization"), target.has("averageValue")) {
        (false, false) => {
            let detail = "must set either a target raw value or a target utilization";
            errors.required(&target.get("averageUtilization"), detail);
        }
        (true, true) => {
            let detail = "may not set both a target raw value and a target utilization";
            errors.forbidden(&target.get("averageValue"), detail);
        }
        _ => {}
    }
}

fn target(node: &Node<'_, '_>, errors: &mut Errors) {
    let kind = node.get("type");
    if kind.text().is_empty() {
        errors.required(&kind, "must specify a metric target type");
    }
    if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.invalid(&kind, kind.text(), detail);
    }
    for key in ["value", "averageValue"] {
        let amount = node.get(key);
        if amount.is_set() && quantities::nano(amount.value()) <= 0 {
            errors.invalid(&amount, &*quantities::text(amount.value()), "must be positive");
        }
    }
    walk(node, &[("averageUtilization", Rule::Positive)], errors);
}

fn scaling_rules(node: &Node<'_, '_>, errors: &mut Errors) {
    const POLICY: &[FieldRule] = &[
        ("type", Rule::Custom(policy_type)),
        ("value", Rule::RangeOrZero(1, i64::MAX, "must be greater than zero")),
        ("periodSeconds", Rule::RangeOrZero(1, i64::MAX, "must be greater than zero")),
        ("periodSeconds", Rule::Range(i64::MIN, 1800, "must be less than or equal to 1800")),
    ];
    if !node.is_set() {
        return;
    }
    let window = node.get("stabilizationWindowSeconds");
    match window.number() {
        Some(..0) => errors.invalid_value(&window, "must be greater than or equal to zero"),
        Some(3601..) => errors.invalid_value(&window, "must be less than or equal to 3600"),
        _ => {}
    }
    walk(node, &[("selectPolicy", Rule::OneOf(&["Disabled", "Max", "Min"]))], errors);
    let policies = node.get("policies");
    if policies.len() == 0 {
        errors.required(&policies, "must specify at least one Policy");
    }
    policies.items().for_each(|policy| walk(&policy, POLICY, errors));
    let tolerance = node.get("tolerance");
    if tolerance.is_set() {
        quantities::not_negative(&tolerance, errors);
    }
}

fn policy_type(node: &Node<'_, '_>, errors: &mut Errors) {
    one_of(node, &["Percent", "Pods"], errors);
}

pub(in super::super) fn autoscaler_status(object: &Object, _old: &Object, errors: &mut Errors) {
    let status = Node::top_level(object_field(object, "status"), "status");
    walk(
        &status,
        &[("currentReplicas", Rule::NotNegative), ("desiredReplicas", Rule::NotNegative)],
        errors,
    );
}
