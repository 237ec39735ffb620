//! What makes pods, keeps them and scales them.

use super::super::fields::{has, items, number, part, text};
use super::pod::{restarts_always, template};
use super::{
    Errors, IMMUTABLE, NOT_NEGATIVE, field, immutable, not_negative, one_of, required, selector,
    selects,
};
use mainstay_object::{FieldError, FieldPath, Object};
use serde_json::Value;

const UNMATCHED: &str = "`selector` does not match template `labels`";

/// Selector and template, which all of them have: the selector is there, is not empty, and matches.
fn selector_and_template(spec: &Value, kind: &str, path: &FieldPath, errors: &mut Errors) {
    let labels = part(part(part(spec, "template"), "metadata"), "labels");
    let (field, wanted) = (path.child("selector"), part(spec, "selector"));
    let mut usable = true;
    if wanted.is_null() {
        errors.push(FieldError::required(&field, ""));
    } else {
        let before = errors.len();
        usable = selector(wanted, &field, errors);
        let words = if !usable && LABELS_ONLY.contains(&kind) {
            Some("invalid label selector".to_owned())
        } else if errors.len() == before
            && wanted.as_object().is_none_or(|map| map.values().all(is_empty))
        {
            Some(format!("empty selector is invalid for {kind}"))
        } else {
            None
        };
        errors.extend(words.map(|words| FieldError::invalid(&field, wanted.clone(), words)));
    }
    let template_path = path.child("template");
    if usable && (wanted.is_null() || !selects(wanted, labels)) {
        let field = template_path.child("metadata").child("labels");
        errors.push(FieldError::invalid(&field, labels.clone(), UNMATCHED));
    }
    template(part(spec, "template"), &template_path, errors);
    restarts_always(part(spec, "template"), &template_path, errors);
}

/// Kinds whose selectors are parsed a second time, with a second message.
const LABELS_ONLY: [&str; 3] = ["deployment", "statefulset", "daemonset"];

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

pub(in super::super) fn deployment(object: &Object, errors: &mut Errors) {
    let (spec, path) = (field(object, "spec"), FieldPath::new("spec"));
    not_negative(spec, "replicas", &path, errors);
    selector_and_template(spec, "deployment", &path, errors);
    rollout(part(spec, "strategy"), &path.child("strategy"), errors);
    not_negative(spec, "minReadySeconds", &path, errors);
    not_negative(spec, "revisionHistoryLimit", &path, errors);
    if let Some(deadline) = number(spec, "progressDeadlineSeconds") {
        not_negative(spec, "progressDeadlineSeconds", &path, errors);
        if deadline <= number(spec, "minReadySeconds").unwrap_or_default() {
            let words = "must be greater than minReadySeconds";
            errors.push(FieldError::invalid(
                &path.child("progressDeadlineSeconds"),
                deadline,
                words,
            ));
        }
    }
}

fn rollout(strategy: &Value, path: &FieldPath, errors: &mut Errors) {
    let rolling = part(strategy, "rollingUpdate");
    match text(strategy, "type") {
        "Recreate" => {
            if !rolling.is_null() {
                let words = "may not be specified when strategy `type` is 'Recreate'";
                errors.push(FieldError::forbidden(&path.child("rollingUpdate"), words));
            }
        }
        "RollingUpdate" => {
            let path = path.child("rollingUpdate");
            let surge = share(part(rolling, "maxSurge"), &path.child("maxSurge"), errors);
            let field = path.child("maxUnavailable");
            let unavailable = share(part(rolling, "maxUnavailable"), &field, errors);
            if (surge, unavailable) == (Some(0), Some(0)) {
                let value = part(rolling, "maxUnavailable").clone();
                errors.push(FieldError::invalid(
                    &field,
                    value,
                    "may not be 0 when `maxSurge` is 0",
                ));
            }
        }
        _ => {
            // Here and below the original prints its internal form; the client's says more.
            let allowed = ["Recreate", "RollingUpdate"];
            errors.push(FieldError::not_supported(path, strategy.clone(), &allowed));
        }
    }
}

/// A number or a percentage; its number if it is good.
fn share(value: &Value, path: &FieldPath, errors: &mut Errors) -> Option<i64> {
    match value {
        Value::String(text) => {
            let digits = text.strip_suffix('%').unwrap_or_default();
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                let words = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
                errors.push(FieldError::invalid(path, text.as_str(), words));
                return None;
            }
            digits.parse().ok()
        }
        value => {
            let number = value.as_i64()?;
            if number < 0 {
                errors.push(FieldError::invalid(path, number, NOT_NEGATIVE));
            }
            Some(number)
        }
    }
}

