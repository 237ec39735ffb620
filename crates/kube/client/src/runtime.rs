//! Controller runtime: takes keys from a queue and reconciles them.

use crate::backoff::now;
use crate::queue::Queue;
use crate::{Backoff, Cache, Error};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use mainstay_clock::Clock;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::fmt::Display;
use std::future::Future;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// When to reconcile a key again although nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Only when something changes.
    Done,
    /// After this delay, or when something changes.
    After(Duration),
    /// At this wall-clock time, or when something changes. A step of the clock and a suspend are
    /// noticed within [`mainstay_clock::RECHECK_INTERVAL`], so this suits times that are written on objects.
    At(Clock, Timestamp),
}

impl Action {
    /// After a delay measured by the wall clock, for times that are written on objects.
    pub fn in_wall_time(clock: Clock, wait: Duration) -> Self {
        let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
        Self::At(clock, clock.now().checked_add(wait).unwrap_or(Timestamp::MAX))
    }
}

/// The reconcile function of a controller.
pub trait Reconciler: Send + Sync + 'static {
    /// The key of a unit of work, often a `NamespacedName`.
    type Key: Clone + Eq + Hash + Display + Send + Sync + 'static;
    /// Why a reconcile failed; it is retried with backoff.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Brings the objects of one key to their desired state. The future may be dropped at any await
    /// (shutdown), and reconcile may be called again.
    fn reconcile(
        &self,
        key: &Self::Key,
    ) -> impl Future<Output = Result<Action, Self::Error>> + Send;
}

/// A reconciler without its type: the loop around it is compiled once for each type of key.
trait AnyReconciler<K>: Send + Sync {
    fn reconcile<'a>(&'a self, key: &'a K) -> BoxFuture<'a, Result<Action, AnyError>>;
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

impl<R: Reconciler> AnyReconciler<R::Key> for R {
    fn reconcile<'a>(&'a self, key: &'a R::Key) -> BoxFuture<'a, Result<Action, AnyError>> {
        Box::pin(async move { Ok(Reconciler::reconcile(self, key).await?) })
    }
}

/// The metrics of a controller.
#[derive(Debug, Default)]
pub struct Counters {
    reconciled: AtomicU64,
    failed: AtomicU64,
    panicked: AtomicU64,
    /// Microseconds.
    busy: AtomicU64,
}

impl Counters {
    /// The number of finished reconciles, successful or not.
    pub fn reconciled(&self) -> u64 {
        self.reconciled.load(Ordering::Relaxed)
    }

    /// The number of failed reconciles, panics included.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// The total duration of reconciles. Concurrent ones each count.
    pub fn busy(&self) -> Duration {
        Duration::from_micros(self.busy.load(Ordering::Relaxed))
    }

    /// The number of reconciles that panicked.
    pub fn panicked(&self) -> u64 {
        self.panicked.load(Ordering::Relaxed)
    }
}

/// The builder of a controller.
pub struct Controller<K> {
    name: &'static str,
    queue: Queue<K>,
    workers: usize,
    backoff: Backoff,
    ready: Vec<BoxFuture<'static, ()>>,
}

impl<K: Clone + Eq + Hash + Display + Send + Sync + 'static> Controller<K> {
    /// A controller with an empty queue, four workers, and retries from 10 ms up to a minute.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            queue: Queue::new(),
            workers: 4,
            backoff: Backoff::new(Duration::from_millis(10), Duration::from_mins(1)),
            ready: Vec::new(),
        }
    }

    /// The queue, to which subscribers of caches add keys.
    pub fn queue(&self) -> Queue<K> {
        self.queue.clone()
    }

    /// Sets the number of concurrent reconciles (at least one).
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// Sets the first and the longest delay of retries.
    #[must_use]
    pub const fn retry(mut self, base: Duration, cap: Duration) -> Self {
        self.backoff = Backoff::new(base, cap);
        self
    }

    /// Waits for this cache to sync before the first reconcile.
    #[must_use]
    pub fn reads<T: PartialEq + Send + Sync + 'static>(mut self, cache: &Cache<T>) -> Self {
        let cache = cache.clone();
        self.ready.push(async move { cache.synced().await }.boxed());
        self
    }

    /// Waits for this future before the first reconcile.
    #[must_use]
    pub fn after(mut self, ready: impl Future<Output = ()> + Send + 'static) -> Self {
        self.ready.push(ready.boxed());
        self
    }

    /// Starts the controller. Must be called inside a tokio runtime. Cancelling the token stops it:
    /// running reconciles are dropped at their next await.
    pub fn start(
        self,
        reconciler: impl Reconciler<Key = K>,
        stop: CancellationToken,
    ) -> ControllerHandle<K> {
        self.start_any(Box::new(reconciler), stop)
    }

    fn start_any(
        self,
        reconciler: Box<dyn AnyReconciler<K>>,
        stop: CancellationToken,
    ) -> ControllerHandle<K> {
        let counters = Arc::new(Counters::default());
        let (synced, synced_signal) = watch::channel(false);
        let run = Run {
            name: self.name,
            queue: self.queue.clone(),
            reconciler,
            backoff: self.backoff,
            failures: Mutex::new(FxHashMap::default()),
            counters: Arc::clone(&counters),
        };
        let (ready, workers) = (self.ready, self.workers);
        let task = tokio::spawn(async move {
            let main = async {
                for ready in ready {
                    ready.await;
                }
                // The receiver may be dropped.
                let _ = synced.send(true);
                Arc::new(run).dispatch(workers).await;
            };
            stop.run_until_cancelled(main).await;
        });
        ControllerHandle {
            name: self.name,
            queue: self.queue,
            counters,
            synced: synced_signal,
            task,
        }
    }
}

