//! Deployments, replica sets, stateful sets, daemon sets, replication controllers, disruption budgets.

use super::super::rules::{
    Check, Errors, Node, Rule, formats, forms, immutable, one_of, same,
    selectors::{self, annotations, label_selector, labels, matcher},
    walk, walk_object,
};
use super::{pod, storage, view};
use mainstay_object::{Object, names};
use serde_json::{Value, json};
use std::collections::HashSet;

const UNMATCHED: &str = "`selector` does not match template `labels`";

/// The value of a percentage or a number, as the original compares them.
fn amount(node: &Node<'_, '_>) -> i64 {
    match node.value() {
        Value::String(text) if formats::percent(text).is_empty() => {
            text.trim_end_matches('%').parse().unwrap_or_default()
        }
        Value::String(text) => text.parse().unwrap_or_default(),
        other => other.as_i64().unwrap_or_default(),
    }
}

/// A number that is not negative, or a percentage.
pub(in super::super) fn share(node: &Node<'_, '_>, errors: &mut Errors) {
    match node.value() {
        Value::String(text) => errors.each(node, text, formats::percent(text)),
        _ => walk(node, &[("", Rule::NotNegative)], errors),
    }
}

/// Not more than all.
pub(in super::super) fn at_most_all(node: &Node<'_, '_>, errors: &mut Errors) {
    if let Value::String(text) = node.value()
        && formats::percent(text).is_empty()
        && amount(node) > 100
    {
        errors.wrong(node, "must not be greater than 100%");
    }
}

/// A template whose pods run until they are deleted.
fn runs_for_ever(template: &Node<'_, '_>, kind: &str, errors: &mut Errors) {
    let spec = template.get("spec");
    if spec.text_of("restartPolicy") != "Always" {
        let policy = spec.get("restartPolicy");
        errors.unsupported(&policy, policy.text(), &["Always"]);
    }
    if spec.has("activeDeadlineSeconds") {
        let words = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.forbidden(&spec.get("activeDeadlineSeconds"), words);
    }
}

/// A selector that must be there, and select something.
fn needed_selector(node: &Node<'_, '_>, kind: &str, errors: &mut Errors) {
    if !node.is_set() {
        errors.required(node, "");
        return;
    }
    label_selector(node, errors);
    if selectors::is_empty(node) {
        let printed = forms::print("LabelSelector", node.value());
        let words = format!("empty selector is invalid for {kind}");
        errors.printed(node, Some(printed), words);
    }
}

fn unmatched(template: &Node<'_, '_>, errors: &mut Errors) {
    let metadata = template.get("metadata");
    errors.wrong(&metadata.get("labels"), UNMATCHED);
}

/// Selector and template of deployments and replica sets.
fn selected_template(spec: &Node<'_, '_>, errors: &mut Errors) {
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    needed_selector(&selector, "deployment", errors);
    match matcher(selector.value()) {
        None => {
            let printed = forms::print("LabelSelector", selector.value());
            errors.printed(&selector, Some(printed), "invalid label selector");
        }
        Some(matcher) => {
            let metadata = template.get("metadata");
            if !matcher.is_everything() && !matcher.selects(metadata.get("labels").value()) {
                unmatched(&template, errors);
            }
            pod::template(&template, errors);
            runs_for_ever(&template, "ReplicaSet", errors);
        }
    }
}

/// A selector that never changes.
fn same_selector(object: &Object, old: &Object, errors: &mut Errors) {
    let (new, before) = (view(object, "spec"), view(old, "spec"));
    let spec = Node::top(new, "spec");
    let selector = spec.get("selector");
    if !same(selector.value(), before.get("selector").unwrap_or(&Value::Null)) {
        let printed = forms::pointer("LabelSelector", selector.value());
        errors.printed(&selector, Some(printed), super::IMMUTABLE);
    }
}

pub(in super::super) const DEPLOYMENT: &[Check] = &[("spec", Rule::With(deployment))];