pub(in super::super) fn replica_set(object: &Object, errors: &mut Errors) {
    let (spec, path) = (field(object, "spec"), FieldPath::new("spec"));
    not_negative(spec, "replicas", &path, errors);
    not_negative(spec, "minReadySeconds", &path, errors);
    selector_and_template(spec, "deployment", &path, errors);
}

pub(in super::super) fn daemon_set(object: &Object, errors: &mut Errors) {
    let (spec, path) = (field(object, "spec"), FieldPath::new("spec"));
    selector_and_template(spec, "daemonset", &path, errors);
    not_negative(spec, "minReadySeconds", &path, errors);
    let strategy = part(spec, "updateStrategy");
    if !matches!(text(strategy, "type"), "RollingUpdate" | "OnDelete") {
        let allowed = ["RollingUpdate", "OnDelete"];
        let path = path.child("updateStrategy");
        errors.push(FieldError::not_supported(&path, strategy.clone(), &allowed));
    }
}

pub(in super::super) fn stateful_set(object: &Object, errors: &mut Errors) {
    let (spec, path) = (field(object, "spec"), FieldPath::new("spec"));
    if !matches!(text(spec, "podManagementPolicy"), "OrderedReady" | "Parallel") {
        let value = text(spec, "podManagementPolicy");
        let words = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid(&path.child("podManagementPolicy"), value, words));
    }
    let strategy = part(spec, "updateStrategy");
    if !matches!(text(strategy, "type"), "RollingUpdate" | "OnDelete") {
        let words = "must be 'RollingUpdate' or 'OnDelete'";
        errors.push(FieldError::invalid(&path.child("updateStrategy"), strategy.clone(), words));
    }
    not_negative(spec, "replicas", &path, errors);
    not_negative(spec, "minReadySeconds", &path, errors);
    selector_and_template(spec, "statefulset", &path, errors);
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
    let fixed = |object: &Object| {
        let mut spec = field(object, "spec").clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|key, _| !CHANGEABLE.contains(&key.as_str()));
        }
        spec
    };
    if fixed(object) != fixed(old) {
        let words = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        errors.push(FieldError::forbidden(&FieldPath::new("spec"), words));
    }
}

/// The selector of deployments, replica sets and daemon sets never changes.
pub(in super::super) fn selector_update(object: &Object, old: &Object, errors: &mut Errors) {
    let path = FieldPath::new("spec").child("selector");
    let selector = |object| part(field(object, "spec"), "selector");
    immutable(selector(object), selector(old), &path, errors);
}

pub(in super::super) fn job(object: &Object, errors: &mut Errors) {
    let (spec, path) = (field(object, "spec"), FieldPath::new("spec"));
    let labels = part(part(part(spec, "template"), "metadata"), "labels");
    let wanted = part(spec, "selector");
    job_numbers(spec, &path, errors);
    if wanted.is_null() {
        errors.push(FieldError::required(&path.child("selector"), ""));
    } else {
        let usable = selector(wanted, &path.child("selector"), errors);
        let generated =
            number_of_labels(wanted) == 1 || spec.get("manualSelector") == Some(&Value::Bool(true));
        if !generated {
            let words = "`selector` not auto-generated";
            errors.push(FieldError::invalid(&path.child("selector"), wanted.clone(), words));
        }
        if usable && !selects(wanted, labels) {
            let field = path.child("template").child("metadata").child("labels");
            errors.push(FieldError::invalid(&field, labels.clone(), UNMATCHED));
        }
    }
    job_template(spec, &path, errors);
}

fn number_of_labels(selector: &Value) -> usize {
    part(selector, "matchLabels").as_object().map_or(0, serde_json::Map::len)
        + items(selector, "matchExpressions").len()
}

fn job_numbers(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ] {
        not_negative(spec, key, path, errors);
    }
    one_of(spec, "completionMode", &["Indexed", "NonIndexed"], path, errors);
    if text(spec, "completionMode") == "Indexed" && !has(spec, "completions") {
        let words = "when completion mode is Indexed";
        errors.push(FieldError::required(&path.child("completions"), words));
    }
}

