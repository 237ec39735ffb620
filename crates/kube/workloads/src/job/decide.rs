//! Job decisions: which pods to create, delete and count, and the new status.

use super::finish::Finish;
use super::indexes::{self, Indexes};
use super::policy::{self, PodFailureOutcome};
use crate::common::put_count;
use crate::views::{Phase, PodView};
use crate::workload::Named;
use jiff::Timestamp;
use mainstay_object::Object;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The backoff after failed pods in seconds, doubled with each failure: the first delay, and the
/// longest.
const BACKOFF: (i64, i64) = (10, 600);
/// The most pods that one reconcile of a Job creates or deletes.
const BURST: usize = 500;

/// The state that [`decide`] reads.
pub(super) struct Observed<'a> {
    pub(super) job: &'a Object,
    pub(super) pods: &'a [Named],
    /// Pods that failed since the last success.
    pub(super) failures: u32,
    pub(super) now: Timestamp,
}

/// The actions of one reconcile, in this order.
#[derive(Debug, Default)]
pub(super) struct Decision {
    /// The Job has ended and its `ttlSecondsAfterFinished` is over: nothing else is decided.
    pub(super) expired: bool,
    /// Surplus pods: they are deleted without being counted.
    pub(super) discard: Vec<Named>,
    /// Pods that are deleted because the Job ends.
    pub(super) delete: Vec<Named>,
    /// New pods: each with its index and the earlier failures of that index, if the Job has
    /// indexes.
    pub(super) create: Vec<Option<(i64, Option<i64>)>>,
    pub(super) status: Value,
    /// Reasons and messages of events.
    pub(super) events: Vec<(String, String)>,
    /// Pods that `uncountedTerminatedPods` names, or that need not be counted: their finalizer is
    /// removed.
    pub(super) release: Vec<Named>,
    pub(super) requeue_after: Option<u64>,
}

impl Decision {
    fn requeue_in(&mut self, seconds: i64) {
        if let Ok(seconds @ 1..) = u64::try_from(seconds) {
            self.requeue_after = Some(
                self.requeue_after.map_or(seconds, |requeue_after| requeue_after.min(seconds)),
            );
        }
    }
}

pub(super) fn condition<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions.iter().find(|condition| condition["type"] == kind)
}

fn ended_at(job: &Object) -> Option<Timestamp> {
    let ended = job.array(&["status", "conditions"]).iter().find(|condition| {
        (condition["type"] == "Complete" || condition["type"] == "Failed")
            && condition["status"] == "True"
    })?;
    ended["lastTransitionTime"].as_str()?.parse().ok()
}

/// Whether a Job is complete or has failed.
pub(super) fn is_finished(job: &Object) -> bool {
    ended_at(job).is_some()
}

/// The pods of a Job, sorted by state.
pub(super) struct Census<'a> {
    job: &'a Object,
    now: Timestamp,
    pub(super) completions: Option<i64>,
    indexed: bool,
    per_index: Option<i64>,
    suspended: bool,
    /// A terminating pod is replaced and counted only once it has failed.
    waits_for_failure: bool,
    tracked: Vec<&'a Named>,
    active: Vec<&'a Named>,
    terminating: Vec<&'a Named>,
    /// The uids in `status.uncountedTerminatedPods`.
    uncounted: [Vec<String>; 2],
    succeeded: i64,
    failed: i64,
    succeeded_indexes: Indexes,
    failed_indexes: Indexes,
    /// The pod that failed last, for each index that waits for its next pod.
    last_failed: FxHashMap<i64, &'a Named>,
}

const SUCCEEDED: usize = 0;
const FAILED: usize = 1;

