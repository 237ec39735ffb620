//! Compute pool: requests with long computations leave the threads that serve connections.
//!
//! A task that decodes, merges or validates a megabyte in one poll blocks its thread, and with it
//! every connection of that thread. So requests with large bodies or large objects run as
//! [`Computing`]: each poll first acquires one of few permits, then moves the other tasks of its thread
//! to another one. The request holds no permit while it awaits the store or a webhook.
//!
//! Some requests become large only after defaulting. Their [`WorkSize`] then changes, and they
//! continue in the pool.
//!
//! There are as many permits as processors, because large writes, such as the copies of a CSV into a
//! thousand namespaces, shall use all of them. Small requests share the processors with them as
//! threads of the operating system, and wait for no permit. They never enter the pool, because the
//! change of threads would cost more than their work.
//!
//! The pool does not interrupt long work. Each computation has its own limit of steps: JSON patches,
//! schemas, expressions, aliases, and the size of an object.

use super::blocking::{are_large, block_in_place};
use mainstay_object::Object;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::thread::available_parallelism;
use tokio::sync::Semaphore;
use tokio_util::sync::PollSemaphore;

/// Bodies and stored objects from this size on are large: some milliseconds of work. Most CSVs are
/// smaller, and are copied into a thousand namespaces.
pub(crate) const LARGE: usize = 64 * 1024;

/// Whether the work of a request is large; shared between the work and the pool that runs it.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkSize {
    is_large: Arc<AtomicBool>,
}

impl WorkSize {
    /// Work that is large from the start, or not yet.
    pub(crate) fn new(is_large: bool) -> Self {
        Self { is_large: Arc::new(AtomicBool::new(is_large)) }
    }

    fn is_large(&self) -> bool {
        self.is_large.load(Ordering::Relaxed)
    }

    /// Moves the work into the pool if the object is large by now.
    pub(super) async fn grow_with(&self, object: &Object) {
        if !self.is_large() && are_large(object.fields().values()) {
            self.is_large.store(true, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    }
}

/// The permits of a server.
#[derive(Debug)]
pub(crate) struct ComputePool {
    permits: Arc<Semaphore>,
}

impl Default for ComputePool {
    /// One permit for each processor.
    fn default() -> Self {
        Self::new(available_parallelism().map_or(1, usize::from))
    }
}

impl ComputePool {
    fn new(permits: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(permits)) }
    }

    /// Runs work in the pool as soon as it is large.
    pub(crate) fn run<F: Future>(&self, work: F, size: WorkSize) -> Computing<F> {
        let permits = PollSemaphore::new(self.permits.clone());
        Computing { work: Box::pin(work), permits, size }
    }
}

/// Work that a [`ComputePool`] runs.
pub(crate) struct Computing<F> {
    work: Pin<Box<F>>,
    permits: PollSemaphore,
    size: WorkSize,
}

impl<F: Future> Future for Computing<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if !this.size.is_large() {
            return this.work.as_mut().poll(context);
        }
        // None only if the semaphore is closed, which never happens. The permit is released after
        // the poll.
        let Poll::Ready(_permit) = this.permits.poll_acquire(context) else { return Poll::Pending };
        block_in_place(|| this.work.as_mut().poll(context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn small_work_continues_while_large_work_blocks_its_thread() {
        let pool = ComputePool::new(1);
        let (send, receive) = mpsc::channel();
        let large = tokio::spawn(pool.run(async move { receive.recv() }, WorkSize::new(true)));
        // The only worker thread runs this task while the large one waits for it.
        let small = tokio::spawn(async move { send.send(7).is_ok() });
        assert!(small.await.unwrap());
        assert_eq!(large.await.unwrap(), Ok(7));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn large_work_runs_only_with_a_permit() {
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        static MAX_RUNNING: AtomicUsize = AtomicUsize::new(0);
        let pool = ComputePool::new(2);
        let work = || async {
            for _ in 0..10 {
                let running = RUNNING.fetch_add(1, Ordering::SeqCst) + 1;
                MAX_RUNNING.fetch_max(running, Ordering::SeqCst);
                std::thread::yield_now();
                RUNNING.fetch_sub(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        };
        let tasks: Vec<_> =
            (0..20).map(|_| tokio::spawn(pool.run(work(), WorkSize::new(true)))).collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert!(MAX_RUNNING.load(Ordering::SeqCst) <= 2);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_that_awaits_other_large_work_holds_no_permit() {
        let pool = Arc::new(ComputePool::new(1));
        let inner = pool.clone();
        let outer = pool.run(
            async move { tokio::spawn(inner.run(async { 1 }, WorkSize::new(true))).await.unwrap() },
            WorkSize::new(true),
        );
        assert_eq!(tokio::spawn(outer).await.unwrap(), 1);
    }

    fn object(items: usize) -> Object {
        serde_json::from_value(serde_json::json!({"items": vec![0; items]})).unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_that_grows_large_moves_into_the_pool() {
        let pool = ComputePool::new(1);
        let (send, receive) = mpsc::channel();
        let size = WorkSize::default();
        let work_size = size.clone();
        let growing = async move {
            work_size.grow_with(&object(10_000)).await;
            receive.recv()
        };
        let growing = tokio::spawn(pool.run(growing, size));
        let small = tokio::spawn(async move { send.send(7).is_ok() });
        assert!(small.await.unwrap());
        assert_eq!(growing.await.unwrap(), Ok(7));
        let size = WorkSize::default();
        let work_size = size.clone();
        let small = pool.run(async move { work_size.grow_with(&object(10)).await }, size);
        assert!(futures::FutureExt::now_or_never(small).is_some());
    }
}
