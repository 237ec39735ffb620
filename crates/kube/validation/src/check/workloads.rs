//! Validation of Deployments, ReplicaSets, StatefulSets, DaemonSets, `ReplicationControllers`,
//! `PodDisruptionBudgets` and `ControllerRevisions`.

use super::super::rules::{
    Errors, FieldRule, Node, Rule, formats, go_structs, immutable, one_of,
    selectors::{self, annotations, label_selector, labels, matcher},
    semantically_equal, walk, walk_object,
};
use super::{object_field, pod, storage};
use mainstay_object::{Object, names};
use serde_json::{Value, json};
use std::collections::HashSet;

const SELECTOR_MISMATCH: &str = "`selector` does not match template `labels`";

/// The number or percentage, as Kubernetes compares the two.
fn int_or_percent_value(node: &Node<'_, '_>) -> i64 {
    match node.value() {
        Value::String(text) if formats::percent(text).is_empty() => {
            text.trim_end_matches('%').parse().unwrap_or_default()
        }
        Value::String(text) => text.parse().unwrap_or_default(),
        other => other.as_i64().unwrap_or_default(),
    }
}

/// Validates a number that is not negative, or a percentage.
pub(in super::super) fn int_or_percent(node: &Node<'_, '_>, errors: &mut Errors) {
    match node.value() {
        Value::String(text) => errors.add_problems(node, text, formats::percent(text)),
        _ => walk(node, &[("", Rule::NotNegative)], errors),
    }
}

/// Validates that a percentage is at most 100%.
pub(in super::super) fn at_most_100_percent(node: &Node<'_, '_>, errors: &mut Errors) {
    if let Value::String(text) = node.value()
        && formats::percent(text).is_empty()
        && int_or_percent_value(node) > 100
    {
        errors.invalid_value(node, "must not be greater than 100%");
    }
}

/// Validates a template whose pods always restart.
fn always_restarts(template: &Node<'_, '_>, kind: &str, errors: &mut Errors) {
    let spec = template.get("spec");
    if spec.text_of("restartPolicy") != "Always" {
        let policy = spec.get("restartPolicy");
        errors.unsupported(&policy, policy.text(), &["Always"]);
    }
    if spec.has("activeDeadlineSeconds") {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.forbidden(&spec.get("activeDeadlineSeconds"), detail);
    }
}

/// Validates a selector that must be set and not empty.
fn required_selector(node: &Node<'_, '_>, kind: &str, errors: &mut Errors) {
    if !node.is_set() {
        errors.required(node, "");
        return;
    }
    label_selector(node, errors);
    if selectors::is_empty(node) {
        let printed = go_structs::print("LabelSelector", node.value());
        let detail = format!("empty selector is invalid for {kind}");
        errors.printed(node, Some(printed), detail);
    }
}

fn selector_mismatch(template: &Node<'_, '_>, errors: &mut Errors) {
    let metadata = template.get("metadata");
    errors.invalid_value(&metadata.get("labels"), SELECTOR_MISMATCH);
}

/// Validates selector and template of Deployments and ReplicaSets.
fn selected_template(spec: &Node<'_, '_>, errors: &mut Errors) {
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    required_selector(&selector, "deployment", errors);
    match matcher(selector.value()) {
        None => {
            let printed = go_structs::print("LabelSelector", selector.value());
            errors.printed(&selector, Some(printed), "invalid label selector");
        }
        Some(matcher) => {
            let metadata = template.get("metadata");
            if !matcher.is_everything() && !matcher.selects(metadata.get("labels").value()) {
                selector_mismatch(&template, errors);
            }
            pod::template(&template, errors);
            always_restarts(&template, "ReplicaSet", errors);
        }
    }
}

/// Validates that the selector is unchanged.
fn immutable_selector(object: &Object, old: &Object, errors: &mut Errors) {
    let (new, before) = (object_field(object, "spec"), object_field(old, "spec"));
    let spec = Node::top_level(new, "spec");
    let selector = spec.get("selector");
    if !semantically_equal(selector.value(), before.get("selector").unwrap_or(&Value::Null)) {
        let printed = go_structs::pointer("LabelSelector", selector.value());
        errors.printed(&selector, Some(printed), super::IMMUTABLE);
    }
}

pub(in super::super) const DEPLOYMENT: &[FieldRule] = &[("spec", Rule::Custom(deployment))];

