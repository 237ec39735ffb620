//! The controller of ClusterObjectSets.

use super::attempt::{self, Objects, Outcome, is_archived};
use crate::context::Context;
use crate::error::Error;
use mainstay_api::names::olm_v1::{KEPT_OBJECT_MESSAGE, OWNER_NAME_LABEL, TEARDOWN_FINALIZER};
use mainstay_api::{
    ClusterObjectSet, ClusterObjectSetConditionType, ClusterObjectSetReason, LifecycleState, Time,
    resources,
};
use mainstay_client::{
    Action, Backoff, Cache, CacheBuilder, Changed, Patch, Reconciler, Selection,
};
use mainstay_controller::{
    Controllers, ReconcileError as _, WithOperation as _, api_message, decision, either_side, patch,
};
use mainstay_object::{NamespacedName, Object};
use mainstay_objectsets::{ProgressDeadline, object_set_status, previous_revisions};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// How many sets are reconciled at a time.
const WORKERS: usize = 8;

struct Controller {
    context: Arc<Context>,
    sets: Cache<ClusterObjectSet>,
    /// The objects of sets that are rolling out, which are reconciled often.
    rolling_out: Mutex<HashMap<NamespacedName, (RolloutKey, Arc<Objects>)>>,
    /// Sets whose last write of the status failed, but may have reached the server: the cache may have an older
    /// status, so they are read from the server.
    unconfirmed: Mutex<HashSet<NamespacedName>>,
    /// The number of consecutive failures of sets whose last reconciliation failed.
    failures: Arc<Mutex<HashMap<NamespacedName, u32>>>,
    retry: Backoff,
}

/// Uid and generation of a set.
type RolloutKey = (String, i64);

/// The cache of all ClusterObjectSets, indexed by extension.
pub(crate) fn object_set_cache() -> CacheBuilder<ClusterObjectSet> {
    Cache::builder(Selection::all(resources::CLUSTER_OBJECT_SET), |object| {
        ClusterObjectSet::from_object(object).ok()
    })
    .index(|set: &ClusterObjectSet| {
        let extension = set.metadata.labels.get(OWNER_NAME_LABEL);
        extension.map(|name| Arc::from(name.as_str())).into_iter().collect()
    })
}

/// Registers the controller, if there are ClusterObjectSets. `retry` has the first and the longest pause
/// before another attempt.
pub(crate) fn register(controllers: &mut Controllers<Context>, retry: (Duration, Duration)) {
    let context = controllers.context();
    let Some(sets) = context.object_sets.clone() else { return };
    let failures = Arc::<Mutex<HashMap<NamespacedName, u32>>>::default();
    let mut controller = controllers
        .add("cluster_object_set")
        .workers(WORKERS)
        .watch(&sets, |context, queue, change| {
            if concerns_objects(change) {
                queue.add(change.key.clone());
            }
            // What a revision takes over or gives up is no collision for a later one any more.
            for set in either_side(change) {
                let Some(extension) = set.metadata.labels.get(OWNER_NAME_LABEL) else { continue };
                for later in unfinished_revisions(context, extension, set.spec.revision) {
                    queue.add(later);
                }
            }
        })
        .watch_source(|enqueuer| context.object_watches.notify(enqueuer));
    if let Some(accounts) = &context.approved_accounts {
        let failures = Arc::clone(&failures);
        controller = accounts.watch_accounts_with(controller, move |context, queue, extension| {
            for key in unfinished_revisions(context, extension, 0) {
                // Permissions take effect with a delay.
                failures.lock().remove(&key);
                queue.add(key);
            }
        });
    }
    controller.reconcile(Controller {
        context: Arc::clone(&context),
        sets,
        rolling_out: Mutex::default(),
        unconfirmed: Mutex::default(),
        failures,
        retry: Backoff::new(retry.0, retry.1),
    });
}

/// The revisions of an extension after one of them whose objects are not all as they should be.
fn unfinished_revisions(context: &Context, extension: &str, after: i64) -> Vec<NamespacedName> {
    let all = context.object_sets.as_ref().map(|sets| sets.indexed(extension)).unwrap_or_default();
    let later = all.into_iter().filter(|(_, set)| set.spec.revision > after && !is_finished(set));
    later.map(|(key, _)| key).collect()
}

