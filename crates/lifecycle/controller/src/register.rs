//! Registration of controllers: each declares its watches, and all wait for all shared caches.

use crate::error::{ReconcileError, requeue_on_conflict};
use crate::subsystem::ControllerMonitor;
use mainstay_client::{
    Action, Cache, CacheBuilder, CacheSet, Changed, Controller, ControllerHandle, Queue, Reconciler,
};
use mainstay_object::NamespacedName;
use parking_lot::RwLock;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The queue of a controller.
pub type KeyQueue = Queue<NamespacedName>;

/// Starts a controller once all are registered.
type Start = Box<dyn FnOnce(&Arc<CacheSet>, CancellationToken) -> ControllerHandle<NamespacedName>>;

/// The controllers of a subsystem before they start, over a context `C` that they share.
///
/// A controller is registered by a function beside its code:
///
/// ```ignore
/// pub(crate) fn register(controllers: &mut Controllers<Context>) {
///     let context = controllers.context();
///     controllers
///         .add("namespace_labels")
///         .watch(&context.caches.namespaces, |_, queue, change| queue.add(change.key.clone()))
///         .reconcile(NamespaceLabels { context: Arc::clone(&context) });
/// }
/// ```
pub struct Controllers<C> {
    context: Arc<C>,
    caches: CacheSet,
    starts: Vec<Start>,
    stop: CancellationToken,
}

impl<C: Send + Sync + 'static> Controllers<C> {
    /// No controllers yet. They wait for every cache of the set, and end when `stop` is cancelled.
    pub fn new(context: Arc<C>, caches: CacheSet, stop: CancellationToken) -> Self {
        Self { context, caches, starts: Vec::new(), stop }
    }

    /// The context that the controllers share.
    pub fn context(&self) -> Arc<C> {
        Arc::clone(&self.context)
    }

    /// Begins to register a controller. The name is that of its metrics.
    pub fn add(&mut self, name: &'static str) -> ControllerBuilder<'_, C> {
        let own_caches = self.caches.sibling();
        ControllerBuilder { controller: Controller::new(name), own_caches, controllers: self }
    }

    /// Starts every controller. Must be called inside a tokio runtime.
    pub fn start(self) -> RunningControllers {
        let caches = Arc::new(self.caches);
        let start = |start: Start| start(&caches, self.stop.clone());
        let handles = self.starts.into_iter().map(start).collect();
        RunningControllers { caches, handles, stop: self.stop }
    }
}

/// Controllers that run. Dropping this does not end them; their token does.
pub struct RunningControllers {
    caches: Arc<CacheSet>,
    handles: Vec<ControllerHandle<NamespacedName>>,
    stop: CancellationToken,
}

impl RunningControllers {
    /// Returns once every cache has synced and every controller reconciles.
    pub async fn synced(&self) {
        self.caches.synced().await;
        for handle in &self.handles {
            handle.synced().await;
        }
    }

    /// The controllers, in the order of their registration.
    pub fn handles(&self) -> &[ControllerHandle<NamespacedName>] {
        &self.handles
    }

    /// The controllers as metrics and health checks see them, in the order of their registration.
    pub fn monitors(&self) -> Vec<ControllerMonitor> {
        let monitor = |handle| ControllerMonitor::new(handle, self.stop.clone());
        self.handles.iter().map(monitor).collect()
    }

    /// Returns when every controller has ended, which they do once their token is cancelled.
    pub async fn ended(self) {
        for handle in self.handles {
            handle.ended().await;
        }
    }
}

/// Builds a controller: its watches, its own caches and its reconciler.
pub struct ControllerBuilder<'c, C> {
    controllers: &'c mut Controllers<C>,
    controller: Controller<NamespacedName>,
    own_caches: CacheSet,
}

