//! The Job controller: runs pods until enough of them have succeeded.
//!
//! ```text
//! Pods have a finalizer ─► one ends ─► the status lists it as uncounted
//!                       ─► its finalizer is removed ─► the status counts it
//! ```
//!
//! So every end is counted exactly once, no matter which client deletes pods. Pods that no Job
//! waits for lose their finalizer, too.

mod decide;
mod finish;
mod indexes;
mod pod;
mod policy;

use crate::Started;
use crate::common::{Context, is_object_gone};
use crate::views::{JobView, PodView, Views};
use crate::workload::{Named, Pods, Workload, WorkloadController, requeue_after};
use decide::Observed;
use mainstay_client::{
    Action, Cache, Controller, DeleteOptions, Error, Patch, Propagation, Reconciler,
};
use mainstay_object::{NamespacedName, Object, builtin};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};
use std::sync::Arc;

/// The finalizer of pods that are not counted yet.
pub(crate) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// Annotation and label: the completion index of a pod.
pub(crate) const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Annotation: the failures of a pod's index before it.
pub(crate) const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";

/// Starts the controller of Jobs and the controller of orphaned pods.
pub(crate) fn start(context: &Context, views: &Views, started: &mut Started) {
    let context_of = context.with_component("job-controller");
    let jobs = Jobs {
        pods: Pods::new(&context_of, views),
        views: views.clone(),
        context: context_of,
        failures: Mutex::default(),
    };
    WorkloadController::new("jobs", builtin::JOB, &views.jobs)
        .owns(&views.pods)
        .start(jobs, context, started);

    let controller = Controller::new("job-orphans").reads(&views.pods).reads(&views.jobs);
    let queue = controller.queue();
    views.pods.subscribe(move |change| {
        if change.after.is_some_and(|pod| pod.tracked && (pod.terminating || pod.owner.is_none())) {
            queue.add(change.key.clone());
        }
    });
    let (queue, pods) = (controller.queue(), views.pods.clone());
    views.jobs.subscribe(move |change| {
        if let (Some(before), None) = (change.before, change.after) {
            for (key, pod) in pods.indexed(&before.uid) {
                if pod.tracked {
                    queue.add(key);
                }
            }
        }
    });
    let orphans =
        Orphans { context: context.clone(), pods: views.pods.clone(), jobs: views.jobs.clone() };
    started.controller(controller.start(orphans, context.stop.clone()));
}

/// The failures of a Job since its last success, each pod counted once.
#[derive(Debug, Default)]
struct Failures {
    count: u32,
    counted_uids: FxHashSet<Arc<str>>,
}

struct Jobs {
    context: Context,
    views: Views,
    pods: Pods,
    failures: Mutex<FxHashMap<Arc<str>, Failures>>,
}

impl Workload for Jobs {
    async fn reconcile(&self, job: Object) -> Result<Action, Error> {
        let manager = job.str(&["spec", "managedBy"]).unwrap_or("kubernetes.io/job-controller");
        if manager != "kubernetes.io/job-controller" {
            return Ok(Action::Done);
        }
        let pods = self.pods.all_of(&job).await?;
        let now = self.context.clock.now();
        let failures = self.count_failures(&job, &pods);
        let decision = decide::decide(&Observed { job: &job, pods: &pods, failures, now });
        if decision.expired {
            let options = DeleteOptions::uid(job.uid()).propagation(Propagation::Foreground);
            let (namespace, name) = (Some(job.namespace()), job.name());
            let cluster = &self.context.cluster;
            cluster.ensure_deleted(&builtin::JOB, namespace, name, &options).await?;
            return Ok(Action::Done);
        }
        // A pod that is discarded before it ends must not count.
        for (key, pod) in &decision.discard {
            release(&self.context, &self.views.pods, key, pod).await?;
        }
        self.pods.delete(&job, &decision.discard).await?;
        self.pods.delete(&job, &decision.delete).await?;
        let new_pods = decision.create.iter().map(|index| pod::pod(&job, *index)).collect();
        let outcome = self.pods.create(&job, new_pods).await;
        self.context.write_status(&builtin::JOB, &job, decision.status).await?;
        for (reason, message) in decision.events {
            if matches!(reason.as_str(), "Completed" | "Suspended" | "Resumed") {
                self.context.report_normal(&job, &reason, message);
            } else {
                self.context.report_warning(&job, &reason, message);
            }
        }
        // The finalizer goes after the status write, because the status has to name the pod first.
        for (key, pod) in &decision.release {
            release(&self.context, &self.views.pods, key, pod).await?;
        }
        outcome.map(|()| requeue_after(self.context.clock, decision.requeue_after))
    }
}

impl Jobs {
    /// The number of pods of a Job that failed since the last success.
    fn count_failures(&self, job: &Object, pods: &[Named]) -> u32 {
        let mut all = self.failures.lock();
        if decide::is_finished(job) {
            all.remove(job.uid());
            return 0;
        }
        let ended = pods.iter().filter(|(_, pod)| pod.tracked && pod.is_finished());
        for (_, pod) in ended {
            let job_failures = all.entry(job.uid().into()).or_default();
            if job_failures.counted_uids.insert(Arc::clone(&pod.uid)) {
                let succeeded = pod.phase == crate::views::Phase::Succeeded;
                job_failures.count =
                    if succeeded { 0 } else { job_failures.count.saturating_add(1) };
            }
        }
        if all.len() > 1000 {
            let present: FxHashSet<Arc<str>> =
                self.views.jobs.list(None).iter().map(|(_, job)| Arc::clone(&job.uid)).collect();
            all.retain(|uid, _| present.contains(uid));
        }
        all.get(job.uid()).map_or(0, |job_failures| job_failures.count)
    }
}

/// Removes the finalizer of a pod.
async fn release(
    context: &Context,
    pods: &Cache<PodView>,
    key: &NamespacedName,
    pod: &PodView,
) -> Result<(), Error> {
    let cluster = &context.cluster;
    let Some(live) = cluster.find(&builtin::POD, key.namespace(), &key.name).await? else {
        return Ok(());
    };
    let remaining: Vec<&str> =
        live.finalizers().filter(|finalizer| *finalizer != TRACKING).collect();
    if live.uid() != &*pod.uid || remaining.len() == live.finalizers().count() {
        return Ok(());
    }
    let remaining = if remaining.is_empty() { Value::Null } else { json!(remaining) };
    let patch = Patch::Merge(json!({"metadata": {
        "uid": live.uid(), "resourceVersion": live.resource_version(), "finalizers": remaining,
    }}));
    match cluster.patch(&builtin::POD, key.namespace(), &key.name, &patch).await {
        Ok(patched) => {
            pods.wait_for_revision(patched.resource_version()).await;
            Ok(())
        }
        Err(error) if is_object_gone(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes the finalizer of pods whose Job is gone or has ended.
struct Orphans {
    context: Context,
    pods: Cache<PodView>,
    jobs: Cache<JobView>,
}

impl Reconciler for Orphans {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        let Some(pod) = self.pods.get(key).filter(|pod| pod.tracked) else {
            return Ok(Action::Done);
        };
        if let Some(owner) = pod.owner.as_ref().filter(|owner| &*owner.kind == "Job") {
            let name = NamespacedName::new(Arc::clone(&key.namespace), Arc::clone(&owner.name));
            if self.jobs.get(&name).is_some_and(|job| job.uid == owner.uid) {
                return Ok(Action::Done);
            }
        }
        release(&self.context, &self.pods, key, &pod).await?;
        Ok(Action::Done)
    }
}
