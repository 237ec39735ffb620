//! Jobs: pods that run until enough of them have succeeded.
//!
//! Completions are counted from the pods there are and never go back, so deleting a finished pod
//! does not undo it. Indexed completion, pod failure policies and success policies are not known.

use crate::Started;
use crate::common::{Context, put_count};
use crate::template;
use crate::views::{Phase, Views};
use crate::workload::{Named, Pods, Workload, WorkloadController, again};
use jiff::Timestamp;
use mainstay_client::{Action, DeleteOptions, Error, Propagation};
use mainstay_object::{Object, known};
use serde_json::{Map, Value, json};

/// Starts the controller of Jobs.
pub(crate) fn start(context: &Context, views: &Views, started: &mut Started) {
    let jobs = Jobs { context: context.clone(), pods: Pods::new(context, views) };
    WorkloadController::new("jobs", known::JOB, &views.jobs)
        .owns(&views.pods)
        .start(jobs, context, started);
}

struct Jobs {
    context: Context,
    pods: Pods,
}

impl Workload for Jobs {
    async fn settle(&self, job: Object) -> Result<Action, Error> {
        if job.is_terminating() {
            return Ok(Action::Done);
        }
        let pods = self.pods.of(&job).await?;
        let now = self.context.clock.now();
        let decision = decide(&job, &pods, now);
        if decision.expired {
            let options = DeleteOptions::uid(job.uid()).propagation(Propagation::Background);
            let (namespace, name) = (Some(job.namespace()), job.name());
            let cluster = &self.context.cluster;
            cluster.ensure_deleted(&known::JOB, namespace, name, &options).await?;
            return Ok(Action::Done);
        }
        self.pods.delete(&job, &decision.delete).await?;
        let template = job.get(&["spec", "template"]).cloned().unwrap_or_default();
        let wanted =
            (0..decision.create).map(|_| template::generated_pod(&job, &template)).collect();
        self.pods.create(&job, wanted).await?;
        if let Some((finished, message)) = decision.news {
            if finished == "Completed" {
                self.context.normal(&job, finished, message.to_owned());
            } else {
                self.context.warning(&job, finished, message.to_owned());
            }
        }
        self.context.write_status(&known::JOB, &job, decision.status).await?;
        Ok(again(decision.again))
    }
}

#[derive(Debug, Default)]
struct Decision {
    create: usize,
    delete: Vec<Named>,
    status: Value,
    /// Reason and message of the event that says that the job has ended.
    news: Option<(&'static str, &'static str)>,
    /// The job has ended and its time to live is over.
    expired: bool,
    again: Option<u64>,
}

fn ended_at(job: &Object) -> Option<Timestamp> {
    let condition = job.array(&["status", "conditions"]).iter().find(|condition| {
        (condition["type"] == "Complete" || condition["type"] == "Failed")
            && condition["status"] == "True"
    })?;
    condition["lastTransitionTime"].as_str()?.parse().ok()
}

