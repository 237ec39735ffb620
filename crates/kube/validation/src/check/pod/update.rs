//! Validation of updates of pods and of their status.

use super::super::super::rules::{Errors, Node, Rule, immutable, semantically_equal, walk};
use super::{MIRROR, metadata_and_spec, placement};
use mainstay_object::{Object, names};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The mutable fields of a pod spec, as the error lists them.
const MUTABLE_FIELDS: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Validates an update of a pod.
pub(in super::super::super) fn pod_update(object: &Object, old: &Object, errors: &mut Errors) {
    let field = |object: &Object, key: &str| -> Value {
        object.fields().get(key).cloned().unwrap_or_default()
    };
    let (new_value, old_value) = (field(object, "spec"), field(old, "spec"));
    let (new, before) = (Node::top_level(&new_value, "spec"), Node::root(&old_value));
    metadata_and_spec(object, errors);
    let metadata = field(object, "metadata");
    let annotations = Node::top_level(&metadata, "metadata");
    annotation_changes(&annotations.get("annotations"), old, errors);
    for list in ["containers", "initContainers"] {
        let containers = new.get(list);
        if containers.len() != before.get(list).len() {
            errors.forbidden(&containers, "pod updates may not add or remove containers");
            return;
        }
        for container in containers.items() {
            walk(&container, &[("image", Rule::Required(""))], errors);
            super::containers::image_whitespace(&container, errors);
        }
    }
    deadline(&new.get("activeDeadlineSeconds"), before.number_of("activeDeadlineSeconds"), errors);
    added_tolerations(&new.get("tolerations"), &before.get("tolerations"), errors);
    removed_gates(&new.get("schedulingGates"), &before.get("schedulingGates"), errors);
    if semantically_equal(&new_value, &old_value) {
        return;
    }
    let mut restored = new_value.clone();
    restore_mutable_fields(&mut restored, &old_value);
    if before.get("schedulingGates").len() > 0 {
        gated_pod_changes(&new, &mut restored, &old_value, errors);
    }
    if !semantically_equal(&restored, &old_value) {
        let detail = format!("pod updates may not change fields other than {MUTABLE_FIELDS}");
        errors.forbidden(&new, detail);
    }
}

/// Restores the old values of mutable fields.
fn restore_mutable_fields(new: &mut Value, old: &Value) {
    for list in ["containers", "initContainers"] {
        let before = old.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let containers = new.get_mut(list).and_then(Value::as_array_mut);
        for (container, before) in containers.into_iter().flatten().zip(before) {
            if let Some(fields) = container.as_object_mut() {
                restore(fields, before, "image");
            }
        }
    }
    let is_shortened = old.get("terminationGracePeriodSeconds").and_then(Value::as_i64) < Some(0)
        && new.get("terminationGracePeriodSeconds").and_then(Value::as_i64) == Some(1);
    if let Some(fields) = new.as_object_mut() {
        for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
            restore(fields, old, key);
        }
        if is_shortened {
            restore(fields, old, "terminationGracePeriodSeconds");
        }
    }
}

fn restore(fields: &mut serde_json::Map<String, Value>, old: &Value, key: &str) {
    match old.get(key) {
        Some(value) => fields.insert(key.to_owned(), value.clone()),
        None => fields.remove(key),
    };
}

fn annotation_changes(node: &Node<'_, '_>, old: &Object, errors: &mut Errors) {
    let before: Vec<(&str, &str)> = old.annotations().collect();
    for (key, value) in &before {
        if node.value().get(key).and_then(Value::as_str) == Some(value) {
            continue;
        }
        let at = node.key(key);
        if key.starts_with(super::APP_ARMOR) {
            errors.forbidden(&at, "may not remove or update AppArmor annotations");
        }
        if *key == MIRROR {
            errors.forbidden(&at, "may not remove or update mirror pod annotation");
        }
    }
    for (key, at) in
        node.entries().filter(|(key, _)| before.iter().all(|(old_key, _)| old_key != key))
    {
        if key.starts_with(super::APP_ARMOR) {
            errors.forbidden(&at, "may not add AppArmor annotations");
        }
        if key == MIRROR {
            errors.forbidden(&at, "may not add mirror pod annotation");
        }
    }
}

fn deadline(node: &Node<'_, '_>, before: Option<i64>, errors: &mut Errors) {
    match (node.number(), before) {
        (Some(new), _) if !(0..=2_147_483_647).contains(&new) => {
            errors.invalid_value(node, "must be between 0 and 2147483647, inclusive");
        }
        (Some(new), Some(before)) if before < new => {
            errors.invalid_value(node, "must be less than or equal to previous value");
        }
        (None, Some(_)) => {
            errors.invalid_value(node, "must not update from a positive integer to nil value");
        }
        _ => {}
    }
}