/// A running controller. Dropping the handle does not stop it; its token does.
pub struct ControllerHandle<K> {
    name: &'static str,
    queue: Queue<K>,
    counters: Arc<Counters>,
    synced: watch::Receiver<bool>,
    task: JoinHandle<()>,
}

impl<K: Clone + Eq + Hash> ControllerHandle<K> {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its queue.
    pub const fn queue(&self) -> &Queue<K> {
        &self.queue
    }

    /// Its metrics.
    pub const fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Returns once every cache it reads is synced and reconciling has begun. Also returns if the
    /// controller ends before that.
    pub async fn synced(&self) {
        self.when_synced().await;
    }

    /// Like [`Self::synced`], as a future that does not borrow the handle.
    pub fn when_synced(&self) -> impl Future<Output = ()> + Send + use<K> {
        let mut synced = self.synced.clone();
        async move {
            let _ = synced.wait_for(|synced| *synced).await;
        }
    }

    /// The task of the controller.
    pub fn task(&self) -> AbortHandle {
        self.task.abort_handle()
    }

    /// Returns once the controller has ended.
    pub async fn ended(self) {
        // The task itself never panics; if it did, it would have ended all the same.
        let _ = self.task.await;
    }
}

/// The longest delay after a transient error, see [`Error::is_passing`]. An unavailable server gets
/// one request per second for each key, from a controller's few workers only. Over a connection
/// that loses every third request, longer delays would add up to minutes.
const TRANSIENT_DELAY: Duration = Duration::from_secs(1);

/// Whether an error or one of its sources is a transient API error.
fn is_passing(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source())
        .filter_map(|cause| cause.downcast_ref::<Error>())
        .any(Error::is_passing)
}

struct Run<K> {
    name: &'static str,
    queue: Queue<K>,
    reconciler: Box<dyn AnyReconciler<K>>,
    backoff: Backoff,
    /// The number of consecutive failures of keys whose last reconcile failed.
    failures: Mutex<FxHashMap<K, u32>>,
    counters: Arc<Counters>,
}