impl<C: Send + Sync + 'static> ControllerBuilder<'_, C> {
    /// Starts a cache that only this controller reads, and that only this controller waits for. Must
    /// be called inside a tokio runtime.
    pub fn cache<T: PartialEq + Send + Sync + 'static>(
        &mut self,
        cache: CacheBuilder<T>,
    ) -> Cache<T> {
        self.own_caches.start(cache)
    }

    /// Calls `enqueue` for each change of a cache, to add the keys that it concerns. The controller
    /// waits for the cache, even if another one started it.
    ///
    /// A superfluous key costs a reconciliation that changes nothing; a missing key leaves an operator
    /// stuck until its next change. In doubt, `enqueue` adds the key.
    #[must_use]
    pub fn watch<T: PartialEq + Send + Sync + 'static>(
        self,
        cache: &Cache<T>,
        enqueue: impl Fn(&C, &KeyQueue, &Changed<'_, T>) + Send + Sync + 'static,
    ) -> Self {
        let enqueuer = self.enqueuer();
        cache.subscribe(move |change| {
            enqueuer.with(|context, queue| enqueue(context, queue, change));
        });
        Self { controller: self.controller.reads(cache), ..self }
    }

    /// As [`Self::watch`], for a cache that exists only in some configurations.
    #[must_use]
    pub fn watch_if_there<T: PartialEq + Send + Sync + 'static>(
        self,
        cache: Option<&Cache<T>>,
        enqueue: impl Fn(&C, &KeyQueue, &Changed<'_, T>) + Send + Sync + 'static,
    ) -> Self {
        match cache {
            Some(cache) => self.watch(cache, enqueue),
            None => self,
        }
    }

    /// The enqueuer of the controller, for sources other than caches.
    pub fn enqueuer(&self) -> Enqueuer<C> {
        Enqueuer {
            context: Arc::downgrade(&self.controllers.context),
            queue: self.controller.queue(),
        }
    }

    /// Passes [`Self::enqueuer`] to a source other than a cache.
    #[must_use]
    pub fn watch_source(self, subscribe: impl FnOnce(Enqueuer<C>)) -> Self {
        subscribe(self.enqueuer());
        self
    }

    /// Sets the number of keys that are reconciled at a time; the default is that of
    /// [`mainstay_client::Controller`].
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.controller = self.controller.workers(workers);
        self
    }

    /// Sets the first and the longest pause before a failed reconciliation is retried.
    #[must_use]
    pub fn retry(mut self, first: Duration, longest: Duration) -> Self {
        self.controller = self.controller.retry(first, longest);
        self
    }

    /// Adds the controller with its reconciler. Conflicts and terminating namespaces requeue a key
    /// ([`requeue_on_conflict`]).
    pub fn reconcile<R>(self, reconciler: R)
    where
        R: Reconciler<Key = NamespacedName>,
        R::Error: ReconcileError,
    {
        let Self { controllers, controller, own_caches } = self;
        controllers.starts.push(Box::new(move |caches, stop| {
            let caches = Arc::clone(caches);
            controller
                .after(async move { caches.synced().await })
                .after(async move { own_caches.synced().await })
                .start(RequeueOnConflict(reconciler), stop)
        }));
    }
}

/// Adds keys to the queue of one controller. The reference to the context is weak, because the context
/// owns the caches, and the caches own their subscribers.
pub struct Enqueuer<C> {
    context: Weak<C>,
    queue: KeyQueue,
}

impl<C> Clone for Enqueuer<C> {
    fn clone(&self) -> Self {
        Self { context: Weak::clone(&self.context), queue: self.queue.clone() }
    }
}

impl<C> Enqueuer<C> {
    /// Calls `enqueue` unless the subsystem has shut down.
    pub fn with(&self, enqueue: impl FnOnce(&C, &KeyQueue)) {
        if let Some(context) = self.context.upgrade() {
            enqueue(&context, &self.queue);
        }
    }
}

type Subscriber = Box<dyn Fn() + Send + Sync>;

/// Notifies controllers of a change that is not in any object. Clones are the same signal.
#[derive(Clone, Default)]
pub struct Signal {
    subscribers: Arc<RwLock<Vec<Subscriber>>>,
}

impl Signal {
    /// Calls `on_signal` each time the signal is sent.
    pub fn subscribe(&self, on_signal: impl Fn() + Send + Sync + 'static) {
        self.subscribers.write().push(Box::new(on_signal));
    }

    /// Calls every subscriber.
    pub fn send(&self) {
        self.subscribers.read().iter().for_each(|on_signal| on_signal());
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").finish_non_exhaustive()
    }
}

/// The object before and after a change, as far as it exists.
pub fn either_side<'a, T>(change: &Changed<'a, T>) -> impl Iterator<Item = &'a Arc<T>> {
    change.before.into_iter().chain(change.after)
}

/// A reconciler whose conflicts are no failures.
struct RequeueOnConflict<R>(R);

impl<R> Reconciler for RequeueOnConflict<R>
where
    R: Reconciler,
    R::Error: ReconcileError,
{
    type Key = R::Key;
    type Error = R::Error;

    async fn reconcile(&self, key: &R::Key) -> Result<Action, R::Error> {
        requeue_on_conflict(self.0.reconcile(key).await)
    }
}