/// Whether the status says that all objects are as they should be, or gone.
fn is_finished(set: &ClusterObjectSet) -> bool {
    set.status.conditions.iter().any(|condition| {
        let reason = &*condition.reason;
        ClusterObjectSetConditionType::Progressing == *condition.kind
            && (ClusterObjectSetReason::Succeeded == *reason
                || ClusterObjectSetReason::Archived == *reason)
            && condition.observed_generation == set.metadata.generation
    })
}

/// Whether a change of a set may change its objects. The status that the controller writes itself does not,
/// except for the end of an archived set.
fn concerns_objects(change: &Changed<'_, ClusterObjectSet>) -> bool {
    let (Some(before), Some(after)) = (change.before, change.after) else { return true };
    let without_status = |set: &ClusterObjectSet| {
        let metadata = &set.metadata;
        let marks = (metadata.labels.clone(), metadata.annotations.clone());
        (metadata.uid.clone(), metadata.generation, metadata.deletion_timestamp, marks)
    };
    without_status(before) != without_status(after)
        || is_reported_archived(before) != is_reported_archived(after)
}

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        let Some(set) = self.current(key).await? else {
            self.unconfirmed.lock().remove(key);
            self.failures.lock().remove(key);
            self.rolling_out.lock().remove(key);
            self.context.object_watches.forget(&key.name);
            return Ok(Action::Done);
        };
        if set.metadata.deletion_timestamp.is_some() {
            // The garbage collector deletes the objects that have the set as owner; kept ones lose it before.
            if has_teardown_finalizer(&set)
                && let Err(error) = attempt::release(&self.context, &set).await
            {
                return self.report_kept(&set, error).await;
            }
            self.remove_finalizer(&set).await?;
            return Ok(Action::Done);
        }
        if is_archived(&set) && is_reported_archived(&set) {
            // The status was written by an earlier reconciliation.
            self.remove_finalizer(&set).await?;
            return Ok(Action::Done);
        }
        let mut set = Arc::unwrap_or_clone(set);
        let previous = self.previous(&set);
        let content = match self.objects(key, &set).await {
            Ok(objects) => attempt::content(&self.context, &set, objects).await,
            Err(outcome) => Err((outcome, Vec::new())),
        };
        let (outcome, observed) = match content {
            Err(problem) => problem,
            Ok(content) => {
                let outcome = if is_archived(&set) {
                    attempt::archive(&self.context, &set, &content).await
                } else {
                    let Some(current) = self.add_finalizer(&set).await? else {
                        return Ok(Action::Done);
                    };
                    set = current;
                    attempt::apply(&self.context, &set, &previous, &content).await
                };
                (outcome, content.observed)
            }
        };
        if !self.is_rolling_out(&set, &outcome) {
            self.rolling_out.lock().remove(key);
        }
        let now = Time::new(self.context.clock.now());
        let update = object_set_status(&set, observed, outcome.as_rule(), now);
        if update.archives_previous {
            self.archive(&previous).await?;
        }
        self.report(&set, &update.status, &outcome).await?;
        let wait = self.backoff(key, &set, &outcome, now);
        Ok(wait.or(update.requeue).map_or(Action::Done, Action::After))
    }
}

fn has_teardown_finalizer(set: &ClusterObjectSet) -> bool {
    set.metadata.finalizers.iter().any(|name| name == TEARDOWN_FINALIZER)
}

/// Whether the status says that the objects of an archived set are gone.
pub(crate) fn is_reported_archived(set: &ClusterObjectSet) -> bool {
    set.status.conditions.iter().any(|condition| {
        ClusterObjectSetConditionType::Progressing == *condition.kind
            && ClusterObjectSetReason::Archived == *condition.reason
            && condition.observed_generation == set.metadata.generation
    })
}

