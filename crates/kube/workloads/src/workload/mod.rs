//! Workload controllers: the shared part of Jobs, Deployments and the sets.
//!
//! ```text
//! change of an object, of its dependents or of orphans ─► its key ─► live object ─► reconcile
//! ```
//!
//! A kind supplies the name of its controller, the cache of its objects and a [`Workload`]. Other
//! triggers, such as nodes, enqueue keys through [`WorkloadController::queue`].

mod pods;
mod revisions;

pub(crate) use pods::{Named, Pods};
pub(crate) use revisions::{Revisions, template_of};

use crate::Started;
use crate::common::{Context, is_object_gone};
use crate::views::{Dependent, SelectorOwner};
use mainstay_client::{Action, Cache, Cluster, Controller, Error, Queue, Reconciler};
use mainstay_clock::Clock;
use mainstay_object::{NamespacedName, Object, Resource};
use std::sync::Arc;
use std::time::Duration;

/// The reconcile function of a kind of workload.
pub(crate) trait Workload: Send + Sync + 'static {
    /// Brings a live object closer to its spec and writes its status.
    ///
    /// Errors that say that the object is gone or its namespace is terminating may be returned as
    /// they are.
    fn reconcile(&self, live: Object) -> impl Future<Output = Result<Action, Error>> + Send;
}

/// The action that reconciles again after so many seconds.
pub(crate) fn requeue_after(clock: Clock, seconds: Option<u64>) -> Action {
    seconds.map_or(Action::Done, |wait| Action::in_wall_time(clock, Duration::from_secs(wait)))
}

/// The builder of a workload controller. `V` is the type of its cache's values.
pub(crate) struct WorkloadController<V> {
    resource: Resource,
    cache: Cache<V>,
    controller: Controller<NamespacedName>,
}

impl<V: SelectorOwner + PartialEq + Send + Sync + 'static> WorkloadController<V> {
    /// A controller that reconciles every object that appears or changes.
    pub(crate) fn new(name: &'static str, resource: Resource, cache: &Cache<V>) -> Self {
        let controller = Controller::new(name).reads(cache);
        let queue = controller.queue();
        cache.subscribe(move |change| {
            if change.after.is_some() {
                queue.add(change.key.clone());
            }
        });
        Self { resource, cache: cache.clone(), controller }
    }

    /// Enqueues the owner of each changed dependent; for an orphan, all objects that select it.
    pub(crate) fn owns<D>(mut self, dependents: &Cache<D>) -> Self
    where
        D: Dependent + PartialEq + Send + Sync + 'static,
    {
        let (queue, candidates) = (self.queue(), self.cache.clone());
        let kind = self.resource.kind.clone();
        dependents.subscribe(move |change| {
            let namespace = &change.key.namespace;
            for dependent in [change.before, change.after].into_iter().flatten() {
                match dependent.owner() {
                    Some(owner) if *owner.kind == *kind => {
                        let name = Arc::clone(&owner.name);
                        queue.add(NamespacedName::new(Arc::clone(namespace), name));
                    }
                    Some(_) => {}
                    None => {
                        for (key, candidate) in candidates.list(Some(namespace)) {
                            if candidate
                                .selector()
                                .is_some_and(|selector| dependent.matches(selector))
                            {
                                queue.add(key);
                            }
                        }
                    }
                }
            }
        });
        self.controller = self.controller.reads(dependents);
        self
    }

    /// Waits for this cache before the first reconcile.
    pub(crate) fn reads<T: PartialEq + Send + Sync + 'static>(mut self, cache: &Cache<T>) -> Self {
        self.controller = self.controller.reads(cache);
        self
    }

    /// The queue, for other triggers of the kind.
    pub(crate) fn queue(&self) -> Queue<NamespacedName> {
        self.controller.queue()
    }

    /// Starts the controller.
    pub(crate) fn start(self, workload: impl Workload, context: &Context, started: &mut Started) {
        let Self { resource, cache, controller } = self;
        let reconcile = Reconcile { cluster: context.cluster.clone(), resource, cache, workload };
        started.controller(controller.start(reconcile, context.stop.clone()));
    }
}

struct Reconcile<V, W> {
    cluster: Cluster,
    resource: Resource,
    cache: Cache<V>,
    workload: W,
}

impl<V: PartialEq + Send + Sync + 'static, W: Workload> Reconciler for Reconcile<V, W> {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        if self.cache.get(key).is_none() {
            return Ok(Action::Done);
        }
        let outcome = match self.cluster.get(&self.resource, key.namespace(), &key.name).await {
            Ok(live) => self.workload.reconcile(live).await,
            Err(error) => Err(error),
        };
        match outcome {
            Err(error) if is_object_gone(&error) || error.is_namespace_terminating() => {
                Ok(Action::Done)
            }
            other => other,
        }
    }
}
