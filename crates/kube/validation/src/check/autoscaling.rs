//! Autoscalers.

use super::super::rules::{Check, Errors, Node, Rule, amounts, one_of, walk};
use super::{path_name, view};
use mainstay_object::{Object, names};
use serde_json::Value;

const KINDS: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

/// What of a reference to an object's kind is allowed.
#[derive(Clone, Copy)]
struct Reference {
    any_version: bool,
    empty_group: bool,
}

pub(in super::super) fn autoscaler(object: &Object, errors: &mut Errors) {
    checked(object, None, errors);
}

pub(in super::super) fn autoscaler_update(object: &Object, old: &Object, errors: &mut Errors) {
    checked(object, Some(old), errors);
}

fn checked(object: &Object, old: Option<&Object>, errors: &mut Errors) {
    let spec = Node::top(view(object, "spec"), "spec");
    let before = old.map(|old| Node::root(view(old, "spec")));
    let (least, most) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    let bound = match &before {
        Some(before) if before.number_of("minReplicas") == Some(0) => 0,
        _ => 1,
    };
    if least.number().is_some_and(|least| least < bound) {
        errors.wrong(&least, format!("must be greater than or equal to {bound}"));
    }
    let count = most.number().unwrap_or_default();
    if count < 1 {
        errors.invalid(&most, count, "must be greater than 0");
    }
    if least.number().is_some_and(|least| count < least) {
        errors.invalid(&most, count, "must be greater than or equal to `minReplicas`");
    }
    let target = spec.get("scaleTargetRef");
    let unchanged = before.as_ref().is_some_and(|before| {
        let before = before.get("scaleTargetRef");
        ["apiVersion", "kind"].iter().all(|key| before.text_of(key) == target.text_of(key))
    });
    let allowed = Reference {
        any_version: unchanged,
        empty_group: target.text_of("kind") == "ReplicationController",
    };
    reference(&target, allowed, errors);
    metrics(&spec.get("metrics"), &least, before.as_ref(), errors);
    let behavior = spec.get("behavior");
    for direction in ["scaleUp", "scaleDown"] {
        scaling_rules(&behavior.get(direction), errors);
    }
}

fn reference(node: &Node<'_, '_>, allowed: Reference, errors: &mut Errors) {
    walk(node, &[("kind", Rule::Named(path_name)), ("name", Rule::Named(path_name))], errors);
    if let Some(why) = version_problem(node.text_of("apiVersion"), allowed) {
        errors.invalid(&node.get("apiVersion"), node.text_of("apiVersion"), why);
    }
}

fn version_problem(version: &str, allowed: Reference) -> Option<String> {
    if allowed.any_version {
        return None;
    }
    match version.matches('/').count() {
        0 if version.is_empty() || !allowed.empty_group => {
            (!allowed.empty_group).then(|| "apiVersion must specify API group".to_owned())
        }
        1 if version.starts_with('/') && !allowed.empty_group => {
            Some("apiVersion must specify API group".to_owned())
        }
        0 | 1 => None,
        _ => Some(format!("unexpected GroupVersion string: {version}")),
    }
}

fn metrics(
    list: &Node<'_, '_>,
    least: &Node<'_, '_>,
    before: Option<&Node<'_, '_>>,
    errors: &mut Errors,
) {
    let group = Reference { any_version: false, empty_group: true };
    let was_bad = before.is_some_and(|before| {
        before.get("metrics").list().iter().any(|metric| {
            let version = metric.pointer("/object/describedObject/apiVersion");
            let version = version.and_then(Value::as_str).unwrap_or_default();
            metric.get("type") == Some(&"Object".into())
                && version_problem(version, group).is_some()
        })
    });
    let group = Reference { any_version: was_bad, ..group };
    for metric in list.items() {
        self::metric(&metric, group, errors);
    }
    let outside =
        list.items().any(|metric| matches!(metric.text_of("type"), "Object" | "External"));
    if least.number() == Some(0) && !outside {
        let words = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.forbidden(list, words);
    }
}

