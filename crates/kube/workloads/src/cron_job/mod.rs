//! The `CronJob` controller: starts Jobs on a schedule.
//!
//! The name of a Job contains its scheduled minute, so no Job starts twice. The schedule follows
//! the injected clock: while that is paused, nothing is due.

mod decide;
mod schedule;

use crate::Started;
use crate::common::{Context, controller_reference_value};
use crate::views::Views;
use crate::workload::{Workload, WorkloadController};
use decide::{Named, decide, job_name, reference, set_active};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use mainstay_client::{Action, DeleteOptions, Error, Propagation};
use mainstay_object::{Object, builtin};
use serde_json::{Map, Value, json};

/// The delay after the scheduled time, as in kube-controller-manager.
const DELAY: SignedDuration = SignedDuration::from_millis(100);

/// Starts the controller of `CronJobs`.
pub(crate) fn start(context: &Context, views: &Views, started: &mut Started) {
    let crons =
        CronJobs { context: context.with_component("cronjob-controller"), views: views.clone() };
    WorkloadController::new("cron-jobs", builtin::CRON_JOB, &views.cron_jobs)
        .owns(&views.jobs)
        .start(crons, context, started);
}

struct CronJobs {
    context: Context,
    views: Views,
}

impl Workload for CronJobs {
    async fn reconcile(&self, cron: Object) -> Result<Action, Error> {
        let jobs = self.views.jobs.indexed(cron.uid());
        let now = self.context.clock.now();
        let decision = decide(&cron, &jobs, now);
        for (warns, reason, message) in decision.events {
            if warns {
                self.context.report_warning(&cron, reason, message);
            } else {
                self.context.report_normal(&cron, reason, message);
            }
        }
        for job in decision.prune.iter().chain(&decision.replace) {
            self.delete(&cron, job).await?;
        }
        let mut status = decision.status;
        if let Some(at) = decision.start {
            self.start_job(&cron, at, &mut status).await?;
        }
        self.context.write_status(&builtin::CRON_JOB, &cron, Value::Object(status)).await?;
        let Some(next) = decision.next else { return Ok(Action::Done) };
        let due = next.checked_add(DELAY).unwrap_or(next);
        Ok(Action::At(self.context.clock, due))
    }
}

impl CronJobs {
    async fn delete(&self, cron: &Object, (key, job): &Named) -> Result<(), Error> {
        let options = DeleteOptions::uid(job.uid.as_ref()).propagation(Propagation::Background);
        let cluster = &self.context.cluster;
        cluster.ensure_deleted(&builtin::JOB, key.namespace(), &key.name, &options).await?;
        self.context.report_normal(cron, "SuccessfulDelete", format!("Deleted job {}", key.name));
        Ok(())
    }

    /// Starts the Job of a scheduled time and adds it to `status.active`.
    async fn start_job(
        &self,
        cron: &Object,
        at: Timestamp,
        status: &mut Map<String, Value>,
    ) -> Result<(), Error> {
        let cluster = &self.context.cluster;
        let new_job = job(cron, at);
        let started = match cluster.create(&builtin::JOB, &new_job).await {
            Ok(started) => {
                let message = format!("Created job {}", started.name());
                self.context.report_normal(cron, "SuccessfulCreate", message);
                started
            }
            Err(error) if error.is_already_exists() => {
                let namespace = Some(cron.namespace());
                let existing_job = cluster.get(&builtin::JOB, namespace, new_job.name()).await?;
                if existing_job.controller_owner().is_none_or(|owner| owner.uid != cron.uid()) {
                    return Ok(());
                }
                existing_job
            }
            Err(error) => {
                if !error.is_namespace_terminating() {
                    let message = format!("Error creating job: {error}");
                    self.context.report_warning(cron, "FailedCreate", message);
                }
                return Err(error);
            }
        };
        self.views.jobs.wait_for_revision(started.resource_version()).await;
        let active_list = status.get("active").and_then(Value::as_array).cloned();
        let mut active = active_list.unwrap_or_default();
        active.push(reference(&started));
        set_active(status, active);
        status.insert("lastScheduleTime".to_owned(), mainstay_clock::rfc3339(at).into());
        Ok(())
    }
}

/// The Job for a scheduled time.
fn job(cron: &Object, at: Timestamp) -> Object {
    let template = cron.get(&["spec", "jobTemplate"]).cloned().unwrap_or_else(|| json!({}));
    let mut job = Object::new(&builtin::JOB.gvk(), &job_name(cron, at));
    job.set(&["metadata", "namespace"], cron.namespace().into());
    for field in ["labels", "annotations"] {
        if let Some(value) = template.get("metadata").and_then(|metadata| metadata.get(field)) {
            job.set(&["metadata", field], value.clone());
        }
    }
    let zone = cron.str(&["spec", "timeZone"]).and_then(|name| TimeZone::get(name).ok());
    let local = at.to_zoned(zone.unwrap_or(TimeZone::UTC));
    let stamp = match local.offset().seconds() {
        0 => mainstay_clock::rfc3339(at),
        _ => local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
    };
    job.set_annotation("batch.kubernetes.io/cronjob-scheduled-timestamp", stamp);
    job.set(&["metadata", "ownerReferences"], json!([controller_reference_value(cron)]));
    job.set(&["spec"], template.get("spec").cloned().unwrap_or_else(|| json!({})));
    job
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduled_timestamp_is_in_the_time_zone_of_the_cron_job() {
        let mut cron = Object::from_value(json!({
            "metadata": {"name": "c", "namespace": "n", "uid": "u"},
            "spec": {"jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}},
        }))
        .unwrap();
        let at = "2026-01-01T00:00:00Z".parse().unwrap();
        let stamp = "batch.kubernetes.io/cronjob-scheduled-timestamp";
        let utc = job(&cron, at);
        assert_eq!((utc.name(), utc.label("a")), ("c-29453760", Some("b")));
        assert_eq!(utc.annotation(stamp), Some("2026-01-01T00:00:00Z"));
        cron.set(&["spec", "timeZone"], "Asia/Tokyo".into());
        assert_eq!(job(&cron, at).annotation(stamp), Some("2026-01-01T09:00:00+09:00"));
    }
}