fn deployment(spec: &Node<'_, '_>, errors: &mut Errors) {
    const TAIL: &[Check] = &[
        ("strategy", Rule::With(deployment_strategy)),
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
        errors.wrong(&deadline, "must be greater than minReadySeconds");
    }
}

fn deployment_strategy(node: &Node<'_, '_>, errors: &mut Errors) {
    let rolling = node.get("rollingUpdate");
    match node.text_of("type") {
        "Recreate" => {
            let words = "may not be specified when strategy `type` is 'Recreate'";
            walk(&rolling, &[("", Rule::Absent(words))], errors);
        }
        "RollingUpdate" => {
            let unavailable = rolling.get("maxUnavailable");
            let surge = rolling.get("maxSurge");
            share(&unavailable, errors);
            share(&surge, errors);
            if amount(&unavailable) == 0 && amount(&surge) == 0 {
                errors.wrong(&unavailable, "may not be 0 when `maxSurge` is 0");
            }
            at_most_all(&unavailable, errors);
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
    let printed = Some(forms::print(ty, node.value()));
    let kind = FieldErrorKind::Printed(PrintedKind::NotSupported(allowed), printed);
    errors.push(FieldError::new(&node.path(), kind, ""));
}

pub(in super::super) fn deployment_update(object: &Object, old: &Object, errors: &mut Errors) {
    walk_object(object, DEPLOYMENT, errors);
    same_selector(object, old, errors);
}

pub(in super::super) const REPLICA_SET: &[Check] = &[("spec", Rule::With(replica_set))];

fn replica_set(spec: &Node<'_, '_>, errors: &mut Errors) {
    walk(spec, &[("replicas", Rule::NotNegative), ("minReadySeconds", Rule::NotNegative)], errors);
    selected_template(spec, errors);
}

pub(in super::super) fn replica_set_update(object: &Object, old: &Object, errors: &mut Errors) {
    walk_object(object, REPLICA_SET, errors);
    same_selector(object, old, errors);
}

pub(in super::super) const DAEMON_SET: &[Check] = &[("spec", Rule::With(daemon_set))];

fn daemon_set(spec: &Node<'_, '_>, errors: &mut Errors) {
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    label_selector(&selector, errors);
    let metadata = template.get("metadata");
    if matcher(selector.value())
        .is_some_and(|matcher| !matcher.selects(metadata.get("labels").value()))
    {
        unmatched(&template, errors);
    }
    if selector.is_set() && selectors::is_empty(&selector) {
        let printed = forms::print("LabelSelector", selector.value());
        errors.printed(&selector, Some(printed), "empty selector is invalid for daemonset");
    }
    pod::template(&template, errors);
    runs_for_ever(&template, "DaemonSet", errors);
    walk(
        spec,
        &[
            ("minReadySeconds", Rule::NotNegative),
            ("updateStrategy", Rule::With(daemon_set_strategy)),
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
            share(&unavailable, errors);
            share(&surge, errors);
            at_most_all(&unavailable, errors);
            at_most_all(&surge, errors);
            match (amount(&unavailable) != 0, amount(&surge) != 0) {
                (true, true) => {
                    errors.wrong(&surge, "may not be set when maxUnavailable is non-zero");
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
    same_selector(object, old, errors);
    walk_object(object, DAEMON_SET, errors);
}

pub(in super::super) const STATEFUL_SET: &[Check] = &[("spec", Rule::With(stateful_set))];

fn stateful_set(spec: &Node<'_, '_>, errors: &mut Errors) {
    stateful_set_with(spec, true, errors);
}

fn stateful_set_with(spec: &Node<'_, '_>, new: bool, errors: &mut Errors) {
    const RETENTION: &[Check] =
        &[("whenDeleted", Rule::With(retention)), ("whenScaled", Rule::With(retention))];
    let policy = spec.get("podManagementPolicy");
    match policy.text() {
        "" => errors.required(&policy, ""),
        "OrderedReady" | "Parallel" => {}
        _ => errors.wrong(&policy, "must be 'OrderedReady' or 'Parallel'"),
    }
    stateful_set_strategy(&spec.get("updateStrategy"), errors);
    walk(spec, &[("persistentVolumeClaimRetentionPolicy", Rule::Inside(RETENTION))], errors);
    if new {
        let claims = spec.get("volumeClaimTemplates");
        claims.items().for_each(|claim| storage::claim_spec(&claim.get("spec"), errors));
    }
    walk(spec, &[("replicas", Rule::NotNegative), ("minReadySeconds", Rule::NotNegative)], errors);
    let ordinals = spec.get("ordinals");
    walk(
        &spec.named("ordinals.start", ordinals.get("start").value()),
        &[("", Rule::NotNegative)],
        errors,
    );
    if new {
        walk(spec, &[("serviceName", Rule::Format(names::dns1123_label))], errors);
    }
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    needed_selector(&selector, "statefulset", errors);
    match matcher(selector.value()) {
        None => {
            let printed = forms::print("LabelSelector", selector.value());
            errors.printed(&selector, Some(printed), "");
        }
        Some(matcher) => {
            let metadata = template.get("metadata");
            let found = metadata.get("labels");
            if !matcher.is_everything() && !matcher.selects(found.value()) {
                unmatched(&template, errors);
            }
            pod::template_with(&template, &with_claims(spec), errors);
            // And once more, as the original does.
            labels(&template.named("labels", found.value()), errors);
            let found = metadata.get("annotations");
            annotations(&template.named("annotations", found.value()), errors);
        }
    }
    runs_for_ever(&template, "StatefulSet", errors);
}

fn retention(node: &Node<'_, '_>, errors: &mut Errors) {
    one_of(node, &["Retain", "Delete"], errors);
}

/// The pod's spec as the set will make it: with a volume for each claim, without a name of its own.
fn with_claims(spec: &Node<'_, '_>) -> Value {
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
            let printed = forms::print("RollingUpdateStatefulSetStrategy", rolling.value());
            let words = "only allowed for updateStrategy 'RollingUpdate'";
            errors.printed(&rolling, Some(printed), words);
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            walk(&rolling, &[("partition", Rule::NotNegative)], errors);
            let unavailable = rolling.get("maxUnavailable");
            if unavailable.is_set() {
                share(&unavailable, errors);
                if amount(&unavailable) == 0 {
                    errors.wrong(&unavailable, "cannot be 0");
                }
                at_most_all(&unavailable, errors);
            }
        }
        _ => {
            let printed = forms::print("StatefulSetUpdateStrategy", node.value());
            errors.printed(node, Some(printed), "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

pub(in super::super) fn stateful_set_update(object: &Object, old: &Object, errors: &mut Errors) {
    const CHANGEABLE: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    stateful_set_with(&Node::top(view(object, "spec"), "spec"), false, errors);
    let fixed = |object: &Object| {
        let mut spec = view(object, "spec").clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|key, _| !CHANGEABLE.contains(&key.as_str()));
        }
        spec
    };
    if !same(&fixed(object), &fixed(old)) {
        let words = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        errors.forbidden(&Node::top(view(object, "spec"), "spec"), words);
    }
}

pub(in super::super) const REPLICATION_CONTROLLER: &[Check] =
    &[("spec", Rule::With(replication_controller))];

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
        unmatched(&template, errors);
    }
    pod::template(&template, errors);
    runs_for_ever(&template, "ReplicationController", errors);
}

pub(in super::super) const POD_TEMPLATE: &[Check] = &[("template", Rule::With(pod::template))];

pub(in super::super) const DISRUPTION_BUDGET: &[Check] = &[("spec", Rule::With(disruption_budget))];

/// What is said of a budget; conditions have their common form.
pub(in super::super) fn disruption_budget_status(object: &Object, _: &Object, errors: &mut Errors) {
    let status = Node::top(view(object, "status"), "status");
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

/// Conditions in the form that kinds of today share.
fn conditions(list: &Node<'_, '_>, errors: &mut Errors) {
    const REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
    let mut seen = HashSet::new();
    for condition in list.items() {
        let kind = condition.get("type");
        if seen.contains(&kind.text()) {
            errors.duplicate(&kind, kind.text());
        }
        seen.insert(kind.text());
        errors.each(&kind, kind.text(), names::qualified_name(kind.text()));
        one_of(&condition.get("status"), &["False", "True", "Unknown"], errors);
        let generation = condition.get("observedGeneration");
        if let Some(number) = generation.number().filter(|number| *number < 0) {
            errors.invalid(&generation, number, "must be greater than or equal to zero");
        }
        walk(&condition, &[("lastTransitionTime", Rule::Needed(""))], errors);
        let reason = condition.get("reason");
        let text = reason.text();
        let shaped = text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':'));
        if text.is_empty() {
            errors.required(&reason, "");
        } else if !shaped {
            errors.wrong(&reason, REASON);
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
        let printed = forms::print("PodDisruptionBudgetSpec", spec.value());
        let words = "minAvailable and maxUnavailable cannot be both set";
        errors.printed(spec, Some(printed), words);
    }
    for key in ["minAvailable", "maxUnavailable"] {
        let node = spec.get(key);
        share(&node, errors);
        at_most_all(&node, errors);
    }
    label_selector(&spec.get("selector"), errors);
    walk(
        spec,
        &[("unhealthyPodEvictionPolicy", Rule::OneOf(&["AlwaysAllow", "IfHealthyBudget"]))],
        errors,
    );
}

pub(in super::super) const REVISION: &[Check] = &[("revision", Rule::NotNegative)];

pub(in super::super) fn revision_update(object: &Object, old: &Object, errors: &mut Errors) {
    walk_object(object, REVISION, errors);
    immutable(&Node::top(view(object, "data"), "data"), view(old, "data"), errors);
}

/// Counts that a controller reports: not negative, and parts not more than the whole.
fn counts(status: &Node<'_, '_>, all: &[&str], parts: &[&str], last: &str, errors: &mut Errors) {
    for key in all {
        walk(&status.get(key), &[("", Rule::NotNegative)], errors);
    }
    let of = |key: &str| status.number_of(key).unwrap_or_default();
    for key in parts.iter().filter(|key| of(key) > of("replicas")) {
        errors.wrong(&status.get(key), "cannot be greater than status.replicas");
    }
    if of("availableReplicas") > of("readyReplicas") {
        errors.wrong(&status.get("availableReplicas"), last);
    }
}

/// A count of collisions only grows.
fn collisions(status: &Node<'_, '_>, old: &Object, errors: &mut Errors) {
    let count = status.get("collisionCount");
    let before = view(old, "status").get("collisionCount").and_then(Value::as_i64);
    if before.is_some_and(|before| count.number().is_none_or(|count| count < before)) {
        let count_now = count.number().unwrap_or_default();
        errors.invalid(&count, count_now, "cannot be decremented");
    }
}

pub(in super::super) fn deployment_status(object: &Object, old: &Object, errors: &mut Errors) {
    let status = Node::top(view(object, "status"), "status");
    counts(
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
    collisions(&status, old, errors);
}

/// Of replica sets and replication controllers.
pub(in super::super) fn replica_status(object: &Object, _old: &Object, errors: &mut Errors) {
    counts(
        &Node::top(view(object, "status"), "status"),
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
    let status = Node::top(view(object, "status"), "status");
    counts(
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
    collisions(&status, old, errors);
}

pub(in super::super) fn daemon_set_status(object: &Object, old: &Object, errors: &mut Errors) {
    const NUMBERS: &[Check] = &[
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
    let status = Node::top(view(object, "status"), "status");
    walk(&status, NUMBERS, errors);
    collisions(&status, old, errors);
}