fn deployment(spec: &Node<'_, '_>, errors: &mut Errors) {
    const TAIL: &[FieldRule] = &[
        ("strategy", Rule::Custom(deployment_strategy)),
        ("minReadySeconds", Rule::NotNegative),
        ("revisionHistoryLimit", Rule::NotNegative),
        ("progressDeadlineSeconds", Rule::NotNegative),
    ];
    walk(spec, &[("replicas", Rule::NotNegative)], errors);
    selected_template(spec, errors);
    walk(spec, TAIL, errors);
    let deadline = spec.get("progressDeadlineSeconds");
    let ready = spec.number_of("minReadySeconds").unwrap_or_default();
    if deadline.number().is_some_and(|deadline| deadline <= ready) {
        errors.invalid_value(&deadline, "must be greater than minReadySeconds");
    }
}

fn deployment_strategy(node: &Node<'_, '_>, errors: &mut Errors) {
    let rolling = node.get("rollingUpdate");
    match node.text_of("type") {
        "Recreate" => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            walk(&rolling, &[("", Rule::Forbidden(detail))], errors);
        }
        "RollingUpdate" => {
            let unavailable = rolling.get("maxUnavailable");
            let surge = rolling.get("maxSurge");
            int_or_percent(&unavailable, errors);
            int_or_percent(&surge, errors);
            if int_or_percent_value(&unavailable) == 0 && int_or_percent_value(&surge) == 0 {
                errors.invalid_value(&unavailable, "may not be 0 when `maxSurge` is 0");
            }
            at_most_100_percent(&unavailable, errors);
        }
        _ => {
            unsupported_strategy(
                node,
                "DeploymentStrategy",
                &["Recreate", "RollingUpdate"],
                errors,
            );
        }
    }
}

fn unsupported_strategy(node: &Node<'_, '_>, ty: &str, allowed: &[&str], errors: &mut Errors) {
    use mainstay_object::{FieldError, FieldErrorKind, PrintedKind};
    let allowed = allowed.iter().map(|text| (*text).to_owned()).collect();
    let printed = Some(go_structs::print(ty, node.value()));
    let kind = FieldErrorKind::Printed(PrintedKind::NotSupported(allowed), printed);
    errors.push(FieldError::new(&node.path(), kind, ""));
}

pub(in super::super) fn deployment_update(object: &Object, old: &Object, errors: &mut Errors) {
    walk_object(object, DEPLOYMENT, errors);
    immutable_selector(object, old, errors);
}

pub(in super::super) const REPLICA_SET: &[FieldRule] = &[("spec", Rule::Custom(replica_set))];

fn replica_set(spec: &Node<'_, '_>, errors: &mut Errors) {
    walk(spec, &[("replicas", Rule::NotNegative), ("minReadySeconds", Rule::NotNegative)], errors);
    selected_template(spec, errors);
}

pub(in super::super) fn replica_set_update(object: &Object, old: &Object, errors: &mut Errors) {
    walk_object(object, REPLICA_SET, errors);
    immutable_selector(object, old, errors);
}

pub(in super::super) const DAEMON_SET: &[FieldRule] = &[("spec", Rule::Custom(daemon_set))];

fn daemon_set(spec: &Node<'_, '_>, errors: &mut Errors) {
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    label_selector(&selector, errors);
    let metadata = template.get("metadata");
    if matcher(selector.value())
        .is_some_and(|matcher| !matcher.selects(metadata.get("labels").value()))
    {
        selector_mismatch(&template, errors);
    }
    if selector.is_set() && selectors::is_empty(&selector) {
        let printed = go_structs::print("LabelSelector", selector.value());
        errors.printed(&selector, Some(printed), "empty selector is invalid for daemonset");
    }
    pod::template(&template, errors);
    always_restarts(&template, "DaemonSet", errors);
    walk(
        spec,
        &[
            ("minReadySeconds", Rule::NotNegative),
            ("updateStrategy", Rule::Custom(daemon_set_strategy)),
            ("revisionHistoryLimit", Rule::NotNegative),
        ],
        errors,
    );
}