impl<'a> Census<'a> {
    fn new(observed: &Observed<'a>) -> Self {
        let (job, pods) = (observed.job, observed.pods);
        let number = |path: &[&str]| job.i64(path);
        let tracked: Vec<&Named> = pods.iter().filter(|(_, pod)| pod.tracked).collect();
        let mut census = Self {
            job,
            now: observed.now,
            completions: number(&["spec", "completions"]),
            indexed: job.str(&["spec", "completionMode"]) == Some("Indexed"),
            per_index: number(&["spec", "backoffLimitPerIndex"]),
            suspended: job.bool(&["spec", "suspend"]) == Some(true),
            waits_for_failure: job.str(&["spec", "podReplacementPolicy"]) == Some("Failed"),
            active: pods.iter().filter(|(_, pod)| pod.is_active()).collect(),
            terminating: pods
                .iter()
                .filter(|(_, pod)| pod.terminating && !pod.is_finished())
                .collect(),
            uncounted: [Vec::new(), Vec::new()],
            succeeded: number(&["status", "succeeded"]).unwrap_or_default(),
            failed: number(&["status", "failed"]).unwrap_or_default(),
            succeeded_indexes: Indexes::new(),
            failed_indexes: Indexes::new(),
            last_failed: FxHashMap::default(),
            tracked,
        };
        census.count();
        census
    }

    /// Whether a pod counts as failed. A pod that is deleted before its end does not.
    fn is_failed(&self, pod: &PodView) -> bool {
        pod.phase == Phase::Failed
            || (!self.waits_for_failure && pod.terminating && pod.phase != Phase::Succeeded)
    }

    fn index(&self, pod: &PodView) -> Option<i64> {
        pod.index.filter(|index| self.completions.is_none_or(|end| *index < end))
    }

    /// Counts uncounted pods that have lost their finalizer, and adds pods that have ended since.
    fn count(&mut self) {
        let is_tracked = |uid: &str| self.tracked.iter().any(|(_, pod)| *pod.uid == *uid);
        for (at, field) in ["succeeded", "failed"].into_iter().enumerate() {
            let uncounted_uids = self.job.array(&["status", "uncountedTerminatedPods", field]);
            let (still_uncounted, counted): (Vec<String>, Vec<String>) = uncounted_uids
                .iter()
                .filter_map(Value::as_str)
                .map(ToOwned::to_owned)
                .partition(|uid| is_tracked(uid));
            self.uncounted[at] = still_uncounted;
            let counted = i64::try_from(counted.len()).unwrap_or(i64::MAX);
            if at == FAILED {
                self.failed += counted;
            } else if !self.indexed {
                self.succeeded += counted;
            }
        }
        if self.indexed {
            let end = self.completions.unwrap_or_default();
            let indexes_text = self.job.str(&["status", "completedIndexes"]).unwrap_or_default();
            self.succeeded_indexes = indexes::parse(indexes_text, end);
            let ended = self.tracked.iter().filter(|(_, pod)| pod.phase == Phase::Succeeded);
            let ended: Vec<i64> = ended.filter_map(|(_, pod)| self.index(pod)).collect();
            self.succeeded_indexes.extend(ended);
            self.succeeded = i64::try_from(self.succeeded_indexes.len()).unwrap_or(i64::MAX);
        }
        if let Some(limit) = self.per_index {
            self.count_failed_indexes(limit);
        }
    }

    fn count_failed_indexes(&mut self, limit: i64) {
        let end = self.completions.unwrap_or_default();
        let indexes_text = self.job.str(&["status", "failedIndexes"]).unwrap_or_default();
        self.failed_indexes = indexes::parse(indexes_text, end);
        for pod in &self.tracked {
            let Some(index) = self.index(&pod.1) else { continue };
            if self.is_failed(&pod.1) && !self.succeeded_indexes.contains(&index) {
                let verdict = policy::apply_failure_policy(self.job, pod);
                let used = pod.1.index_failures >= limit && verdict != PodFailureOutcome::Ignore;
                if used || verdict == PodFailureOutcome::FailIndex {
                    self.failed_indexes.insert(index);
                }
            }
        }
        let busy: Indexes = self.active.iter().filter_map(|(_, pod)| pod.index).collect();
        let mut last: FxHashMap<i64, &'a Named> = FxHashMap::default();
        for pod in &self.tracked {
            let Some(index) = self.index(&pod.1).filter(|_| self.is_failed(&pod.1)) else {
                continue;
            };
            let settled = self.succeeded_indexes.contains(&index)
                || self.failed_indexes.contains(&index)
                || busy.contains(&index);
            let newer = last.get(&index).is_none_or(|(_, latest)| {
                (latest.index_failures, latest.ended) <= (pod.1.index_failures, pod.1.ended)
            });
            if !settled && newer {
                last.insert(index, pod);
            }
        }
        self.last_failed = last;
    }