fn added_tolerations(new: &Node<'_, '_>, old: &Node<'_, '_>, errors: &mut Errors) {
    let without_seconds = |value: &Value| {
        let mut value = value.clone();
        if let Some(fields) = value.as_object_mut() {
            fields.remove("tolerationSeconds");
        }
        value
    };
    let found: HashSet<Value> = new.list().iter().map(without_seconds).collect();
    for toleration in old.list() {
        if !found.contains(&without_seconds(toleration)) {
            let detail = "existing toleration can not be modified except its tolerationSeconds";
            errors.forbidden(new, detail);
        }
    }
    placement::tolerations(new, errors);
}

fn removed_gates(new: &Node<'_, '_>, old: &Node<'_, '_>, errors: &mut Errors) {
    let before: HashSet<&str> =
        old.list().iter().filter_map(|gate| gate.get("name")?.as_str()).collect();
    for gate in new.items() {
        let name = gate.text_of("name");
        if !before.contains(name) {
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.forbidden(&gate.get("name"), detail);
        }
    }
}

/// Validates changes of a gated pod: its node constraints may become stricter.
fn gated_pod_changes(new: &Node<'_, '_>, restored: &mut Value, old: &Value, errors: &mut Errors) {
    let selector = new.get("nodeSelector");
    let before = old.get("nodeSelector").unwrap_or(&Value::Null);
    if !semantically_equal(selector.value(), before) {
        for (key, value) in before.as_object().into_iter().flatten() {
            if selector.value().get(key) != Some(value) {
                let detail =
                    "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
                errors.invalid_value(&selector, detail);
            }
        }
        if let Some(fields) = restored.as_object_mut() {
            restore(fields, old, "nodeSelector");
        }
    }
    let node_affinity_of = |spec: &Value| -> Value {
        let affinity = spec.get("affinity").and_then(|affinity| affinity.get("nodeAffinity"));
        affinity.cloned().unwrap_or_default()
    };
    let (after, before) = (node_affinity_of(new.value()), node_affinity_of(old));
    if semantically_equal(&after, &before) {
        return;
    }
    let affinity = new.get("affinity");
    node_affinity(&affinity.get("nodeAffinity"), &before, errors);
    if let Some(fields) = restored.as_object_mut() {
        let mut affinity =
            fields.get("affinity").and_then(Value::as_object).cloned().unwrap_or_default();
        affinity.remove("nodeAffinity");
        if !before.is_null() {
            affinity.insert("nodeAffinity".to_owned(), before);
        }
        if affinity.is_empty() && old.get("affinity").is_none_or(Value::is_null) {
            fields.remove("affinity");
        } else {
            fields.insert("affinity".to_owned(), Value::Object(affinity));
        }
    }
}

fn node_affinity(node: &Node<'_, '_>, old: &Value, errors: &mut Errors) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let before =
        old.get(REQUIRED).and_then(|affinity| affinity.get("nodeSelectorTerms")?.as_array());
    let Some(before) = before.filter(|terms| !terms.is_empty()) else { return };
    let required = node.get(REQUIRED);
    let terms = required.get("nodeSelectorTerms");
    let print =
        |value: &Value| super::super::super::rules::go_structs::list("NodeSelectorTerm", value);
    if terms.len() != before.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.printed(&terms, Some(print(terms.value())), detail);
        return;
    }
    for (term, before) in terms.items().zip(before) {
        let list = |value: &Value, key: &str| -> Vec<Value> {
            value.get(key).and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let only_adds = ["matchExpressions", "matchFields"].iter().all(|key| {
            let (new, old) = (list(term.value(), key), list(before, key));
            new.starts_with(&old)
        });
        let was_empty =
            ["matchExpressions", "matchFields"].iter().all(|key| list(before, key).is_empty());
        let is_empty = ["matchExpressions", "matchFields"]
            .iter()
            .all(|key| list(term.value(), key).is_empty());
        if !only_adds || (was_empty && !is_empty) {
            let printed =
                super::super::super::rules::go_structs::print("NodeSelectorTerm", term.value());
            errors.printed(
                &term,
                Some(printed),
                "only additions are allowed (no mutations or deletions)",
            );
        }
    }
}