impl<K: Clone + Eq + Hash + Display + Send + Sync + 'static> Run<K> {
    async fn dispatch(self: Arc<Self>, workers: usize) {
        let slots = Arc::new(Semaphore::new(workers));
        // Dropped with this future at shutdown, which ends every running reconcile.
        let mut running = JoinSet::new();
        loop {
            // The semaphore is never closed.
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            let key = self.queue.next().await;
            let run = Arc::clone(&self);
            running.spawn(async move {
                run.reconcile_one(&key).await;
                run.queue.finish(&key);
                drop(slot);
            });
            while running.try_join_next().is_some() {}
        }
    }

    async fn reconcile_one(&self, key: &K) {
        let begun = now();
        let outcome = AssertUnwindSafe(self.reconciler.reconcile(key)).catch_unwind().await;
        let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.counters.busy.fetch_add(took, Ordering::Relaxed);
        self.counters.reconciled.fetch_add(1, Ordering::Relaxed);
        match outcome {
            Ok(Ok(action)) => {
                self.failures.lock().remove(key);
                match action {
                    Action::Done => {}
                    Action::After(wait) => self.queue.add_after(key.clone(), wait),
                    Action::At(clock, time) => self.queue.add_at(key.clone(), clock, time),
                }
            }
            Ok(Err(error)) => {
                let error: &(dyn std::error::Error + 'static) = error.as_ref();
                let (wait, before) = self.record_failure(key, is_passing(error));
                // A first failure is mostly a conflict with another writer.
                if before == 0 {
                    tracing::debug!(controller = self.name, %key, error, ?wait, "cannot reconcile yet");
                } else {
                    tracing::warn!(controller = self.name, %key, error, ?wait, "cannot reconcile, trying again");
                }
            }
            Err(panic) => {
                self.counters.panicked.fetch_add(1, Ordering::Relaxed);
                let (wait, _) = self.record_failure(key, false);
                let message = panic
                    .downcast_ref::<&str>()
                    .map(|text| (*text).to_owned())
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_default();
                tracing::error!(controller = self.name, %key, message, ?wait, "reconciling panicked");
            }
        }
    }

    /// Counts a failure. Returns the delay and the number of consecutive failures before it.
    /// Transient errors have short delays.
    fn record_failure(&self, key: &K, passing: bool) -> (Duration, u32) {
        self.counters.failed.fetch_add(1, Ordering::Relaxed);
        let mut failures = self.failures.lock();
        let count = failures.entry(key.clone()).or_default();
        let before = *count;
        let longest = if passing { TRANSIENT_DELAY } else { Duration::MAX };
        let wait = self.backoff.wait_after(before).min(longest);
        *count = before.saturating_add(1);
        drop(failures);
        self.queue.add_after(key.clone(), wait);
        (wait, before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Debug, thiserror::Error)]
    #[error("not yet")]
    struct NotYet;

    /// An error as controllers have them: the attempted operation, with the API error as its
    /// source.
    #[derive(Debug, thiserror::Error)]
    #[error("writing")]
    struct Writing(#[source] Error);

    /// Always fails: with a transient error, or with a refusal.
    struct FailingReconciler {
        calls: Arc<Mutex<Vec<(String, tokio::time::Instant)>>>,
    }

    impl Reconciler for FailingReconciler {
        type Key = String;
        type Error = Writing;

        async fn reconcile(&self, key: &String) -> Result<Action, Writing> {
            self.calls.lock().push((key.clone(), now()));
            let mut status = mainstay_object::Status::bad_request("no");
            status.code = if key == "away" { 503 } else { 400 };
            Err(Writing(Error::Status(status)))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn transient_errors_retry_every_second_and_refusals_back_off_to_a_minute() {
        let calls = Arc::default();
        let stop = CancellationToken::new();
        let controller = Controller::new("test");
        let queue = controller.queue();
        queue.add("away".to_owned());
        queue.add("refused".to_owned());
        let handle =
            controller.start(FailingReconciler { calls: Arc::clone(&calls) }, stop.clone());
        tokio::time::sleep(Duration::from_mins(10)).await;
        let longest = |key: &str| {
            let calls = calls.lock();
            let times: Vec<_> =
                calls.iter().filter(|call| call.0 == key).map(|call| call.1).collect();
            times
                .windows(2)
                .map(|pair| (pair[1] - pair[0]).as_secs_f64().round())
                .fold(0.0, f64::max)
        };
        assert_eq!((longest("away"), longest("refused")), (1.0, 60.0));
        stop.cancel();
        handle.ended().await;
    }

    #[derive(Default)]
    struct ScriptedReconciler {
        calls: Arc<Mutex<Vec<String>>>,
        concurrent: Arc<AtomicUsize>,
        max_concurrent: Arc<AtomicUsize>,
    }

    impl Reconciler for ScriptedReconciler {
        type Key = String;
        type Error = NotYet;

        async fn reconcile(&self, key: &String) -> Result<Action, NotYet> {
            let running = self.concurrent.fetch_add(1, Ordering::SeqCst) + 1;
            self.max_concurrent.fetch_max(running, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(1)).await;
            self.concurrent.fetch_sub(1, Ordering::SeqCst);
            let mut calls = self.calls.lock();
            calls.push(key.clone());
            let times = calls.iter().filter(|call| *call == key).count();
            drop(calls);
            match key.as_str() {
                "fails twice" if times <= 2 => Err(NotYet),
                "panics once" if times == 1 => panic!("scripted"),
                "comes back" if times == 1 => Ok(Action::After(Duration::from_secs(3))),
                _ => Ok(Action::Done),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn failures_panics_and_requeues_bring_a_key_back() {
        let script = ScriptedReconciler::default();
        let calls = Arc::clone(&script.calls);
        let stop = CancellationToken::new();
        let controller = Controller::new("test");
        let queue = controller.queue();
        for key in ["fails twice", "panics once", "comes back", "works"] {
            queue.add(key.to_owned());
        }
        let handle = controller.start(script, stop.clone());
        handle.synced().await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let mut calls = calls.lock().clone();
        calls.sort();
        assert_eq!(
            calls,
            [
                "comes back",
                "comes back",
                "fails twice",
                "fails twice",
                "fails twice",
                "panics once",
                "panics once",
                "works"
            ]
        );
        assert_eq!(handle.counters().failed(), 3);
        assert_eq!(handle.counters().panicked(), 1);
        stop.cancel();
        handle.ended().await;
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_reconciles_are_bounded_by_the_workers() {
        let script = ScriptedReconciler::default();
        let max_concurrent = Arc::clone(&script.max_concurrent);
        let stop = CancellationToken::new();
        let controller = Controller::new("test").workers(2);
        let queue = controller.queue();
        for at in 0..10 {
            queue.add(format!("key {at}"));
        }
        let handle = controller.start(script, stop.clone());
        tokio::time::sleep(Duration::from_secs(1)).await;
        queue.idle().await;
        assert_eq!(max_concurrent.load(Ordering::SeqCst), 2);
        assert_eq!(handle.counters().reconciled(), 10);
        assert_eq!(handle.counters().busy(), Duration::from_millis(10));
        stop.cancel();
        handle.ended().await;
        assert!(queue.is_empty());
    }
}
