//! Workloads: defaults and preparation of Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and
//! CronJobs.

use super::Context;
use super::fields::{
    FieldMap, for_each_object, object_mut, object_or_insert, set_default, text_in,
};
use super::pods::{default_template, drop_disabled_template_fields};
use mainstay_object::{Object, Status};
use serde_json::{Value, json};

/// The annotation that counts changes of the template of a DaemonSet.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
/// Labels that identify the pods of a Job: the legacy and the current key.
const JOB_UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
const JOB_NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

/// Inserts `spec` and `status` if they are absent; returns the spec.
fn open_spec(object: &mut Object) -> Option<&mut FieldMap> {
    set_default(object.fields_mut(), "status", json!({}));
    object_or_insert(object.fields_mut(), "spec")
}

fn status_number(object: &mut Object, key: &str) {
    if let Some(status) = object_or_insert(object.fields_mut(), "status") {
        set_default(status, key, 0);
    }
}

pub(super) fn default_deployment(object: &mut Object) {
    let Some(spec) = open_spec(object) else { return };
    set_default(spec, "replicas", 1);
    set_default(spec, "revisionHistoryLimit", 10);
    set_default(spec, "progressDeadlineSeconds", 600);
    if let Some(strategy) = object_or_insert(spec, "strategy") {
        set_default(strategy, "type", "RollingUpdate");
        if text_in(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = object_or_insert(strategy, "rollingUpdate")
        {
            set_default(rolling, "maxUnavailable", "25%");
            set_default(rolling, "maxSurge", "25%");
        }
    }
    default_template(spec);
}

pub(super) fn default_replica_set(object: &mut Object) {
    let Some(spec) = open_spec(object) else { return };
    set_default(spec, "replicas", 1);
    default_template(spec);
    status_number(object, "replicas");
}

/// A `ReplicationController` takes its selector and labels from its template.
pub(super) fn default_replication_controller(object: &mut Object) {
    let labels = object.get(&["spec", "template", "metadata", "labels"]).cloned();
    let Some(spec) = open_spec(object) else { return };
    set_default(spec, "replicas", 1);
    if spec.get("template").is_some_and(Value::is_object) {
        default_template(spec);
    }
    if let Some(labels) = labels.filter(Value::is_object) {
        set_default(spec, "selector", labels.clone());
        if object.labels().next().is_none() {
            object.set(&["metadata", "labels"], labels);
        }
    }
    status_number(object, "replicas");
}

pub(super) fn default_stateful_set(object: &mut Object) {
    let Some(spec) = open_spec(object) else { return };
    set_default(spec, "podManagementPolicy", "OrderedReady");
    set_default(spec, "replicas", 1);
    set_default(spec, "revisionHistoryLimit", 10);
    if let Some(strategy) = object_or_insert(spec, "updateStrategy") {
        if text_in(strategy, "type").is_empty() {
            set_default(strategy, "type", "RollingUpdate");
            set_default(strategy, "rollingUpdate", json!({}));
        }
        if text_in(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = object_mut(strategy, "rollingUpdate")
        {
            set_default(rolling, "partition", 0);
        }
    }
    if let Some(policy) = object_or_insert(spec, "persistentVolumeClaimRetentionPolicy") {
        set_default(policy, "whenDeleted", "Retain");
        set_default(policy, "whenScaled", "Retain");
    }
    default_template(spec);
    for_each_object(spec, "volumeClaimTemplates", |claim| {
        set_default(claim, "apiVersion", "v1");
        set_default(claim, "kind", "PersistentVolumeClaim");
        set_default(claim, "metadata", json!({}));
        if let Some(status) = object_or_insert(claim, "status") {
            set_default(status, "phase", "Pending");
        }
        if let Some(spec) = object_mut(claim, "spec") {
            set_default(spec, "volumeMode", "Filesystem");
        }
    });
    status_number(object, "replicas");
    status_number(object, "availableReplicas");
}

pub(super) fn default_daemon_set(object: &mut Object) {
    // In every served version the count is an annotation that is always set.
    if object.annotation(TEMPLATE_GENERATION).is_none() {
        object.set_annotation(TEMPLATE_GENERATION, "0");
    }
    let Some(spec) = open_spec(object) else { return };
    set_default(spec, "revisionHistoryLimit", 10);
    if let Some(strategy) = object_or_insert(spec, "updateStrategy") {
        set_default(strategy, "type", "RollingUpdate");
        if text_in(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = object_or_insert(strategy, "rollingUpdate")
        {
            set_default(rolling, "maxUnavailable", 1);
            set_default(rolling, "maxSurge", 0);
        }
    }
    default_template(spec);
    for key in
        ["currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"]
    {
        status_number(object, key);
    }
}

/// Drops disabled fields of a new workload.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn create_workload(object: &mut Object, _: &Context<'_>) -> Result<(), Status> {
    drop_disabled_template_fields(object, &["spec", "template"]);
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
    drop_disabled_template_fields(object, &["spec", "template"]);
    let path = ["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"];
    if object.kind() == "StatefulSet" && old.get(&path).is_none() {
        drop_max_unavailable(object);
    }
    Ok(())
}

/// Drops `maxUnavailable` of a StatefulSet, whose feature gate is off by default.
fn drop_max_unavailable(object: &mut Object) {
    object.remove(&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]);
}

/// A change of annotations increments the generation of a Deployment.
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

/// Keeps the template generation that the client sets; it starts at one.
pub(super) fn create_daemon_set(object: &mut Object) {
    let given = object.annotation(TEMPLATE_GENERATION).and_then(|text| text.parse::<i64>().ok());
    object.set_annotation(TEMPLATE_GENERATION, given.unwrap_or_default().max(1).to_string());
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
    if let Some(spec) = open_spec(object) {
        default_job_spec(spec);
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

/// Defaults of a Job spec that job templates of CronJobs do not have.
fn default_job_spec(spec: &mut FieldMap) {
    let is_absent = |spec: &FieldMap, key: &str| spec.get(key).is_none_or(Value::is_null);
    if is_absent(spec, "completions") && is_absent(spec, "parallelism") {
        set_default(spec, "completions", 1);
    }
    set_default(spec, "parallelism", 1);
    let has_index_limit = !is_absent(spec, "backoffLimitPerIndex");
    set_default(spec, "backoffLimit", if has_index_limit { i64::from(i32::MAX) } else { 6 });
    set_default(spec, "completionMode", "NonIndexed");
    set_default(spec, "suspend", false);
    set_default(spec, "manualSelector", false);
    let has_failure_policy = !is_absent(spec, "podFailurePolicy");
    set_default(
        spec,
        "podReplacementPolicy",
        if has_failure_policy { "Failed" } else { "TerminatingOrFailed" },
    );
}

fn default_job_template(spec: &mut FieldMap) {
    if let Some(policy) = object_mut(spec, "podFailurePolicy") {
        for_each_object(policy, "rules", |rule| {
            for_each_object(rule, "onPodConditions", |condition| {
                set_default(condition, "status", "True");
            });
        });
    }
    default_template(spec);
}

/// Generates the selector and the pod labels of a Job, unless `manualSelector` is set.
pub(super) fn create_job(object: &mut Object) {
    object.set(&["status"], json!({}));
    if object.bool(&["spec", "manualSelector"]) == Some(true) {
        return;
    }
    let (name, uid) = (object.name().to_owned(), object.uid().to_owned());
    let Some(spec) = object_mut(object.fields_mut(), "spec") else { return };
    let template = object_or_insert(spec, "template")
        .and_then(|template| object_or_insert(template, "metadata"));
    if let Some(labels) = template.and_then(|metadata| object_or_insert(metadata, "labels")) {
        for label in JOB_NAME_LABELS {
            set_default(labels, label, name.as_str());
        }
        for label in JOB_UID_LABELS {
            set_default(labels, label, uid.as_str());
        }
    }
    let selector = object_or_insert(spec, "selector")
        .and_then(|selector| object_or_insert(selector, "matchLabels"));
    if let Some(labels) = selector {
        set_default(labels, JOB_UID_LABELS[1], uid);
    }
}

/// Drops disabled fields of the pod template of a CronJob.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn create_cron_job(object: &mut Object, _: &Context<'_>) -> Result<(), Status> {
    drop_disabled_template_fields(object, &["spec", "jobTemplate", "spec", "template"]);
    Ok(())
}

pub(super) fn default_cron_job(object: &mut Object) {
    let Some(spec) = open_spec(object) else { return };
    set_default(spec, "concurrencyPolicy", "Allow");
    set_default(spec, "suspend", false);
    set_default(spec, "successfulJobsHistoryLimit", 3);
    set_default(spec, "failedJobsHistoryLimit", 1);
    if let Some(template) = object_or_insert(spec, "jobTemplate") {
        set_default(template, "metadata", json!({}));
        if let Some(spec) = object_or_insert(template, "spec") {
            default_job_template(spec);
        }
    }
}