fn daemon_set_strategy(node: &Node<'_, '_>, errors: &mut Errors) {
    match node.text_of("type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = node.get("rollingUpdate");
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            int_or_percent(&unavailable, errors);
            int_or_percent(&surge, errors);
            at_most_100_percent(&unavailable, errors);
            at_most_100_percent(&surge, errors);
            match (int_or_percent_value(&unavailable) != 0, int_or_percent_value(&surge) != 0) {
                (true, true) => {
                    errors.invalid_value(&surge, "may not be set when maxUnavailable is non-zero");
                }
                (false, false) => errors.required(&unavailable, "cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        _ => {
            let allowed = ["RollingUpdate", "OnDelete"];
            unsupported_strategy(node, "DaemonSetUpdateStrategy", &allowed, errors);
        }
    }
}

pub(in super::super) fn daemon_set_update(object: &Object, old: &Object, errors: &mut Errors) {
    immutable_selector(object, old, errors);
    walk_object(object, DAEMON_SET, errors);
}

pub(in super::super) const STATEFUL_SET: &[FieldRule] = &[("spec", Rule::Custom(stateful_set))];

fn stateful_set(spec: &Node<'_, '_>, errors: &mut Errors) {
    stateful_set_with(spec, true, errors);
}

fn stateful_set_with(spec: &Node<'_, '_>, is_create: bool, errors: &mut Errors) {
    const RETENTION: &[FieldRule] =
        &[("whenDeleted", Rule::Custom(retention)), ("whenScaled", Rule::Custom(retention))];
    let policy = spec.get("podManagementPolicy");
    match policy.text() {
        "" => errors.required(&policy, ""),
        "OrderedReady" | "Parallel" => {}
        _ => errors.invalid_value(&policy, "must be 'OrderedReady' or 'Parallel'"),
    }
    stateful_set_strategy(&spec.get("updateStrategy"), errors);
    walk(spec, &[("persistentVolumeClaimRetentionPolicy", Rule::Fields(RETENTION))], errors);
    if is_create {
        let claims = spec.get("volumeClaimTemplates");
        claims.items().for_each(|claim| storage::claim_spec(&claim.get("spec"), errors));
    }
    walk(spec, &[("replicas", Rule::NotNegative), ("minReadySeconds", Rule::NotNegative)], errors);
    let ordinals = spec.get("ordinals");
    walk(
        &spec.child_with_value("ordinals.start", ordinals.get("start").value()),
        &[("", Rule::NotNegative)],
        errors,
    );
    if is_create {
        walk(spec, &[("serviceName", Rule::Format(names::dns1123_label))], errors);
    }
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    required_selector(&selector, "statefulset", errors);
    match matcher(selector.value()) {
        None => {
            let printed = go_structs::print("LabelSelector", selector.value());
            errors.printed(&selector, Some(printed), "");
        }
        Some(matcher) => {
            let metadata = template.get("metadata");
            let found = metadata.get("labels");
            if !matcher.is_everything() && !matcher.selects(found.value()) {
                selector_mismatch(&template, errors);
            }
            pod::template_with(&template, &pod_spec_with_claims(spec), errors);
            // Kubernetes validates labels and annotations twice.
            labels(&template.child_with_value("labels", found.value()), errors);
            let found = metadata.get("annotations");
            annotations(&template.child_with_value("annotations", found.value()), errors);
        }
    }
    always_restarts(&template, "StatefulSet", errors);
}

fn retention(node: &Node<'_, '_>, errors: &mut Errors) {
    one_of(node, &["Retain", "Delete"], errors);
}

/// The pod spec that the StatefulSet creates: a volume for each claim, without a hostname.
fn pod_spec_with_claims(spec: &Node<'_, '_>) -> Value {
    let template = spec.get("template");
    let mut pod = template.get("spec").value().clone();
    let Some(fields) = pod.as_object_mut() else { return pod };
    fields.remove("subdomain");
    fields.remove("hostname");
    let claims: Vec<&str> = spec
        .get("volumeClaimTemplates")
        .list()
        .iter()
        .map(|claim| claim.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default())
        .collect();
    if claims.is_empty() {
        return pod;
    }
    let own = fields.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut volumes: Vec<Value> = Vec::new();
    let mut claimed = HashSet::new();
    for name in &claims {
        if claimed.insert(*name) {
            volumes.push(json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
        }
    }
    volumes.extend(own.into_iter().filter(|volume| {
        let name = volume.get("name").and_then(Value::as_str).unwrap_or_default();
        !claimed.contains(name)
    }));
    fields.insert("volumes".to_owned(), Value::Array(volumes));
    pod
}

fn stateful_set_strategy(node: &Node<'_, '_>, errors: &mut Errors) {
    let rolling = node.get("rollingUpdate");
    match node.text_of("type") {
        "" => errors.required(node, ""),
        "OnDelete" if rolling.is_set() => {
            let printed = go_structs::print("RollingUpdateStatefulSetStrategy", rolling.value());
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            errors.printed(&rolling, Some(printed), detail);
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            walk(&rolling, &[("partition", Rule::NotNegative)], errors);
            let unavailable = rolling.get("maxUnavailable");
            if unavailable.is_set() {
                int_or_percent(&unavailable, errors);
                if int_or_percent_value(&unavailable) == 0 {
                    errors.invalid_value(&unavailable, "cannot be 0");
                }
                at_most_100_percent(&unavailable, errors);
            }
        }
        _ => {
            let printed = go_structs::print("StatefulSetUpdateStrategy", node.value());
            errors.printed(node, Some(printed), "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

pub(in super::super) fn stateful_set_update(object: &Object, old: &Object, errors: &mut Errors) {
    const MUTABLE_FIELDS: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    stateful_set_with(&Node::top_level(object_field(object, "spec"), "spec"), false, errors);
    let immutable_fields = |object: &Object| {
        let mut spec = object_field(object, "spec").clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|key, _| !MUTABLE_FIELDS.contains(&key.as_str()));
        }
        spec
    };
    if !semantically_equal(&immutable_fields(object), &immutable_fields(old)) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        errors.forbidden(&Node::top_level(object_field(object, "spec"), "spec"), detail);
    }
}

pub(in super::super) const REPLICATION_CONTROLLER: &[FieldRule] =
    &[("spec", Rule::Custom(replication_controller))];

fn replication_controller(spec: &Node<'_, '_>, errors: &mut Errors) {
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    walk(spec, &[("minReadySeconds", Rule::NotNegative)], errors);
    if selector.len() == 0 {
        errors.required(&selector, "");
    }
    walk(spec, &[("replicas", Rule::NotNegative)], errors);
    if !template.is_set() {
        errors.required(&template, "");
        return;
    }
    let metadata = template.get("metadata");
    let found = metadata.get("labels");
    let matches = selector
        .map()
        .into_iter()
        .flatten()
        .all(|(key, value)| found.value().get(key) == Some(value));
    if !matches {
        selector_mismatch(&template, errors);
    }
    pod::template(&template, errors);
    always_restarts(&template, "ReplicationController", errors);
}

pub(in super::super) const POD_TEMPLATE: &[FieldRule] =
    &[("template", Rule::Custom(pod::template))];

pub(in super::super) const DISRUPTION_BUDGET: &[FieldRule] =
    &[("spec", Rule::Custom(disruption_budget))];

/// Validates the status of a `PodDisruptionBudget`.
pub(in super::super) fn disruption_budget_status(object: &Object, _: &Object, errors: &mut Errors) {
    let status = Node::top_level(object_field(object, "status"), "status");
    conditions(&status.get("conditions"), errors);
    walk(
        &status,
        &[
            ("disruptionsAllowed", Rule::NotNegative),
            ("currentHealthy", Rule::NotNegative),
            ("desiredHealthy", Rule::NotNegative),
            ("expectedPods", Rule::NotNegative),
        ],
        errors,
    );
}

/// Validates conditions of the type `metav1.Condition`.
fn conditions(list: &Node<'_, '_>, errors: &mut Errors) {
    const REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
    let mut seen = HashSet::new();
    for condition in list.items() {
        let kind = condition.get("type");
        if seen.contains(&kind.text()) {
            errors.duplicate(&kind, kind.text());
        }
        seen.insert(kind.text());
        errors.add_problems(&kind, kind.text(), names::qualified_name(kind.text()));
        one_of(&condition.get("status"), &["False", "True", "Unknown"], errors);
        let generation = condition.get("observedGeneration");
        if let Some(number) = generation.number().filter(|number| *number < 0) {
            errors.invalid(&generation, number, "must be greater than or equal to zero");
        }
        walk(&condition, &[("lastTransitionTime", Rule::Required(""))], errors);
        let reason = condition.get("reason");
        let text = reason.text();
        let is_valid = text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':'));
        if text.is_empty() {
            errors.required(&reason, "");
        } else if !is_valid {
            errors.invalid_value(&reason, REASON);
        }
        if text.len() > 1024 {
            errors.too_long(&reason, 1024);
        }
        if condition.text_of("message").len() > 32 * 1024 {
            errors.too_long(&condition.get("message"), 32 * 1024);
        }
    }
}

fn disruption_budget(spec: &Node<'_, '_>, errors: &mut Errors) {
    if spec.has("minAvailable") && spec.has("maxUnavailable") {
        let printed = go_structs::print("PodDisruptionBudgetSpec", spec.value());
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.printed(spec, Some(printed), detail);
    }
    for key in ["minAvailable", "maxUnavailable"] {
        let node = spec.get(key);
        int_or_percent(&node, errors);
        at_most_100_percent(&node, errors);
    }
    label_selector(&spec.get("selector"), errors);
    walk(
        spec,
        &[("unhealthyPodEvictionPolicy", Rule::OneOf(&["AlwaysAllow", "IfHealthyBudget"]))],
        errors,
    );
}

pub(in super::super) const REVISION: &[FieldRule] = &[("revision", Rule::NotNegative)];

pub(in super::super) fn revision_update(object: &Object, old: &Object, errors: &mut Errors) {
    walk_object(object, REVISION, errors);
    immutable(
        &Node::top_level(object_field(object, "data"), "data"),
        object_field(old, "data"),
        errors,
    );
}

/// Validates counts in a status: not negative, and no part larger than the whole.
fn status_counts(
    status: &Node<'_, '_>,
    all: &[&str],
    parts: &[&str],
    last: &str,
    errors: &mut Errors,
) {
    for key in all {
        walk(&status.get(key), &[("", Rule::NotNegative)], errors);
    }
    let count = |key: &str| status.number_of(key).unwrap_or_default();
    for key in parts.iter().filter(|key| count(key) > count("replicas")) {
        errors.invalid_value(&status.get(key), "cannot be greater than status.replicas");
    }
    if count("availableReplicas") > count("readyReplicas") {
        errors.invalid_value(&status.get("availableReplicas"), last);
    }
}

/// Validates that the collision count does not decrease.
fn collision_count(status: &Node<'_, '_>, old: &Object, errors: &mut Errors) {
    let count = status.get("collisionCount");
    let before = object_field(old, "status").get("collisionCount").and_then(Value::as_i64);
    if before.is_some_and(|before| count.number().is_none_or(|count| count < before)) {
        let count_now = count.number().unwrap_or_default();
        errors.invalid(&count, count_now, "cannot be decremented");
    }
}

pub(in super::super) fn deployment_status(object: &Object, old: &Object, errors: &mut Errors) {
    let status = Node::top_level(object_field(object, "status"), "status");
    status_counts(
        &status,
        &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
        &["updatedReplicas", "readyReplicas", "availableReplicas"],
        "cannot be greater than readyReplicas",
        errors,
    );
    collision_count(&status, old, errors);
}

/// Validates the status of a ReplicaSet or `ReplicationController`.
pub(in super::super) fn replica_status(object: &Object, _old: &Object, errors: &mut Errors) {
    status_counts(
        &Node::top_level(object_field(object, "status"), "status"),
        &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
        &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        "cannot be greater than readyReplicas",
        errors,
    );
}

pub(in super::super) fn stateful_set_status(object: &Object, old: &Object, errors: &mut Errors) {
    let status = Node::top_level(object_field(object, "status"), "status");
    status_counts(
        &status,
        &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
        &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
        "cannot be greater than status.readyReplicas",
        errors,
    );
    collision_count(&status, old, errors);
}

pub(in super::super) fn daemon_set_status(object: &Object, old: &Object, errors: &mut Errors) {
    const NUMBERS: &[FieldRule] = &[
        ("currentNumberScheduled", Rule::NotNegative),
        ("numberMisscheduled", Rule::NotNegative),
        ("desiredNumberScheduled", Rule::NotNegative),
        ("numberReady", Rule::NotNegative),
        ("observedGeneration", Rule::NotNegative),
        ("updatedNumberScheduled", Rule::NotNegative),
        ("numberAvailable", Rule::NotNegative),
        ("numberUnavailable", Rule::NotNegative),
        ("collisionCount", Rule::NotNegative),
    ];
    let status = Node::top_level(object_field(object, "status"), "status");
    walk(&status, NUMBERS, errors);
    collision_count(&status, old, errors);
}