fn decide(job: &Object, pods: &[Named], now: Timestamp) -> Decision {
    let old = job.get(&["status"]).cloned().unwrap_or_else(|| json!({}));
    if let Some(ended) = ended_at(job) {
        return after_the_end(job, ended, now, old);
    }
    let number = |path: &[&str]| job.i64(path);
    let parallelism = number(&["spec", "parallelism"]).unwrap_or(1).max(0);
    let completions = number(&["spec", "completions"]);
    let suspended = job.bool(&["spec", "suspend"]) == Some(true);
    let limit = number(&["spec", "backoffLimit"]).unwrap_or(6);
    let count = |phase: Phase| {
        let ended = pods.iter().filter(|(_, pod)| pod.phase == phase).count();
        i64::try_from(ended).unwrap_or(i64::MAX)
    };
    let before = |field: &str| number(&["status", field]).unwrap_or_default();
    let succeeded = count(Phase::Succeeded).max(before("succeeded"));
    let failed = count(Phase::Failed).max(before("failed"));
    let active: Vec<&Named> = pods.iter().filter(|(_, pod)| pod.is_active()).collect();
    let running = i64::try_from(active.len()).unwrap_or(i64::MAX);
    let ready = active.iter().filter(|(_, pod)| pod.is_ready()).count();

    let now_text = mainstay_clock::rfc3339(now);
    let mut status: Map<String, Value> = old.as_object().cloned().unwrap_or_default();
    put_count(&mut status, "succeeded", succeeded);
    put_count(&mut status, "failed", failed);
    // Kubernetes wants to see that no completion is still uncounted.
    status.entry("uncountedTerminatedPods").or_insert_with(|| json!({}));

    let mut decision = Decision::default();
    let started: Option<Timestamp> =
        job.str(&["status", "startTime"]).and_then(|text| text.parse().ok());
    let deadline = number(&["spec", "activeDeadlineSeconds"]);
    let mut late = false;
    if suspended {
        status.remove("startTime");
    } else {
        status.entry("startTime").or_insert_with(|| now_text.clone().into());
        if let Some(deadline) = deadline {
            let ran = started.map_or(0, |started| now.as_second() - started.as_second());
            late = ran >= deadline;
            decision.again = u64::try_from(deadline - ran).ok().filter(|left| *left > 0);
        }
    }
    let enough = match completions {
        Some(completions) => succeeded >= completions,
        // Without a number, one success means that the work is done; the rest may finish.
        None => succeeded > 0 && running == 0,
    };
    if enough || failed > limit || late {
        end(&mut decision, &mut status, &active, enough, late, &now_text);
    } else {
        let left = match completions {
            Some(completions) => (completions - succeeded).min(parallelism),
            None if succeeded > 0 => running.min(parallelism),
            None => parallelism,
        };
        let wanted = if suspended { 0 } else { left };
        decision.create = usize::try_from(wanted - running).unwrap_or(0);
        let surplus = usize::try_from(running - wanted).unwrap_or(0);
        decision.delete = active.iter().rev().take(surplus).map(|pod| (*pod).clone()).collect();
        put_count(
            &mut status,
            "active",
            running.min(wanted) + i64::try_from(decision.create).unwrap_or(0),
        );
        put_count(&mut status, "ready", i64::try_from(ready).unwrap_or(0));
        suspension(&mut status, suspended, &now_text);
    }
    decision.status = Value::Object(status);
    decision
}

fn after_the_end(job: &Object, ended: Timestamp, now: Timestamp, status: Value) -> Decision {
    let mut decision = Decision { status, ..Decision::default() };
    if let Some(seconds) = job.i64(&["spec", "ttlSecondsAfterFinished"]) {
        let left = seconds - (now.as_second() - ended.as_second());
        decision.expired = left <= 0;
        decision.again = u64::try_from(left).ok().filter(|left| *left > 0);
    }
    decision
}

fn end(
    decision: &mut Decision,
    status: &mut Map<String, Value>,
    active: &[&Named],
    enough: bool,
    late: bool,
    now: &str,
) {
    decision.again = None;
    decision.delete = active.iter().map(|pod| (*pod).clone()).collect();
    for field in ["active", "ready"] {
        status.remove(field);
    }
    let (first, last, reason, message) = if enough {
        status.insert("completionTime".to_owned(), now.into());
        decision.news = Some(("Completed", "Job completed"));
        (
            "SuccessCriteriaMet",
            "Complete",
            "CompletionsReached",
            "Reached expected number of succeeded pods",
        )
    } else {
        let (reason, message) = if late {
            ("DeadlineExceeded", "Job was active longer than specified deadline")
        } else {
            ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        };
        decision.news = Some((reason, message));
        ("FailureTarget", "Failed", reason, message)
    };
    let mut conditions = conditions(status);
    for kind in [first, last] {
        conditions.push(json!({
            "type": kind, "status": "True", "reason": reason, "message": message,
            "lastProbeTime": now, "lastTransitionTime": now,
        }));
    }
    status.insert("conditions".to_owned(), Value::Array(conditions));
}

fn conditions(status: &Map<String, Value>) -> Vec<Value> {
    status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default()
}

