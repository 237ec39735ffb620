//! The Pods of one owner: listed, adopted, released, created and deleted.

use crate::common::{Context, controller_reference_value};
use crate::views::{Dependent, ORPHANS, PodView, Views, plain_selector, selector};
use futures::{StreamExt, stream};
use mainstay_client::{DeleteOptions, Error, Patch};
use mainstay_object::{NamespacedName, Object, builtin};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use serde_json::{Value, json};
use std::sync::Arc;

/// The number of concurrent writes of Pods; the store commits them in groups.
const CONCURRENT_WRITES: usize = 16;

/// The Pods of a workload; decisions always see the controller's own writes.
pub(crate) struct Pods {
    context: Context,
    views: Views,
    /// Pods that were deleted and may still be in the cache.
    deleted: Mutex<FxHashSet<Arc<str>>>,
}

/// A Pod with its key.
pub(crate) type Named = (NamespacedName, Arc<PodView>);

impl Pods {
    pub(crate) fn new(context: &Context, views: &Views) -> Self {
        Self { context: context.clone(), views: views.clone(), deleted: Mutex::default() }
    }

    /// The Pods of an owner, without those that this process has deleted. Adopts orphans that the
    /// owner selects and releases Pods that it no longer selects.
    pub(crate) async fn of(&self, owner: &Object) -> Result<Vec<Named>, Error> {
        let mut pods = self.all_of(owner).await?;
        let deleted = self.deleted.lock();
        if !deleted.is_empty() {
            pods.retain(|(_, pod)| !deleted.contains(&pod.uid));
        }
        drop(deleted);
        self.forget_caught_up();
        Ok(pods)
    }

    /// Like [`of`](Self::of), with Pods that this process has deleted and the cache still has; they
    /// are marked as terminating.
    pub(crate) async fn all_of(&self, owner: &Object) -> Result<Vec<Named>, Error> {
        let selector = if owner.kind() == builtin::REPLICATION_CONTROLLER.kind {
            plain_selector(owner)
        } else {
            selector(owner)
        };
        if let Some(selector) = selector
            && !owner.is_terminating()
        {
            for (key, orphan) in self.views.pods.indexed(ORPHANS) {
                let same_namespace = *key.namespace == *owner.namespace();
                if same_namespace && orphan.is_active() && orphan.matches(&selector) {
                    self.adopt(owner, &key, &orphan).await?;
                }
            }
            for (key, pod) in self.views.pods.indexed(owner.uid()) {
                if !pod.matches(&selector) {
                    self.release(owner, &key, &pod).await?;
                }
            }
        }
        let mut pods = self.views.pods.indexed(owner.uid());
        let deleted = self.deleted.lock();
        if !deleted.is_empty() {
            for (_, pod) in &mut pods {
                if deleted.contains(&pod.uid) && !pod.terminating {
                    Arc::make_mut(pod).terminating = true;
                }
            }
        }
        Ok(pods)
    }

    /// Forgets deletions that the cache has caught up with.
    fn forget_caught_up(&self) {
        let mut deleted = self.deleted.lock();
        if deleted.len() > 1000 {
            let pods = self.views.pods.list(None);
            let present: FxHashSet<Arc<str>> = pods
                .into_iter()
                .filter(|(_, pod)| !pod.terminating)
                .map(|(_, pod)| Arc::clone(&pod.uid))
                .collect();
            deleted.retain(|uid| present.contains(uid));
        }
    }

    /// Adopts a Pod: adds the controller reference of an owner that selects it.
    async fn adopt(
        &self,
        owner: &Object,
        key: &NamespacedName,
        pod: &PodView,
    ) -> Result<(), Error> {
        let cluster = &self.context.cluster;
        let Some(live) = cluster.find(&builtin::POD, key.namespace(), &key.name).await? else {
            return Ok(());
        };
        if live.uid() != &*pod.uid || live.controller_owner().is_some() || live.is_terminating() {
            return Ok(());
        }
        let mut owners: Vec<Value> = live.array(&["metadata", "ownerReferences"]).to_vec();
        owners.push(controller_reference_value(owner));
        self.set_owners(&live, owners).await
    }