impl Controller {
    /// A set, from the cache if that has its last status. The changes of a status enqueue nothing, so a status that
    /// follows from an older one would stay.
    async fn current(&self, key: &NamespacedName) -> Result<Option<Arc<ClusterObjectSet>>, Error> {
        if !self.unconfirmed.lock().contains(key) {
            return Ok(self.sets.get(key));
        }
        let found =
            self.context.cluster.find(&resources::CLUSTER_OBJECT_SET, None, &key.name).await;
        let found = found.during("reading a ClusterObjectSet")?;
        Ok(found.and_then(|set| ClusterObjectSet::from_object(&set).ok()).map(Arc::new))
    }

    /// The objects of a set, which are read once for a rollout.
    async fn objects(
        &self,
        key: &NamespacedName,
        set: &ClusterObjectSet,
    ) -> Result<Arc<Objects>, Outcome> {
        let rollout = (set.metadata.uid.clone(), set.metadata.generation);
        let read = self.rolling_out.lock().get(key).cloned();
        if let Some((_, objects)) = read.filter(|(of_rollout, _)| *of_rollout == rollout) {
            return Ok(objects);
        }
        let objects = Arc::new(attempt::read_objects(&self.context, set).await?);
        self.rolling_out.lock().insert(key.clone(), (rollout, Arc::clone(&objects)));
        Ok(objects)
    }

    /// Reports that a deleted set waits because an object that is to be kept would be lost with it.
    async fn report_kept(&self, set: &ClusterObjectSet, error: Error) -> Result<Action, Error> {
        let refusal = error.request().filter(|error| error.is_forbidden()).map(api_message);
        if let Some(why) = refusal {
            let outcome = Outcome::Failed(format!("{KEPT_OBJECT_MESSAGE}{why}"));
            let now = Time::new(self.context.clock.now());
            let update = object_set_status(set, Vec::new(), outcome.as_rule(), now);
            self.report(set, &update.status, &outcome).await?;
        }
        // Tried again after a pause.
        Err(error)
    }

    /// Whether more reconciliations of a set will follow soon: its rollout, or that of another revision whose
    /// objects it shares, is not complete.
    fn is_rolling_out(&self, set: &ClusterObjectSet, outcome: &Outcome) -> bool {
        let Outcome::Applied(rollout) = outcome else { return false };
        let extension = set.metadata.labels.get(OWNER_NAME_LABEL);
        let revisions = extension.map(|name| self.sets.indexed(name)).unwrap_or_default();
        let active = revisions.iter().filter(|(_, revision)| !is_archived(revision)).count();
        !rollout.is_complete() || active > 1
    }

    /// The earlier revisions whose objects a set takes over.
    fn previous(&self, set: &ClusterObjectSet) -> Vec<ClusterObjectSet> {
        let Some(extension) = set.metadata.labels.get(OWNER_NAME_LABEL) else { return Vec::new() };
        let all = self.sets.indexed(extension);
        let all: Vec<ClusterObjectSet> =
            all.into_iter().map(|(_, set)| Arc::unwrap_or_clone(set)).collect();
        previous_revisions(set, &all).into_iter().cloned().collect()
    }

    /// The pause before another attempt, after a failure.
    fn backoff(
        &self,
        key: &NamespacedName,
        set: &ClusterObjectSet,
        outcome: &Outcome,
        now: Time,
    ) -> Option<Duration> {
        let mut failures = self.failures.lock();
        if !matches!(outcome, Outcome::Failed(_)) {
            failures.remove(key);
            return None;
        }
        let count = failures.entry(key.clone()).or_default();
        let backoff = self.retry.wait_after(*count);
        *count = count.saturating_add(1);
        let was_reported =
            set.status.conditions.iter().any(|condition| {
                ClusterObjectSetReason::ProgressDeadlineExceeded == *condition.reason
            });
        Some(ProgressDeadline::of(set, now.timestamp()).cap_backoff(backoff, was_reported))
    }