fn metric(node: &Node<'_, '_>, group: Reference, errors: &mut Errors) {
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
                identified(&source, errors);
                let target = source.get("target");
                if !target.has("value") && !target.has("averageValue") {
                    let words = "must set either a target value or averageValue";
                    errors.required(&target.get("averageValue"), words);
                }
            }
            "external" => external(&source, errors),
            "pods" => {
                identified(&source, errors);
                let target = source.get("target");
                if !target.has("averageValue") {
                    let words = "must specify a positive target averageValue";
                    errors.required(&target.get("averageValue"), words);
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
        let words = "must populate information for the given metric source";
        errors.required(&node.get(expected), words);
    }
    if present.len() != 1 {
        present.sort_unstable();
        for field in present.into_iter().filter(|field| *field != expected) {
            errors.forbidden(&node.get(field), "must populate the given metric source only");
        }
    }
}

fn identified(source: &Node<'_, '_>, errors: &mut Errors) {
    let metric = source.get("metric");
    let name = metric.get("name");
    if name.text().is_empty() {
        errors.required(&name, "must specify a metric name");
    } else {
        errors.each(&name, name.text(), path_name(name.text()));
    }
    target(&source.get("target"), errors);
}

fn external(source: &Node<'_, '_>, errors: &mut Errors) {
    identified(source, errors);
    let target = source.get("target");
    match (target.has("value"), target.has("averageValue")) {
        (false, false) => {
            let words = "must set either a target value for metric or a per-pod target";
            errors.required(&target.get("averageValue"), words);
        }
        (true, true) => {
            let words = "may not set both a target value for metric and a per-pod target";
            errors.forbidden(&target.get("value"), words);
        }
        _ => {}
    }
}

fn resource(source: &Node<'_, '_>, of_container: bool, errors: &mut Errors) {
    let name = source.get("name");
    if name.text().is_empty() {
        errors.required(&name, "must specify a resource name");
    } else if of_container {
        amounts::container_name(name.text(), &name, errors);
    }
    if of_container {
        let container = source.get("container");
        if container.text().is_empty() {
            errors.required(&container, "must specify a container");
        } else {
            errors.each(&container, container.text(), names::dns1123_label(container.text()));
        }
    }
    let target = source.get("target");
    self::target(&target, errors);
    match (target.has("averageUtilization"), target.has("averageValue")) {
        (false, false) => {
            let words = "must set either a target raw value or a target utilization";
            errors.required(&target.get("averageUtilization"), words);
        }
        (true, true) => {
            let words = "may not set both a target raw value and a target utilization";
            errors.forbidden(&target.get("averageValue"), words);
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
        let words = "must be either Utilization, Value, or AverageValue";
        errors.invalid(&kind, kind.text(), words);
    }
    for key in ["value", "averageValue"] {
        let amount = node.get(key);
        if amount.is_set() && amounts::nano(amount.value()) <= 0 {
            errors.invalid(&amount, &*amounts::text(amount.value()), "must be positive");
        }
    }
    walk(node, &[("averageUtilization", Rule::Positive)], errors);
}

fn scaling_rules(node: &Node<'_, '_>, errors: &mut Errors) {
    const POLICY: &[Check] = &[
        ("type", Rule::With(policy_type)),
        ("value", Rule::Between(1, i64::MAX, "must be greater than zero")),
        ("periodSeconds", Rule::Between(1, i64::MAX, "must be greater than zero")),
        ("periodSeconds", Rule::Within(i64::MIN, 1800, "must be less than or equal to 1800")),
    ];
    if !node.is_set() {
        return;
    }
    let window = node.get("stabilizationWindowSeconds");
    match window.number() {
        Some(..0) => errors.wrong(&window, "must be greater than or equal to zero"),
        Some(3601..) => errors.wrong(&window, "must be less than or equal to 3600"),
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
        amounts::not_negative(&tolerance, errors);
    }
}

fn policy_type(node: &Node<'_, '_>, errors: &mut Errors) {
    one_of(node, &["Percent", "Pods"], errors);
}

pub(in super::super) fn autoscaler_status(object: &Object, _old: &Object, errors: &mut Errors) {
    let status = Node::top(view(object, "status"), "status");
    walk(
        &status,
        &[("currentReplicas", Rule::NotNegative), ("desiredReplicas", Rule::NotNegative)],
        errors,
    );
}