/// Validates an update of the status of a pod.
pub(in super::super::super) fn pod_status_update(
    object: &Object,
    old: &Object,
    errors: &mut Errors,
) {
    let field = |object: &Object, key: &str| -> Value {
        object.fields().get(key).cloned().unwrap_or_default()
    };
    let metadata = field(object, "metadata");
    annotation_changes(&Node::top_level(&metadata, "metadata").get("annotations"), old, errors);
    let (new_value, old_value) = (field(object, "status"), field(old, "status"));
    let (status, before) = (Node::top_level(&new_value, "status"), Node::root(&old_value));
    conditions(&status.get("conditions"), errors);
    let nominated = status.get("nominatedNodeName");
    if nominated.text() != before.text_of("nominatedNodeName") {
        walk(&nominated, &[("", Rule::Format(names::dns1123_subdomain))], errors);
    }
    walk(
        &status,
        &[("observedGeneration", Rule::Range(0, i64::MAX, "must be a non-negative integer"))],
        errors,
    );
    immutable(&status.get("qosClass"), before.get("qosClass").value(), errors);
    let spec = field(old, "spec");
    for (list, kind) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", ""),
    ] {
        state_transitions(&status.get(list), &before.get(list), &spec, kind, errors);
    }
    for (list, one) in [("podIPs", "podIP"), ("hostIPs", "hostIP")] {
        let addresses = status.get(list);
        if list == "hostIPs" && addresses.len() > 0 {
            let first = addresses.index(0);
            if first.text_of("ip") != status.text_of(one) {
                errors.invalid(&first.get("ip"), first.text_of("ip"), "must be equal to `hostIP`");
            }
        }
        let old_addresses: HashSet<&str> = before
            .get(list)
            .list()
            .iter()
            .filter_map(|address| address.get("ip")?.as_str())
            .collect();
        for address in addresses.items() {
            let ip = address.text_of("ip");
            if !old_addresses.contains(ip) {
                errors.add_problems(&address, ip, super::formats::address(ip));
            }
        }
    }
}

fn conditions(list: &Node<'_, '_>, errors: &mut Errors) {
    for condition in list.items() {
        walk(
            &condition,
            &[("observedGeneration", Rule::Range(0, i64::MAX, "must be a non-negative integer"))],
            errors,
        );
        let kind = condition.text_of("type");
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            errors.add_problems(&condition.get("Type"), kind, names::qualified_name(kind));
        }
    }
}

/// The first element of each name; the name may be absent.
fn first_by_name(list: &[Value]) -> HashMap<Option<&Value>, &Value> {
    let mut found = HashMap::with_capacity(list.len());
    for element in list {
        found.entry(element.get("name")).or_insert(element);
    }
    found
}

/// Validates that terminated containers stay terminated, unless they are restarted.
fn state_transitions(
    new: &Node<'_, '_>,
    old: &Node<'_, '_>,
    spec: &Value,
    kind: &str,
    errors: &mut Errors,
) {
    let policy = spec.get("restartPolicy").and_then(Value::as_str).unwrap_or_default();
    let now = first_by_name(new.list());
    let containers = spec.get(kind).and_then(Value::as_array);
    let containers = first_by_name(containers.map_or(&[], Vec::as_slice));
    for (at, before) in old.list().iter().enumerate() {
        let Some(terminated) = before.get("state").and_then(|state| state.get("terminated")) else {
            continue;
        };
        let name = before.get("name");
        let is_running = now.get(&name).is_some_and(|now| {
            now.get("state").and_then(|state| state.get("terminated")).is_none_or(Value::is_null)
        });
        if !is_running {
            continue;
        }
        let code = terminated.get("exitCode").and_then(Value::as_i64).unwrap_or_default();
        let container = containers.get(&name);
        if kind.is_empty()
            || !container.is_some_and(|container| is_restarted(container, policy, code))
        {
            errors.forbidden(
                &new.index(at).get("state"),
                "may not be transitioned to non-terminated state",
            );
        }
    }
}

fn is_restarted(container: &Value, policy: &str, code: i64) -> bool {
    let rules = container.get("restartPolicyRules").and_then(Value::as_array);
    for rule in rules.into_iter().flatten() {
        let codes = rule.get("exitCodes");
        let listed = codes
            .and_then(|codes| codes.get("values")?.as_array())
            .is_some_and(|values| values.contains(&code.into()));
        let matches = match codes.and_then(|codes| codes.get("operator")?.as_str()) {
            Some("In") => listed,
            Some("NotIn") => !listed,
            _ => false,
        };
        if matches {
            return rule.get("action") == Some(&"Restart".into());
        }
    }
    let policy = container.get("restartPolicy").and_then(Value::as_str).unwrap_or(policy);
    policy == "Always" || (policy == "OnFailure" && code != 0)
}
