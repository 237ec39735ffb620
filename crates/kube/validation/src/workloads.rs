//! What makes pods: deployments, replica sets, stateful sets, daemon sets, jobs, cron jobs.

use super::Context;
use super::fields::{Fields, each, fill, inner, open, text_in};
use super::pods::{default_template, drop_disabled_in};
use mainstay_object::{Object, Status};
use serde_json::{Value, json};

/// Annotation that counts changes of a daemon set's template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
/// Labels that tie pods to their job: old and new spelling.
const JOB_UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
const JOB_NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

/// `spec` and `status`, both made if absent.
fn spec(object: &mut Object) -> Option<&mut Fields> {
    fill(object.fields_mut(), "status", json!({}));
    open(object.fields_mut(), "spec")
}

fn status_number(object: &mut Object, key: &str) {
    if let Some(status) = open(object.fields_mut(), "status") {
        fill(status, key, 0);
    }
}

pub(super) fn default_deployment(object: &mut Object) {
    let Some(spec) = spec(object) else { return };
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
    if let Some(strategy) = open(spec, "strategy") {
        fill(strategy, "type", "RollingUpdate");
        if text_in(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = open(strategy, "rollingUpdate")
        {
            fill(rolling, "maxUnavailable", "25%");
            fill(rolling, "maxSurge", "25%");
        }
    }
    default_template(spec);
}

pub(super) fn default_replica_set(object: &mut Object) {
    let Some(spec) = spec(object) else { return };
    fill(spec, "replicas", 1);
    default_template(spec);
    status_number(object, "replicas");
}

/// A controller of the first generation takes its selector and labels from its template.
pub(super) fn default_replication_controller(object: &mut Object) {
    let labels = object.get(&["spec", "template", "metadata", "labels"]).cloned();
    let Some(spec) = spec(object) else { return };
    fill(spec, "replicas", 1);
    if spec.get("template").is_some_and(Value::is_object) {
        default_template(spec);
    }
    if let Some(labels) = labels.filter(Value::is_object) {
        fill(spec, "selector", labels.clone());
        if object.labels().next().is_none() {
            object.set(&["metadata", "labels"], labels);
        }
    }
    status_number(object, "replicas");
}

pub(super) fn default_stateful_set(object: &mut Object) {
    let Some(spec) = spec(object) else { return };
    fill(spec, "podManagementPolicy", "OrderedReady");
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    if let Some(strategy) = open(spec, "updateStrategy") {
        if text_in(strategy, "type").is_empty() {
            fill(strategy, "type", "RollingUpdate");
            fill(strategy, "rollingUpdate", json!({}));
        }
        if text_in(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = inner(strategy, "rollingUpdate")
        {
            fill(rolling, "partition", 0);
        }
    }
    if let Some(policy) = open(spec, "persistentVolumeClaimRetentionPolicy") {
        fill(policy, "whenDeleted", "Retain");
        fill(policy, "whenScaled", "Retain");
    }
    default_template(spec);
    each(spec, "volumeClaimTemplates", |claim| {
        fill(claim, "apiVersion", "v1");
        fill(claim, "kind", "PersistentVolumeClaim");
        fill(claim, "metadata", json!({}));
        if let Some(status) = open(claim, "status") {
            fill(status, "phase", "Pending");
        }
        if let Some(spec) = inner(claim, "spec") {
            fill(spec, "volumeMode", "Filesystem");
        }
    });
    status_number(object, "replicas");
    status_number(object, "availableReplicas");
}

pub(super) fn default_daemon_set(object: &mut Object) {
    // In every version that is served, the count is an annotation, and always there.
    if object.annotation(TEMPLATE_GENERATION).is_none() {
        object.set_annotation(TEMPLATE_GENERATION, "0");
    }
    let Some(spec) = spec(object) else { return };
    fill(spec, "revisionHistoryLimit", 10);
    if let Some(strategy) = open(spec, "updateStrategy") {
        fill(strategy, "type", "RollingUpdate");
        if text_in(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = open(strategy, "rollingUpdate")
        {
            fill(rolling, "maxUnavailable", 1);
            fill(rolling, "maxSurge", 0);
        }
    }
    default_template(spec);
    for key in
        ["currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"]
    {
        status_number(object, key);
    }
}

/// Drops what a template may not ask for yet.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn create_workload(object: &mut Object, _: &Context<'_>) -> Result<(), Status> {
    drop_disabled_in(object, &["spec", "template"]);
    if object.kind() == "StatefulSet" {
        drop_max_unavailable(object);
    }
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn update_workload(
    object: &mut Object,
    old: &Object,
    _: &Context<'_>,
) -> Result<(), Status> {
    drop_disabled_in(object, &["spec", "template"]);
    let path = ["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"];
    if object.kind() == "StatefulSet" && old.get(&path).is_none() {
        drop_max_unavailable(object);
    }
    Ok(())
}

/// How many pods of a set may be missing is not to be said yet.
fn drop_max_unavailable(object: &mut Object) {
    object.remove(&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]);
}

/// Of deployments, annotations count as something that is wanted.
pub(super) fn update_deployment(
    object: &mut Object,
    old: &Object,
    context: &Context<'_>,
) -> Result<(), Status> {
    update_workload(object, old, context)?;
    let annotations = |object: &Object| object.get(&["metadata", "annotations"]).cloned();
    if context.subresource.is_empty() && annotations(object) != annotations(old) {
        object.set(&["metadata", "generation"], (old.generation() + 1).into());
    }
    Ok(())
}

/// A count that the client brings goes on; it starts at one.
pub(super) fn create_daemon_set(object: &mut Object) {
    let sent = object.annotation(TEMPLATE_GENERATION).and_then(|text| text.parse::<i64>().ok());
    object.set_annotation(TEMPLATE_GENERATION, sent.unwrap_or_default().max(1).to_string());
}

pub(super) fn update_daemon_set(object: &mut Object, old: &Object) {
    let before: u64 =
        old.annotation(TEMPLATE_GENERATION).and_then(|text| text.parse().ok()).unwrap_or_default();
    let changed = object.get(&["spec", "template"]) != old.get(&["spec", "template"]);
    let now = before + u64::from(changed);
    if now > 0 {
        object.set_annotation(TEMPLATE_GENERATION, now.to_string());
    }
}

pub(super) fn default_job(object: &mut Object) {
    if let Some(spec) = spec(object) {
        default_job_numbers(spec);
        default_job_template(spec);
    }
    let labels = object.get(&["spec", "template", "metadata", "labels"]).cloned();
    if let Some(labels) =
        labels.filter(|labels| labels.as_object().is_some_and(|labels| !labels.is_empty()))
        && object.labels().next().is_none()
    {
        object.set(&["metadata", "labels"], labels);
    }
}

/// What jobs have and templates of jobs in cron jobs lack.
fn default_job_numbers(spec: &mut Fields) {
    let absent = |spec: &Fields, key: &str| spec.get(key).is_none_or(Value::is_null);
    if absent(spec, "completions") && absent(spec, "parallelism") {
        fill(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    let by_index = !absent(spec, "backoffLimitPerIndex");
    fill(spec, "backoffLimit", if by_index { i64::from(i32::MAX) } else { 6 });
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    fill(spec, "manualSelector", false);
    let fails = !absent(spec, "podFailurePolicy");
    fill(spec, "podReplacementPolicy", if fails { "Failed" } else { "TerminatingOrFailed" });
}

fn default_job_template(spec: &mut Fields) {
    if let Some(policy) = inner(spec, "podFailurePolicy") {
        each(policy, "rules", |rule| {
            each(rule, "onPodConditions", |condition| fill(condition, "status", "True"));
        });
    }
    default_template(spec);
}

/// Ties the pods to come to this job, unless its author does that.
pub(super) fn create_job(object: &mut Object) {
    object.set(&["status"], json!({}));
    if object.bool(&["spec", "manualSelector"]) == Some(true) {
        return;
    }
    let (name, uid) = (object.name().to_owned(), object.uid().to_owned());
    let Some(spec) = inner(object.fields_mut(), "spec") else { return };
    let template = open(spec, "template").and_then(|template| open(template, "metadata"));
    if let Some(labels) = template.and_then(|metadata| open(metadata, "labels")) {
        for label in JOB_NAME_LABELS {
            fill(labels, label, name.as_str());
        }
        for label in JOB_UID_LABELS {
            fill(labels, label, uid.as_str());
        }
    }
    let selector = open(spec, "selector").and_then(|selector| open(selector, "matchLabels"));
    if let Some(labels) = selector {
        fill(labels, JOB_UID_LABELS[1], uid);
    }
}

/// Drops what the template of a cron job's pods may not ask for yet.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn create_cron_job(object: &mut Object, _: &Context<'_>) -> Result<(), Status> {
    drop_disabled_in(object, &["spec", "jobTemplate", "spec", "template"]);
    Ok(())
}

pub(super) fn default_cron_job(object: &mut Object) {
    let Some(spec) = spec(object) else { return };
    fill(spec, "concurrencyPolicy", "Allow");
    fill(spec, "suspend", false);
    fill(spec, "successfulJobsHistoryLimit", 3);
    fill(spec, "failedJobsHistoryLimit", 1);
    if let Some(template) = open(spec, "jobTemplate") {
        fill(template, "metadata", json!({}));
        if let Some(spec) = open(template, "spec") {
            default_job_template(spec);
        }
    }
}