fn job_template(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let path = path.child("template");
    template(part(spec, "template"), &path, errors);
    let field = path.child("spec").child("restartPolicy");
    match text(part(part(spec, "template"), "spec"), "restartPolicy") {
        "OnFailure" | "Never" => {}
        "" | "Always" => {
            errors.push(FieldError::required(&field, "valid values: \"OnFailure\", \"Never\""));
        }
        other => errors.push(FieldError::not_supported(&field, other, &["OnFailure", "Never"])),
    }
}

pub(in super::super) fn job_update(object: &Object, old: &Object, errors: &mut Errors) {
    let (new, before) = (field(object, "spec"), field(old, "spec"));
    let path = FieldPath::new("spec");
    let indexed = text(new, "completionMode") == "Indexed"
        && part(new, "completions") == part(new, "parallelism");
    if part(new, "completions") != part(before, "completions") && !indexed {
        let value = part(new, "completions").clone();
        errors.push(FieldError::invalid(&path.child("completions"), value, IMMUTABLE));
    }
    immutable(part(new, "selector"), part(before, "selector"), &path.child("selector"), errors);
    // A job that has not started may still be placed elsewhere; the rest of its template is fixed.
    let suspended = before.get("suspend") == Some(&Value::Bool(true));
    let not_started = !has(field(old, "status"), "startTime");
    if !(suspended && not_started) {
        let template = path.child("template");
        immutable(part(new, "template"), part(before, "template"), &template, errors);
    }
    for key in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"] {
        immutable(part(new, key), part(before, key), &path.child(key), errors);
    }
}

pub(in super::super) fn cron_job(object: &Object, errors: &mut Errors) {
    let (spec, path) = (field(object, "spec"), FieldPath::new("spec"));
    let schedule = text(spec, "schedule");
    if required(spec, "schedule", &path, errors)
        && let Some(words) = schedule_problem(schedule)
    {
        errors.push(FieldError::invalid(&path.child("schedule"), schedule, words));
    }
    one_of(spec, "concurrencyPolicy", &["Allow", "Forbid", "Replace"], &path, errors);
    not_negative(spec, "startingDeadlineSeconds", &path, errors);
    not_negative(spec, "successfulJobsHistoryLimit", &path, errors);
    not_negative(spec, "failedJobsHistoryLimit", &path, errors);
    let job = part(part(spec, "jobTemplate"), "spec");
    let path = path.child("jobTemplate").child("spec");
    job_numbers(job, &path, errors);
    job_template(job, &path, errors);
}

/// What is wrong with the shape of a schedule. Numbers are left to whoever runs it.
fn schedule_problem(schedule: &str) -> Option<String> {
    const NAMED: [&str; 7] =
        ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    if schedule.starts_with('@') {
        let known = NAMED.contains(&schedule) || schedule.starts_with("@every ");
        return (!known).then(|| format!("unrecognized descriptor: {schedule}"));
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    (fields.len() != 5).then(|| {
        format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" "))
    })
}

pub(in super::super) fn disruption_budget(object: &Object, errors: &mut Errors) {
    let (spec, path) = (field(object, "spec"), FieldPath::new("spec"));
    if has(spec, "minAvailable") && has(spec, "maxUnavailable") {
        let words = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid(&path, spec.clone(), words));
    }
    for key in ["minAvailable", "maxUnavailable"] {
        share(part(spec, key), &path.child(key), errors);
    }
    if has(spec, "selector") {
        selector(part(spec, "selector"), &path.child("selector"), errors);
    }
}

pub(in super::super) fn autoscaler(object: &Object, errors: &mut Errors) {
    let (spec, path) = (field(object, "spec"), FieldPath::new("spec"));
    let least = number(spec, "minReplicas").unwrap_or(1);
    let most = number(spec, "maxReplicas").unwrap_or_default();
    if least < 1 {
        let words = "must be greater than or equal to 1";
        errors.push(FieldError::invalid(&path.child("minReplicas"), least, words));
    }
    if most < 1 {
        errors.push(FieldError::invalid(
            &path.child("maxReplicas"),
            most,
            "must be greater than 0",
        ));
    }
    if most < least {
        let words = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(&path.child("maxReplicas"), most, words));
    }
    let (target, path) = (part(spec, "scaleTargetRef"), path.child("scaleTargetRef"));
    required(target, "kind", &path, errors);
    required(target, "name", &path, errors);
}