    /// Failed pods that are not counted yet but will be.
    fn new_failures(&self) -> i64 {
        let new = self.tracked.iter().filter(|pod| {
            self.is_failed(&pod.1)
                && !self.uncounted[FAILED].iter().any(|uid| **uid == *pod.1.uid)
                && policy::apply_failure_policy(self.job, pod) != PodFailureOutcome::Ignore
        });
        i64::try_from(new.count() + self.uncounted[FAILED].len()).unwrap_or(i64::MAX)
    }

    /// Pods that succeeded, counted or not.
    fn all_succeeded(&self) -> i64 {
        if self.indexed {
            return self.succeeded;
        }
        let new = self.tracked.iter().filter(|(_, pod)| {
            pod.phase == Phase::Succeeded
                && !self.uncounted[SUCCEEDED].iter().any(|uid| **uid == *pod.uid)
        });
        let new = new.count() + self.uncounted[SUCCEEDED].len();
        self.succeeded + i64::try_from(new).unwrap_or(i64::MAX)
    }

    /// The reason why the Job ends, if its completions are not the reason.
    fn finish(&self, started: Option<Timestamp>) -> Option<Finish> {
        if let Some(decided) = Finish::decided(self.job) {
            return Some(decided);
        }
        let failed = self.tracked.iter().filter(|(_, pod)| pod.phase == Phase::Failed);
        for pod in failed {
            if let PodFailureOutcome::FailJob(message) = policy::apply_failure_policy(self.job, pod)
            {
                return Some(Finish::failure("PodFailurePolicy", message));
            }
        }
        let limit = self.job.i64(&["spec", "backoffLimit"]).unwrap_or(6);
        if self.failed + self.new_failures() > limit || self.restarted_too_often(limit) {
            let message = "Job has reached the specified backoff limit";
            return Some(Finish::failure("BackoffLimitExceeded", message));
        }
        let deadline = self.job.i64(&["spec", "activeDeadlineSeconds"]);
        if let (Some(deadline), Some(started), false) = (deadline, started, self.suspended)
            && self.now.as_second() - started.as_second() >= deadline
        {
            let message = "Job was active longer than specified deadline";
            return Some(Finish::failure("DeadlineExceeded", message));
        }
        if self.indexed { self.finish_of_indexes() } else { None }
    }

    fn finish_of_indexes(&self) -> Option<Finish> {
        let all = self.completions.unwrap_or_default();
        let failed = i64::try_from(self.failed_indexes.len()).unwrap_or(i64::MAX);
        if self.per_index.is_some() {
            let most = self.job.i64(&["spec", "maxFailedIndexes"]);
            if most.is_some_and(|most| failed > most) {
                let message = "Job has exceeded the specified maximal number of failed indexes";
                return Some(Finish::failure("MaxFailedIndexesExceeded", message));
            }
            if failed > 0 && failed + self.succeeded >= all {
                return Some(Finish::failure("FailedIndexes", "Job has failed indexes"));
            }
        }
        let message = policy::meets_success_policy(self.job, &self.succeeded_indexes, all)?;
        Some(Finish::success("SuccessPolicy", message))
    }