    /// Adds the finalizer. Returns the set as it is now; none if it is gone.
    async fn add_finalizer(
        &self,
        set: &ClusterObjectSet,
    ) -> Result<Option<ClusterObjectSet>, Error> {
        let mut finalizers = set.metadata.finalizers.clone();
        if finalizers.iter().any(|name| name == TEARDOWN_FINALIZER) {
            return Ok(Some(set.clone()));
        }
        finalizers.push(TEARDOWN_FINALIZER.to_owned());
        let Some(written) = self.write_finalizers(set, &finalizers).await? else { return Ok(None) };
        let mut current = set.clone();
        current.metadata.finalizers = finalizers;
        written.resource_version().clone_into(&mut current.metadata.resource_version);
        Ok(Some(current))
    }

    async fn remove_finalizer(&self, set: &ClusterObjectSet) -> Result<(), Error> {
        let finalizers = &set.metadata.finalizers;
        let others: Vec<String> =
            finalizers.iter().filter(|name| *name != TEARDOWN_FINALIZER).cloned().collect();
        if others.len() < finalizers.len() {
            self.write_finalizers(set, &others).await?;
        }
        Ok(())
    }

    /// Writes the finalizers; returns none if the set is gone.
    async fn write_finalizers(
        &self,
        set: &ClusterObjectSet,
        finalizers: &[String],
    ) -> Result<Option<Object>, Error> {
        let patch = Patch::Merge(json!({"metadata": {
            "resourceVersion": set.metadata.resource_version,
            "finalizers": finalizers,
        }}));
        let (resource, name) = (&resources::CLUSTER_OBJECT_SET, &*set.metadata.name);
        match self.context.cluster.patch(resource, None, name, &patch).await {
            Err(error) if error.is_not_found() => Ok(None),
            written => Ok(Some(written.during("writing the finalizers of a ClusterObjectSet")?)),
        }
    }

    /// Archives the earlier revisions.
    async fn archive(&self, previous: &[ClusterObjectSet]) -> Result<(), Error> {
        let state = LifecycleState::Archived;
        let patch = Patch::Merge(json!({"spec": {"lifecycleState": state.as_str()}}));
        for set in previous {
            let (resource, name) = (&resources::CLUSTER_OBJECT_SET, &*set.metadata.name);
            match self.context.cluster.patch(resource, None, name, &patch).await {
                Err(error) if error.is_not_found() => {}
                written => {
                    written.map(drop).during("archiving a ClusterObjectSet")?;
                    decision::log(
                        "ClusterObjectSet",
                        name,
                        "archived",
                        "a later revision rolled out",
                    );
                }
            }
        }
        Ok(())
    }

    /// Writes the status if it differs.
    async fn report(
        &self,
        set: &ClusterObjectSet,
        status: &mainstay_api::ClusterObjectSetStatus,
        outcome: &Outcome,
    ) -> Result<(), Error> {
        let key = NamespacedName::cluster(&*set.metadata.name);
        let Some(patch) = patch::of_view(set, status)? else {
            self.unconfirmed.lock().remove(&key);
            return Ok(());
        };
        let (resource, name) = (&resources::CLUSTER_OBJECT_SET, &*set.metadata.name);
        self.unconfirmed.lock().insert(key.clone());
        match self.context.cluster.patch_status(resource, None, name, &patch).await {
            Err(error) if error.is_not_found() => return Ok(()),
            written => {
                let written = written.during("writing the status of a ClusterObjectSet")?;
                self.sets.wait_for_revision(written.resource_version()).await;
            }
        }
        self.unconfirmed.lock().remove(&key);
        let unfinished = match outcome {
            Outcome::Applied(rollout) => rollout.probe_failures(),
            _ => None,
        };
        let (decision, why) = match outcome {
            Outcome::Blocked(why) => ("blocked", &**why),
            Outcome::Failed(why) | Outcome::Invalid(why) => ("retrying", &**why),
            Outcome::Applied(rollout) if rollout.is_complete() => {
                ("rolled out", "all objects pass their probes")
            }
            Outcome::Applied(_) => {
                ("rolling out", unfinished.as_deref().unwrap_or("a phase is not complete"))
            }
            Outcome::Removing => ("removing", "the set is archived"),
            Outcome::Archived => ("removed", "the set is archived"),
        };
        decision::log("ClusterObjectSet", name, decision, why);
        Ok(())
    }
}