    /// Releases a Pod whose labels no longer match: removes its controller reference.
    async fn release(
        &self,
        owner: &Object,
        key: &NamespacedName,
        pod: &PodView,
    ) -> Result<(), Error> {
        let cluster = &self.context.cluster;
        let Some(live) = cluster.find(&builtin::POD, key.namespace(), &key.name).await? else {
            return Ok(());
        };
        if live.uid() != &*pod.uid {
            return Ok(());
        }
        let mut owners: Vec<Value> = live.array(&["metadata", "ownerReferences"]).to_vec();
        owners.retain(|reference| reference["uid"] != owner.uid());
        self.set_owners(&live, owners).await
    }

    async fn set_owners(&self, live: &Object, owners: Vec<Value>) -> Result<(), Error> {
        let owners = if owners.is_empty() { Value::Null } else { Value::Array(owners) };
        let patch = Patch::Merge(json!({"metadata": {
            "uid": live.uid(), "resourceVersion": live.resource_version(),
            "ownerReferences": owners,
        }}));
        let (namespace, name) = (Some(live.namespace()), live.name());
        let written = self.context.cluster.patch(&builtin::POD, namespace, name, &patch).await?;
        self.views.pods.wait_for_revision(written.resource_version()).await;
        Ok(())
    }

    /// Creates Pods and returns when the cache has them. Batches grow from one Pod to two, four and
    /// so on, so that a general refusal costs few requests. Of several refusals the first is
    /// returned, and no batch follows one.
    pub(crate) async fn create(&self, owner: &Object, pods: Vec<Object>) -> Result<(), Error> {
        let mut pods = pods.into_iter();
        let mut batch = 1;
        loop {
            let next: Vec<Object> = pods.by_ref().take(batch).collect();
            if next.is_empty() {
                return Ok(());
            }
            self.create_batch(owner, next).await?;
            batch *= 2;
        }
    }

    async fn create_batch(&self, owner: &Object, pods: Vec<Object>) -> Result<(), Error> {
        let cluster = &self.context.cluster;
        let outcomes: Vec<(String, Result<Object, Error>)> =
            stream::iter(pods)
                .map(|pod| async move {
                    (pod.name().to_owned(), cluster.create(&builtin::POD, &pod).await)
                })
                .buffered(CONCURRENT_WRITES)
                .collect()
                .await;
        let stateful = owner.kind() == builtin::STATEFUL_SET.kind;
        let mut failure = None;
        for (name, outcome) in outcomes {
            match outcome {
                Ok(pod) => {
                    let message = if stateful {
                        let set = owner.name();
                        format!("Create Pod {name} in StatefulSet {set} successful")
                    } else {
                        format!("Created pod: {}", pod.name())
                    };
                    self.context.report_normal(owner, "SuccessfulCreate", message);
                    self.views.pods.wait_for_revision(pod.resource_version()).await;
                }
                Err(error) => {
                    if !error.is_namespace_terminating() && !error.is_already_exists() {
                        let message = if stateful {
                            let set = owner.name();
                            format!("Create Pod {name} in StatefulSet {set} failed error: {error}")
                        } else {
                            format!("Error creating: {error}")
                        };
                        self.context.report_warning(owner, "FailedCreate", message);
                    }
                    failure = failure.or(Some(error));
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Deletes Pods and remembers the deletions.
    pub(crate) async fn delete(&self, owner: &Object, pods: &[Named]) -> Result<(), Error> {
        for (key, pod) in pods {
            let options = DeleteOptions::uid(pod.uid.as_ref());
            let cluster = &self.context.cluster;
            cluster.ensure_deleted(&builtin::POD, key.namespace(), &key.name, &options).await?;
            self.deleted.lock().insert(Arc::clone(&pod.uid));
            let message = if owner.kind() == builtin::STATEFUL_SET.kind {
                format!("Delete Pod {} in StatefulSet {} successful", key.name, owner.name())
            } else {
                format!("Deleted pod: {}", key.name)
            };
            self.context.report_normal(owner, "SuccessfulDelete", message);
        }
        Ok(())
    }
}