    fn restarted_too_often(&self, limit: i64) -> bool {
        if self.job.str(&["spec", "template", "spec", "restartPolicy"]) != Some("OnFailure") {
            return false;
        }
        let restarts: i64 = self.active.iter().map(|(_, pod)| pod.all_restarts).sum();
        if limit == 0 { restarts > 0 } else { restarts >= limit }
    }

    /// Creates or discards pods and returns how many are active afterwards.
    fn manage(&self, observed: &Observed<'_>, decision: &mut Decision) -> i64 {
        let active = i64::try_from(self.active.len()).unwrap_or(i64::MAX);
        if self.suspended {
            if mainstay_fault::is_on("suspended-jobs-keep-their-pods") {
                return active;
            }
            decision.discard = self.active.iter().map(|pod| (*pod).clone()).collect();
            return 0;
        }
        let parallelism = self.job.i64(&["spec", "parallelism"]).unwrap_or(1).max(0);
        let succeeded = self.all_succeeded();
        let wanted = match self.completions {
            Some(completions) => (completions - succeeded).clamp(0, parallelism),
            None if succeeded > 0 => active,
            None => parallelism,
        };
        self.discard(usize::try_from(active - wanted).unwrap_or(0), decision);
        if !decision.discard.is_empty() {
            decision.discard.truncate(BURST);
            return active - i64::try_from(decision.discard.len()).unwrap_or(0);
        }
        let terminating = if self.waits_for_failure { self.terminating.len() } else { 0 };
        let missing = wanted - active - i64::try_from(terminating).unwrap_or(i64::MAX);
        let missing = usize::try_from(missing).unwrap_or(0).min(BURST);
        if missing == 0 {
            return active;
        }
        if self.per_index.is_none() {
            let failed = observed.pods.iter().filter(|(_, pod)| pod.phase == Phase::Failed);
            let last = failed.filter_map(|(_, pod)| pod.ended).max();
            let backoff = self.backoff(observed.failures, last);
            if backoff > 0 {
                decision.requeue_in(backoff);
                return active;
            }
        }
        if self.indexed {
            self.create_indexes(missing, decision);
        } else {
            decision.create = vec![None; missing];
        }
        active + i64::try_from(decision.create.len()).unwrap_or(0)
    }

    /// The seconds that the next pod has to wait after so many failures.
    fn backoff(&self, failures: u32, last: Option<Timestamp>) -> i64 {
        let Some(last) = last.filter(|_| failures > 0) else { return 0 };
        let pause = BACKOFF.0.saturating_mul(1 << (failures - 1).min(16)).min(BACKOFF.1);
        pause - (self.now.as_second() - last.as_second())
    }

    /// Discards pods whose index is invalid or has another pod, then more until `least` are
    /// discarded.
    fn discard(&self, least: usize, decision: &mut Decision) {
        let mut order = self.active.clone();
        // The least valuable pods first, as ReplicaSets order them.
        order.sort_by_key(|(key, pod)| {
            let young = pod.created.map_or(0, |created| -created.as_second());
            (pod.node.is_some(), pod.phase, pod.is_ready(), young, key.clone())
        });
        if self.indexed {
            let mut seen_indexes = Indexes::new();
            for pod in order.iter().rev() {
                let fresh = self.index(&pod.1).is_some_and(|index| seen_indexes.insert(index));
                if !fresh {
                    decision.discard.push((*pod).clone());
                }
            }
        }
        for pod in order {
            if decision.discard.len() >= least {
                break;
            }
            if !decision.discard.iter().any(|(_, discard)| discard.uid == pod.1.uid) {
                decision.discard.push(pod.clone());
            }
        }
    }

