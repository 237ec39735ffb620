//! CronJob decisions: which Jobs to start, replace and delete, and the new status.

use super::schedule::Schedule;
use crate::views::{JobEnd, JobView};
use jiff::{SignedDuration, Timestamp};
use mainstay_object::{NamespacedName, Object};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A Job with its key.
pub(super) type Named = (NamespacedName, Arc<JobView>);

/// An event: whether it warns, its reason and its message.
pub(super) type EventText = (bool, &'static str, String);

/// The actions and the status of one reconcile.
#[derive(Debug, Default)]
pub(super) struct Decision {
    /// The scheduled time whose Job starts now.
    pub(super) start: Option<Timestamp>,
    /// Running Jobs that a new one replaces.
    pub(super) replace: Vec<Named>,
    /// Finished Jobs beyond the history limits.
    pub(super) prune: Vec<Named>,
    pub(super) events: Vec<EventText>,
    /// The new status, without the Job that is started.
    pub(super) status: Map<String, Value>,
    /// When to reconcile again.
    pub(super) next: Option<Timestamp>,
}

/// Decides from the `CronJob`, its Jobs and the time.
pub(super) fn decide(cron: &Object, jobs: &[Named], now: Timestamp) -> Decision {
    let mut decision = Decision {
        status: cron.get(&["status"]).and_then(Value::as_object).cloned().unwrap_or_default(),
        ..Decision::default()
    };
    let mut active: Vec<Value> = cron.array(&["status", "active"]).to_vec();
    remove_inactive(jobs, &mut active, &mut decision);
    prune(cron, jobs, &mut decision);
    active.retain(|reference| !decision.prune.iter().any(|(_, job)| reference["uid"] == *job.uid));
    if !cron.is_terminating() && cron.bool(&["spec", "suspend"]) != Some(true) {
        due(cron, jobs, &active, now, &mut decision);
        active.retain(|reference| {
            !decision.replace.iter().any(|(_, job)| reference["uid"] == *job.uid)
        });
    }
    set_active(&mut decision.status, active);
    decision
}

/// Writes the list of running Jobs, or leaves it out if there are none.
pub(super) fn set_active(status: &mut Map<String, Value>, active: Vec<Value>) {
    if active.is_empty() {
        status.remove("active");
    } else {
        status.insert("active".to_owned(), Value::Array(active));
    }
}

/// Removes Jobs that have ended or are gone from the list of active Jobs.
fn remove_inactive(jobs: &[Named], active: &mut Vec<Value>, decision: &mut Decision) {
    for (key, job) in jobs {
        let at = active.iter().position(|reference| reference["uid"] == *job.uid);
        let Some(end) = job.end else {
            if at.is_none() {
                let message =
                    format!("Saw a job that the controller did not create or forgot: {}", key.name);
                decision.events.push((true, "UnexpectedJob", message));
            }
            continue;
        };
        if let Some(at) = at {
            active.remove(at);
            let condition = if end == JobEnd::Complete { "Complete" } else { "Failed" };
            let message = format!("Saw completed job: {}, condition: {condition}", key.name);
            decision.events.push((false, "SawCompletedJob", message));
        }
        if let (JobEnd::Complete, Some(completed)) = (end, job.completed) {
            let last_success = decision.status.get("lastSuccessfulTime").and_then(Value::as_str);
            let last_success: Option<Timestamp> = last_success.and_then(|text| text.parse().ok());
            if last_success.is_none_or(|last_success| completed > last_success) {
                let text = mainstay_clock::rfc3339(completed);
                decision.status.insert("lastSuccessfulTime".to_owned(), text.into());
            }
        }
    }
    active.retain(|reference| {
        let exists = jobs.iter().any(|(_, job)| reference["uid"] == *job.uid);
        if !exists {
            let name = reference["name"].as_str().unwrap_or_default();
            let message = format!("Active job went missing: {name}");
            decision.events.push((false, "MissingJob", message));
        }
        exists
    });
}

fn prune(cron: &Object, jobs: &[Named], decision: &mut Decision) {
    for (field, default, end) in [
        ("successfulJobsHistoryLimit", 3, JobEnd::Complete),
        ("failedJobsHistoryLimit", 1, JobEnd::Failed),
    ] {
        let limit = cron.i64(&["spec", field]).unwrap_or(default);
        let Ok(limit) = usize::try_from(limit) else { continue };
        let mut ended: Vec<&Named> =
            jobs.iter().filter(|(_, job)| job.end == Some(end) && !job.terminating).collect();
        ended.sort_by_key(|(key, job)| (job.started, key.clone()));
        let surplus = ended.len().saturating_sub(limit);
        decision.prune.extend(ended.into_iter().take(surplus).cloned());
    }
}

/// Decides which Job is due, and when to reconcile again.
fn due(cron: &Object, jobs: &[Named], active: &[Value], now: Timestamp, decision: &mut Decision) {
    let text = cron.str(&["spec", "schedule"]).unwrap_or_default();
    let zone = cron.str(&["spec", "timeZone"]);
    let Some(schedule) = Schedule::parse(text, zone) else {
        let message = format!("unparseable schedule: {text:?}");
        decision.events.push((true, "UnparseableSchedule", message));
        return;
    };
    if text.contains("TZ=") {
        let message = format!(
            "CRON_TZ or TZ used in schedule {text:?} is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        );
        decision.events.push((true, "UnsupportedSchedule", message));
    }
    decision.next = schedule.next(now);
    let last = cron.str(&["status", "lastScheduleTime"]).and_then(|text| text.parse().ok());
    let last: Option<Timestamp> = last.or_else(|| cron.creation_timestamp());
    let Some(last) = last else { return };
    let deadline = cron.i64(&["spec", "startingDeadlineSeconds"]);
    let since = deadline
        .and_then(|seconds| now.checked_sub(SignedDuration::from_secs(seconds)).ok())
        .map_or(last, |earliest| earliest.max(last));
    let Some((at, missed)) = most_recent(&schedule, since, now) else { return };
    if missed > 100 {
        let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        decision.events.push((true, "TooManyMissedTimes", message.to_owned()));
    }
    let name = job_name(cron, at);
    if active.iter().any(|reference| reference["name"] == name) || last == at {
        return;
    }
    let policy = cron.str(&["spec", "concurrencyPolicy"]).unwrap_or("Allow");
    if policy == "Forbid" && !active.is_empty() {
        let message =
            "Not starting job because prior execution is running and concurrency policy is Forbid";
        decision.events.push((false, "JobAlreadyActive", message.to_owned()));
        return;
    }
    if policy == "Replace" {
        let running = jobs
            .iter()
            .filter(|(_, job)| active.iter().any(|reference| reference["uid"] == *job.uid));
        decision.replace = running.cloned().collect();
    }
    decision.start = Some(at);
}

/// The last scheduled time since `since`, and about how many there were.
fn most_recent(schedule: &Schedule, since: Timestamp, now: Timestamp) -> Option<(Timestamp, i64)> {
    let first = schedule.next(since).filter(|first| *first <= now)?;
    let Some(second) = schedule.next(first).filter(|second| *second <= now) else {
        return Some((first, 0));
    };
    let interval = (second.as_second() - first.as_second()).max(1);
    let missed = (now.as_second() - first.as_second()) / interval + 1;
    // Jump close to the end by the interval, then step one by one.
    let jump = SignedDuration::from_secs((missed - 2).max(0).saturating_mul(interval));
    let mut latest = first;
    let mut at = first.checked_add(jump).ok()?;
    while let Some(next) = schedule.next(at).filter(|next| *next <= now) {
        latest = next;
        at = next;
    }
    Some((latest, missed))
}

/// The name of the Job for a scheduled time: a name by time prevents a second start.
pub(super) fn job_name(cron: &Object, at: Timestamp) -> String {
    format!("{}-{}", cron.name(), at.as_second().div_euclid(60))
}

/// The reference to a running Job in `status.active`.
pub(super) fn reference(job: &Object) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": job.name(), "namespace": job.namespace(),
        "resourceVersion": job.resource_version(), "uid": job.uid(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `CronJob` at ten past each hour, created at midnight.
    fn cron(spec: &Value, status: &Value) -> Object {
        let mut cron_job = Object::from_value(json!({
            "metadata": {
                "name": "c", "namespace": "n", "uid": "c",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"schedule": "10 * * * *"}, "status": status,
        }))
        .unwrap();
        for (key, value) in spec.as_object().unwrap() {
            cron_job.set(&["spec", key], value.clone());
        }
        cron_job
    }

    fn job(name: &str, end: Option<JobEnd>) -> Named {
        let started = format!("2026-01-01T0{}:00:00Z", name.len());
        let view = JobView {
            uid: name.into(),
            end,
            started: started.parse().ok(),
            completed: started.parse().ok(),
            ..JobView::default()
        };
        (NamespacedName::new("n", name), Arc::new(view))
    }

    fn run(cron: &Object, jobs: &[Named], now: &str) -> Decision {
        decide(cron, jobs, now.parse().unwrap())
    }

    fn reasons(decision: &Decision) -> Vec<&str> {
        decision.events.iter().map(|(_, reason, _)| *reason).collect()
    }

    #[test]
    fn a_job_starts_at_its_time_and_once() {
        let never = json!({});
        let ran = json!({"lastScheduleTime": "2026-01-01T00:10:00Z"});
        for (spec, status, now, start) in [
            (json!({}), &never, "2026-01-01T00:09:59Z", None),
            (json!({}), &never, "2026-01-01T00:10:00Z", Some("2026-01-01T00:10:00Z")),
            (json!({}), &ran, "2026-01-01T00:59:00Z", None),
            (json!({}), &ran, "2026-01-01T01:10:01Z", Some("2026-01-01T01:10:00Z")),
            // Of many missed times, only the last one starts a Job.
            (json!({}), &ran, "2026-01-03T05:15:00Z", Some("2026-01-03T05:10:00Z")),
            (json!({"suspend": true}), &ran, "2026-01-01T01:10:01Z", None),
            (json!({"startingDeadlineSeconds": 60}), &ran, "2026-01-01T01:12:00Z", None),
            (
                json!({"startingDeadlineSeconds": 200}),
                &ran,
                "2026-01-01T01:12:00Z",
                Some("2026-01-01T01:10:00Z"),
            ),
            (
                json!({"timeZone": "Asia/Kathmandu"}),
                &ran,
                "2026-01-01T00:26:00Z",
                Some("2026-01-01T00:25:00Z"),
            ),
        ] {
            let decision = run(&cron(&spec, status), &[], now);
            let started = decision.start.map(|start| start.to_string());
            assert_eq!(started.as_deref(), start, "{spec} {status} {now}");
        }
        let cron_job = cron(&json!({}), &never);
        let next = run(&cron_job, &[], "2026-01-01T00:09:59Z").next.unwrap();
        assert_eq!(job_name(&cron_job, next), "c-29453770");
    }

    #[test]
    fn the_concurrency_policy_allows_forbids_or_replaces_a_running_job() {
        let status = json!({
            "lastScheduleTime": "2026-01-01T00:10:00Z", "active": [{"uid": "a", "name": "a"}],
        });
        for (policy, starts, replaced) in
            [("Allow", true, 0), ("Forbid", false, 0), ("Replace", true, 1)]
        {
            let cron_job = cron(&json!({"concurrencyPolicy": policy}), &status);
            let decision = run(&cron_job, &[job("a", None)], "2026-01-01T01:10:00Z");
            assert_eq!(decision.start.is_some(), starts, "{policy}");
            assert_eq!(decision.replace.len(), replaced, "{policy}");
            assert_eq!(decision.status.contains_key("active"), replaced == 0);
            assert_eq!(reasons(&decision).contains(&"JobAlreadyActive"), !starts);
        }
    }

    #[test]
    fn finished_jobs_leave_the_active_list_and_the_history_limits() {
        let status = json!({"active": [{"uid": "a", "name": "a"}, {"uid": "x", "name": "x"}]});
        let cron_job = cron(&json!({"successfulJobsHistoryLimit": 1}), &status);
        let jobs = [
            job("a", Some(JobEnd::Complete)),
            job("aa", Some(JobEnd::Complete)),
            job("aaa", Some(JobEnd::Failed)),
        ];
        let decision = run(&cron_job, &jobs, "2026-01-01T00:05:00Z");
        assert_eq!(reasons(&decision), ["SawCompletedJob", "MissingJob"]);
        assert_eq!(decision.status.get("active"), None);
        assert_eq!(decision.status["lastSuccessfulTime"], "2026-01-01T02:00:00Z");
        let forgotten: Vec<&str> = decision.prune.iter().map(|(key, _)| &*key.name).collect();
        assert_eq!(forgotten, ["a"]);
    }
}
