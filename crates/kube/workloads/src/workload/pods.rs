//! The pods of one owner: found and adopted, created, deleted.

use crate::common::Context;
use crate::pod;
use crate::views::{ORPHANS, Owned, PodView, Views, selector};
use futures::{StreamExt, stream};
use mainstay_client::{DeleteOptions, Error};
use mainstay_object::{NamespacedName, Object, known};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// How many pods are written at the same time; the store commits them in groups.
const AT_ONCE: usize = 16;

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