    fn create_indexes(&self, missing: usize, decision: &mut Decision) {
        let mut active_indexes: Indexes =
            self.active.iter().filter_map(|(_, pod)| pod.index).collect();
        if self.waits_for_failure {
            active_indexes.extend(self.terminating.iter().filter_map(|(_, pod)| pod.index));
        }
        let open = (0..self.completions.unwrap_or_default()).filter(|index| {
            !active_indexes.contains(index)
                && !self.succeeded_indexes.contains(index)
                && !self.failed_indexes.contains(index)
        });
        for index in open.take(missing) {
            let Some(_) = self.per_index else {
                decision.create.push(Some((index, None)));
                continue;
            };
            let Some(last) = self.last_failed.get(&index) else {
                decision.create.push(Some((index, Some(0))));
                continue;
            };
            let failures = last.1.index_failures;
            let so_far = u32::try_from(failures + 1).unwrap_or(u32::MAX);
            let backoff = self.backoff(so_far, last.1.ended);
            if backoff > 0 {
                decision.requeue_in(backoff);
                continue;
            }
            let counts = policy::apply_failure_policy(self.job, last) != PodFailureOutcome::Ignore;
            decision.create.push(Some((index, Some(failures + i64::from(counts)))));
        }
        if !decision.create.is_empty() {
            decision.requeue_after = None;
        }
    }

    /// Adds pods that have ended to `uncountedTerminatedPods` and releases them.
    fn record_ended(&mut self, finish: Option<&Finish>, decision: &mut Decision) {
        let is_terminating = self.job.is_terminating();
        for pod in self.tracked.clone() {
            let failed = self.is_failed(&pod.1);
            let succeeded = pod.1.phase == Phase::Succeeded;
            let delayed = || {
                self.last_failed.values().any(|(_, last)| last.uid == pod.1.uid)
                    // The annotation of its successor has the number of failures.
                    && !decision.create.iter().flatten().any(|(index, _)| Some(*index) == pod.1.index)
            };
            let free = is_terminating || finish.is_some() || succeeded || (failed && !delayed());
            if !free {
                continue;
            }
            decision.release.push(pod.clone());
            let uid = &pod.1.uid;
            let is_uncounted =
                |at: usize| self.uncounted[at].iter().any(|uncounted| **uncounted == **uid);
            if succeeded && !is_uncounted(FAILED) {
                if !self.indexed && !is_uncounted(SUCCEEDED) {
                    self.uncounted[SUCCEEDED].push(uid.to_string());
                }
            } else if (failed || finish.is_some_and(|finish| !finish.succeeded))
                && !is_uncounted(FAILED)
                && (!self.indexed || self.index(&pod.1).is_some())
                && policy::apply_failure_policy(self.job, pod) != PodFailureOutcome::Ignore
            {
                self.uncounted[FAILED].push(uid.to_string());
            }
        }
    }
}

/// Decides from the Job, its pods and the time.
pub(super) fn decide(observed: &Observed<'_>) -> Decision {
    let job = observed.job;
    if let Some(ended) = ended_at(job) {
        return decide_finished(observed, ended);
    }
    let mut census = Census::new(observed);
    let now = mainstay_clock::rfc3339(observed.now);
    let mut decision = Decision::default();
    let mut status: Map<String, Value> =
        job.get(&["status"]).and_then(Value::as_object).cloned().unwrap_or_default();
    if !census.suspended {
        status.entry("startTime").or_insert_with(|| now.clone().into());
    }
    let started: Option<Timestamp> =
        job.str(&["status", "startTime"]).and_then(|text| text.parse().ok());
    let started = started.or((!census.suspended).then_some(observed.now));
    let mut finish = census.finish(started);
    let active = if finish.is_some() {
        decision.delete = census.active.iter().map(|pod| (*pod).clone()).collect();
        0
    } else if job.is_terminating() {
        i64::try_from(census.active.len()).unwrap_or(i64::MAX)
    } else {
        let active = census.manage(observed, &mut decision);
        let succeeded = census.all_succeeded();
        let enough = match census.completions {
            Some(completions) => succeeded >= completions,
            None => succeeded > 0,
        };
        if enough && active == 0 && decision.create.is_empty() {
            let message = "Reached expected number of succeeded pods";
            finish = Some(Finish::success("CompletionsReached", message));
        } else {
            suspension(&mut status, census.suspended, &now, &mut decision);
        }
        active
    };
    if let (Some(deadline), Some(started), None) =
        (job.i64(&["spec", "activeDeadlineSeconds"]), started, &finish)
        && !census.suspended
    {
        decision.requeue_in(deadline - (observed.now.as_second() - started.as_second()));
    }
    census.record_ended(finish.as_ref(), &mut decision);
    let terminating = census.terminating.len() + decision.delete.len() + decision.discard.len();
    write_counts(&census, &decision, &mut status, active, terminating);
    if let Some(finish) = &finish {
        let is_last = terminating == 0
            && census.uncounted.iter().all(Vec::is_empty)
            && decision.release.is_empty();
        finish.write(job, &mut status, is_last, &now, &mut decision);
    }
    decision.status = Value::Object(status);
    decision
}