fn suspension(status: &mut Map<String, Value>, suspended: bool, now: &str) {
    let mut conditions = conditions(status);
    let at = conditions.iter().position(|condition| condition["type"] == "Suspended");
    let (truth, reason, message) = if suspended {
        ("True", "JobSuspended", "Job suspended")
    } else {
        ("False", "JobResumed", "Job resumed")
    };
    match at {
        None if !suspended => return,
        Some(at) if conditions[at]["status"] == truth => return,
        Some(at) => {
            conditions.remove(at);
        }
        None => {}
    }
    conditions.push(json!({
        "type": "Suspended", "status": truth, "reason": reason, "message": message,
        "lastProbeTime": now, "lastTransitionTime": now,
    }));
    status.insert("conditions".to_owned(), Value::Array(conditions));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::PodView;
    use mainstay_object::NamespacedName;
    use std::sync::Arc;

    const NOW: &str = "2026-01-01T00:01:00Z";

    fn job(spec: &Value) -> Object {
        Object::from_value(json!({
            "metadata": {"name": "j", "namespace": "n", "uid": "j"},
            "spec": spec,
            "status": {"startTime": "2026-01-01T00:00:00Z"},
        }))
        .unwrap()
    }

    fn pods(phases: &[&str]) -> Vec<Named> {
        phases
            .iter()
            .enumerate()
            .map(|(at, phase)| {
                let name = format!("j-{at}");
                let pod = Object::from_value(json!({
                    "metadata": {"name": name, "namespace": "n", "uid": name},
                    "status": {"phase": phase},
                }))
                .unwrap();
                (NamespacedName::new("n", name), Arc::new(PodView::of(&pod)))
            })
            .collect()
    }

    fn decide_on(job: &Object, phases: &[&str]) -> Decision {
        decide(job, &pods(phases), NOW.parse().unwrap())
    }

    fn ending(decision: &Decision) -> Vec<&str> {
        let conditions = decision.status["conditions"].as_array();
        conditions.into_iter().flatten().map(|it| it["type"].as_str().unwrap()).collect()
    }

    #[test]
    fn as_many_pods_run_as_are_still_needed() {
        for (spec, phases, create, delete) in [
            (json!({}), vec![], 1, 0),
            (json!({"parallelism": 3, "completions": 5}), vec!["Running"], 2, 0),
            (json!({"parallelism": 3, "completions": 5}), vec!["Succeeded"; 4], 1, 0),
            (json!({"parallelism": 1, "completions": 5}), vec!["Running"; 3], 0, 2),
            (json!({"completions": 1}), vec!["Failed"], 1, 0),
            (json!({"parallelism": 2, "completions": 2, "suspend": true}), vec!["Running"], 0, 1),
            (json!({"parallelism": 2}), vec!["Succeeded", "Running"], 0, 0),
        ] {
            let decision = decide_on(&job(&spec), &phases);
            assert_eq!(
                (decision.create, decision.delete.len()),
                (create, delete),
                "{spec} {phases:?}"
            );
            assert!(!ending(&decision).contains(&"Complete"), "{spec} {phases:?}");
        }
    }

    #[test]
    fn a_job_ends_with_two_conditions_and_stays_ended() {
        for (spec, phases, kinds, reason) in [
            (
                json!({"completions": 2}),
                vec!["Succeeded", "Succeeded"],
                ["SuccessCriteriaMet", "Complete"],
                "CompletionsReached",
            ),
            (
                json!({"completions": 1, "backoffLimit": 1}),
                vec!["Failed", "Failed", "Running"],
                ["FailureTarget", "Failed"],
                "BackoffLimitExceeded",
            ),
            (
                json!({"completions": 1, "activeDeadlineSeconds": 60}),
                vec!["Running"],
                ["FailureTarget", "Failed"],
                "DeadlineExceeded",
            ),
        ] {
            let mut it = job(&spec);
            let decision = decide_on(&it, &phases);
            assert_eq!(ending(&decision), kinds);
            assert_eq!(decision.status["conditions"][0]["reason"], reason);
            assert_eq!(
                decision.status["completionTime"].is_string(),
                reason == "CompletionsReached"
            );
            it.set(&["status"], decision.status.clone());
            let again = decide_on(&it, &[]);
            assert_eq!(again.status, decision.status);
            assert_eq!(again.create, 0);
        }
    }

    #[test]
    fn completions_are_not_undone_by_deleting_a_pod() {
        let mut it = job(&json!({"completions": 2}));
        it.set(&["status"], decide_on(&it, &["Succeeded"]).status);
        let decision = decide_on(&it, &[]);
        assert_eq!(decision.status["succeeded"], 1);
        assert_eq!(decision.create, 1);
    }

    #[test]
    fn an_ended_job_is_deleted_when_its_time_is_over() {
        let mut it = job(&json!({"completions": 1, "ttlSecondsAfterFinished": 10}));
        it.set(&["status"], decide_on(&it, &["Succeeded"]).status);
        let decision = decide_on(&it, &["Succeeded"]);
        assert_eq!((decision.expired, decision.again), (false, Some(10)));
        let later = decide(&it, &[], "2026-01-01T00:01:10Z".parse().unwrap());
        assert!(later.expired);
    }
}
