//! Validation of `PriorityClasses`, `RuntimeClasses` and APIServices.

use super::super::rules::{
    Errors, FieldRule, Node, Rule, formats, go_structs, immutable, one_of, quantities,
    selectors::labels, walk,
};
use super::{object_field, pod};
use mainstay_object::{FieldError, FieldErrorKind, Object, PrintedKind, names};
use serde_json::Value;
use std::collections::HashSet;

const SYSTEM_PRIORITY_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

pub(in super::super) fn priority_class(object: &Object, errors: &mut Errors) {
    let value = object.i64(&["value"]).unwrap_or_default();
    let global = object_field(object, "globalDefault") == &Value::Bool(true);
    let name = object.name();
    if name.starts_with("system-") {
        let problem =
            match SYSTEM_PRIORITY_CLASSES.iter().find(|(system_name, _)| *system_name == name) {
                Some((_, expected)) if *expected != value => {
                    Some(format!("value of {name} PriorityClass must be {expected}"))
                }
                Some(_) if global => {
                    Some(format!("globalDefault of {name} PriorityClass must be false"))
                }
                Some(_) => None,
                None => Some(format!("{name} is not a known system priority class")),
            };
        if let Some(problem) = problem {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {problem}"
            );
            let metadata = Node::top_level(&Value::Null, "metadata");
            errors.forbidden(&metadata.get("name"), detail);
        }
    } else if value > 1_000_000_000 {
        let detail = "maximum allowed value of a user defined priority is 1000000000";
        errors.forbidden(&Node::top_level(&Value::Null, "value"), detail);
    }
    let policy = Node::top_level(object_field(object, "preemptionPolicy"), "preemptionPolicy");
    if policy.is_set() {
        one_of(&policy, &["PreemptLowerPriority", "Never"], errors);
    }
}

pub(in super::super) fn priority_class_update(object: &Object, old: &Object, errors: &mut Errors) {
    if object_field(object, "value") != object_field(old, "value") {
        let detail = "may not be changed in an update.";
        errors.forbidden(&Node::top_level(&Value::Null, "value"), detail);
    }
    let key = "preemptionPolicy";
    immutable(&Node::top_level(object_field(object, key), key), object_field(old, key), errors);
}

pub(in super::super) const RUNTIME_CLASS: &[FieldRule] = &[
    ("handler", Rule::AlwaysFormat(names::dns1123_label)),
    ("overhead", Rule::Custom(overhead)),
    ("scheduling", Rule::Custom(scheduling)),
];

fn overhead(node: &Node<'_, '_>, errors: &mut Errors) {
    let fixed = node.get("podFixed").value();
    if !node.is_set() {
        return;
    }
    let limits = node.child_with_value("limits", fixed);
    for (name, at) in limits.entries() {
        quantities::container_resource_name(name, &at, errors);
        quantities::resource_quantity(name, &at, errors);
    }
}

fn scheduling(node: &Node<'_, '_>, errors: &mut Errors) {
    if !node.is_set() {
        return;
    }
    labels(&node.get("nodeSelector"), errors);
    let list = node.get("tolerations");
    pod::tolerations(&list, errors);
    let mut seen = HashSet::new();
    for toleration in list.items() {
        let key = ["key", "operator", "value", "effect"].map(|field| toleration.text_of(field));
        if seen.contains(&key) {
            let printed = go_structs::print("Toleration", toleration.value());
            let kind = FieldErrorKind::Printed(PrintedKind::Duplicate, Some(printed));
            errors.push(FieldError::new(&toleration.path(), kind, ""));
        }
        seen.insert(key);
    }
}

pub(in super::super) fn runtime_class_update(object: &Object, old: &Object, errors: &mut Errors) {
    immutable(
        &Node::top_level(object_field(object, "handler"), "handler"),
        object_field(old, "handler"),
        errors,
    );
}

pub(in super::super) fn api_service(object: &Object, errors: &mut Errors) {
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    let (group, version) = (spec.get("group"), spec.get("version"));
    let name = object.name();
    if names::path_segment(name).is_empty() {
        let expected = format!("{}.{}", version.text(), group.text());
        if name != expected
            && !name.is_empty()
            && !mainstay_fault::is_on("apiservices-have-any-name")
        {
            let detail = format!("must be `spec.version+\".\"+spec.group`: {expected:?}");
            let metadata = Node::top_level(&Value::Null, "metadata");
            errors.invalid(&metadata.get("name"), name, detail);
        }
    }
    if group.text().is_empty() && version.text() != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.required(&group, detail);
    }
    walk(
        &spec,
        &[
            ("group", Rule::Format(names::dns1123_subdomain)),
            ("version", Rule::AlwaysFormat(names::dns1035_label)),
            (
                "groupPriorityMinimum",
                Rule::RangeOrZero(1, 20_000, "must be positive and less than 20000"),
            ),
            ("versionPriority", Rule::RangeOrZero(1, 1000, "must be positive and less than 1000")),
        ],
        errors,
    );
    let (service, bundle) = (spec.get("service"), spec.get("caBundle"));
    let skip = spec.get("insecureSkipTLSVerify");
    let skips_verification = spec.is_true("insecureSkipTLSVerify");
    if !service.is_set() {
        if !bundle.text().is_empty() {
            let padding = bundle.text().bytes().rev().take_while(|b| *b == b'=').count();
            let length = bundle.text().len() * 3 / 4 - padding;
            let detail = "local APIServices may not have a caBundle";
            errors.invalid(&bundle, format!("{length} bytes"), detail);
        }
        if skips_verification {
            errors.invalid_value(&skip, "local APIServices may not have insecureSkipTLSVerify");
        }
        return;
    }
    walk(&service, &[("namespace", Rule::Required("")), ("name", Rule::Required(""))], errors);
    let port = service.get("port");
    let number = port.number().unwrap_or_default();
    if !(1..=65535).contains(&number) {
        errors.invalid(&port, number, format!("port is not valid: {}", formats::PORT_RANGE));
    }
    if skips_verification
        && !bundle.text().is_empty()
        && !mainstay_fault::is_on("apiservices-trust-both-ways")
    {
        errors.invalid_value(&skip, "may not be true if caBundle is present");
    }
}

pub(in super::super) fn api_service_update(object: &Object, _: &Object, errors: &mut Errors) {
    api_service(object, errors);
}

pub(in super::super) fn api_service_status(object: &Object, _: &Object, errors: &mut Errors) {
    let status = Node::top_level(object_field(object, "status"), "status");
    let conditions = status.get("conditions");
    for condition in conditions.items() {
        one_of(&condition.get("status"), &["True", "False", "Unknown"], errors);
    }
}