fn write_counts(
    census: &Census<'_>,
    decision: &Decision,
    status: &mut Map<String, Value>,
    active: i64,
    terminating: usize,
) {
    let is_deleted = |uid: &Arc<str>| {
        decision.delete.iter().chain(&decision.discard).any(|(_, pod)| pod.uid == *uid)
    };
    let ready =
        census.active.iter().filter(|(_, pod)| pod.is_ready() && !is_deleted(&pod.uid)).count();
    put_count(status, "active", active);
    put_count(status, "succeeded", census.succeeded);
    put_count(status, "failed", census.failed);
    status.insert("ready".to_owned(), ready.into());
    status.insert("terminating".to_owned(), terminating.into());
    let mut uncounted = json!({});
    for (at, field) in ["succeeded", "failed"].into_iter().enumerate() {
        if !census.uncounted[at].is_empty() {
            uncounted[field] = json!(census.uncounted[at]);
        }
    }
    status.insert("uncountedTerminatedPods".to_owned(), uncounted);
    if census.indexed {
        let text = indexes::text(&census.succeeded_indexes);
        if text.is_empty() {
            status.remove("completedIndexes");
        } else {
            status.insert("completedIndexes".to_owned(), text.into());
        }
    }
    if census.per_index.is_some() {
        let text = indexes::text(&census.failed_indexes);
        status.insert("failedIndexes".to_owned(), text.into());
    }
}

fn decide_finished(observed: &Observed<'_>, ended: Timestamp) -> Decision {
    let job = observed.job;
    let status = job.get(&["status"]).cloned().unwrap_or_else(|| json!({}));
    let mut decision = Decision { status, ..Decision::default() };
    decision.release = observed.pods.iter().filter(|(_, pod)| pod.tracked).cloned().collect();
    if let Some(seconds) = job.i64(&["spec", "ttlSecondsAfterFinished"])
        && !job.is_terminating()
    {
        let remaining = seconds - (observed.now.as_second() - ended.as_second());
        decision.expired = remaining <= 0 && !mainstay_fault::is_on("jobs-stay-beyond-their-time");
        decision.requeue_in(remaining);
    }
    decision
}

fn suspension(
    status: &mut Map<String, Value>,
    suspended: bool,
    now: &str,
    decision: &mut Decision,
) {
    let mut conditions =
        status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let at = conditions.iter().position(|condition| condition["type"] == "Suspended");
    let (truth, reason, event, message) = if suspended {
        ("True", "JobSuspended", "Suspended", "Job suspended")
    } else {
        ("False", "JobResumed", "Resumed", "Job resumed")
    };
    match at {
        None if !suspended => return,
        Some(at) if conditions[at]["status"] == truth => return,
        _ => {}
    }
    let condition = json!({
        "type": "Suspended", "status": truth, "reason": reason, "message": message,
        "lastProbeTime": now, "lastTransitionTime": now,
    });
    match at {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
    if !suspended {
        // The deadline counts from here.
        status.insert("startTime".to_owned(), now.into());
    }
    status.insert("conditions".to_owned(), Value::Array(conditions));
    decision.events.push((event.to_owned(), message.to_owned()));
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
