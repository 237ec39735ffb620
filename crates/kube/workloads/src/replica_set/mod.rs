//! `ReplicaSets`: as many pods as wanted.

mod decide;

use crate::Started;
use crate::common::{Context, overtaken};
use crate::views::{ORPHANS, PodView, Views, selector};
use crate::{pod, template};
use decide::Observed;
use futures::{StreamExt, stream};
use mainstay_client::{Action, Controller, DeleteOptions, Error, Reconciler};
use mainstay_object::{NamespacedName, Object, known};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::time::Duration;

/// How many pods are written at the same time; the store commits them in groups.
const AT_ONCE: usize = 16;

/// Starts the controller of `ReplicaSets`.
pub(crate) fn start(context: &Context, views: &Views, started: &mut Started) {
    let controller = Controller::new("replica-sets");
    let queue = controller.queue();
    views.replica_sets.subscribe(move |change| {
        if change.after.is_some() {
            queue.add(change.key.clone());
        }
    });
    let queue = controller.queue();
    views.on_pods(
        "ReplicaSet",
        views.replica_sets.clone(),
        |set| set.selector.as_ref(),
        move |key| queue.add(key),
    );
    let reconciler = Reconcile {
        context: context.clone(),
        pods: Pods::new(context, views),
        views: views.clone(),
    };
    let controller = controller.reads(&views.replica_sets).reads(&views.pods);
    started.controller(controller.start(reconciler, context.stop.clone()));
}

/// The pods of a controller, never decided on before its own writes are seen.
pub(crate) struct Pods {
    context: Context,
    views: Views,
    /// Pods that were deleted and may still be in the cache.
    deleted: Mutex<FxHashSet<Arc<str>>>,
}

/// A pod by name.
pub(crate) type Named = (NamespacedName, Arc<PodView>);

impl Pods {
    pub(crate) fn new(context: &Context, views: &Views) -> Self {
        Self { context: context.clone(), views: views.clone(), deleted: Mutex::default() }
    }

    /// The pods of an owner, without those that this process has deleted; adopts those that nobody
    /// owns and the owner selects.
    pub(crate) async fn of(&self, owner: &Object) -> Result<Vec<Named>, Error> {
        if let Some(selector) = selector(owner)
            && !owner.is_terminating()
        {
            for (key, orphan) in self.views.pods.indexed(ORPHANS) {
                let near = *key.namespace == *owner.namespace();
                if near && orphan.is_active() && orphan.matches(&selector) {
                    pod::adopt(&self.context, owner, &key, &orphan).await?;
                }
            }
        }
        let mut pods = self.views.pods.indexed(owner.uid());
        let mut deleted = self.deleted.lock();
        if !deleted.is_empty() {
            pods.retain(|(_, pod)| !deleted.contains(&pod.uid));
            // What the cache knows as going, or knows no longer, needs no remembering.
            if deleted.len() > 1000 {
                let present: FxHashSet<Arc<str>> = self
                    .views
                    .pods
                    .list(None)
                    .into_iter()
                    .filter(|(_, pod)| !pod.terminating)
                    .map(|(_, pod)| Arc::clone(&pod.uid))
                    .collect();
                deleted.retain(|uid| present.contains(uid));
            }
        }
        Ok(pods)
    }

    /// Creates pods and returns when the cache has them. Of several refusals the first is returned.
    pub(crate) async fn create(&self, owner: &Object, pods: Vec<Object>) -> Result<(), Error> {
        let cluster = &self.context.cluster;
        let outcomes: Vec<Result<Object, Error>> = stream::iter(pods)
            .map(|pod| async move { cluster.create(&known::POD, &pod).await })
            .buffered(AT_ONCE)
            .collect()
            .await;
        let mut failure = None;
        for outcome in outcomes {
            match outcome {
                Ok(pod) => {
                    let message = format!("Created pod: {}", pod.name());
                    self.context.normal(owner, "SuccessfulCreate", message);
                    self.views.pods.seen(pod.resource_version()).await;
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Deletes pods and remembers that it did.
    pub(crate) async fn delete(&self, owner: &Object, pods: &[Named]) -> Result<(), Error> {
        for (key, pod) in pods {
            let options = DeleteOptions::uid(pod.uid.as_ref());
            let cluster = &self.context.cluster;
            cluster.ensure_deleted(&known::POD, key.namespace(), &key.name, &options).await?;
            self.deleted.lock().insert(Arc::clone(&pod.uid));
            let message = format!("Deleted pod: {}", key.name);
            self.context.normal(owner, "SuccessfulDelete", message);
        }
        Ok(())
    }
}

struct Reconcile {
    context: Context,
    views: Views,
    pods: Pods,
}

impl Reconciler for Reconcile {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        if self.views.replica_sets.get(key).is_none() {
            return Ok(Action::Done);
        }
        match self.bring_to_rest(key).await {
            Err(error) if overtaken(&error) => Ok(Action::Done),
            other => other,
        }
    }
}

impl Reconcile {
    async fn bring_to_rest(&self, key: &NamespacedName) -> Result<Action, Error> {
        let cluster = &self.context.cluster;
        let set = cluster.get(&known::REPLICA_SET, key.namespace(), &key.name).await?;
        let pods = self.pods.of(&set).await?;
        let now = self.context.clock.now();
        let decision = decide::decide(&Observed { set: &set, pods: &pods, now });
        let mut failure = None;
        if decision.create > 0 {
            let template = set.get(&["spec", "template"]).cloned().unwrap_or_default();
            let wanted =
                (0..decision.create).map(|_| template::generated_pod(&set, &template)).collect();
            failure = self.pods.create(&set, wanted).await.err();
            if let Some(error) = &failure {
                if error.is_namespace_terminating() {
                    return Ok(Action::Done);
                }
                self.context.warning(&set, "FailedCreate", format!("Error creating: {error}"));
            }
        }
        self.pods.delete(&set, &decision.delete).await?;
        let text = failure.as_ref().map(ToString::to_string);
        let now = mainstay_clock::rfc3339(now);
        let status = decide::status(&set, &decision.counts, text.as_deref(), &now);
        self.context.write_status(&known::REPLICA_SET, &set, status).await?;
        match failure {
            Some(error) => Err(error),
            None => Ok(decision
                .again
                .map_or(Action::Done, |seconds| Action::After(Duration::from_secs(seconds)))),
        }
    }
}
