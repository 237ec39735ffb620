//! Compute pool: requests whose work takes long leave the threads that serve connections.
//!
//! A task whose poll decodes, merges or validates a megabyte keeps its thread for as long, and with
//! it every connection of that thread. Requests with large bodies or large objects therefore run as
//! [`Computing`]: each poll first waits for one of few permits, then hands the other tasks of its
//! thread to another one. What the request awaits (the store, webhooks) it awaits without a permit.
//!
//! Some requests turn out to be large only when defaults were filled in: their [`WorkSize`] says so, and
//! they go on in the pool.
//!
//! There are as many permits as processors: copies of a version into a thousand namespaces are large
//! writes, too, and use all of them. Small requests share the processors with them as the system's
//! threads do, and wait for none of them to end. They never come here: they cost less than the change
//! of threads.
//!
//! What this does not do: end work that takes too long. Work is bounded where it is done, in steps
//! that are counted: JSON patches, schemas, expressions, aliases, and the size of an object.

use super::aside::{are_large, aside};
use mainstay_object::Object;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::thread::available_parallelism;
use tokio::sync::Semaphore;
use tokio_util::sync::PollSemaphore;

/// Bodies and stored objects from this size on are large: some milliseconds of work. Most versions of
/// operators are smaller, and are copied into a thousand namespaces.
pub(crate) const LARGE: usize = 64 * 1024;

/// Whether the work of a request is large; what works on it and the pool that runs it know the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkSize {
    is_large: Arc<AtomicBool>,
}

impl WorkSize {
    /// Work that is known to be large, or not known to be.
    pub(crate) fn new(is_large: bool) -> Self {
        Self { is_large: Arc::new(AtomicBool::new(is_large)) }
    }

    fn is_large(&self) -> bool {
        self.is_large.load(Ordering::Relaxed)
    }

    /// Takes an object into account that has been worked on: if it is large by now, the work goes on in
    /// the pool.
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
    /// A permit for each processor.
    fn default() -> Self {
        Self::new(available_parallelism().map_or(1, usize::from))
    }
}

impl ComputePool {
    fn new(permits: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(permits)) }
    }

    /// The same work, done in the pool if it is large, or from when it is.
    pub(crate) fn run<F: Future>(&self, work: F, size: WorkSize) -> Computing<F> {
        let permits = PollSemaphore::new(self.permits.clone());
        Computing { work: Box::pin(work), permits, size }
    }
}

/// Work that is done in a [`ComputePool`].
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
        // None if the semaphore is closed, which nobody does. The permit is given back after the poll.
        let Poll::Ready(_permit) = this.permits.poll_acquire(context) else { return Poll::Pending };
        aside(|| this.work.as_mut().poll(context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn small_work_goes_on_while_large_work_keeps_its_thread() {
        let pool = ComputePool::new(1);
        let (send, receive) = mpsc::channel();
        let large = tokio::spawn(pool.run(async move { receive.recv() }, WorkSize::new(true)));
        // The only worker thread is needed for this task while the large one waits for it.
        let small = tokio::spawn(async move { send.send(7).is_ok() });
        assert!(small.await.unwrap());
        assert_eq!(large.await.unwrap(), Ok(7));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_more_large_work_runs_than_there_are_permits() {
        static NOW: AtomicUsize = AtomicUsize::new(0);
        static MOST: AtomicUsize = AtomicUsize::new(0);
        let pool = ComputePool::new(2);
        let work = || async {
            for _ in 0..10 {
                let now = NOW.fetch_add(1, Ordering::SeqCst) + 1;
                MOST.fetch_max(now, Ordering::SeqCst);
                std::thread::yield_now();
                NOW.fetch_sub(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        };
        let all: Vec<_> =
            (0..20).map(|_| tokio::spawn(pool.run(work(), WorkSize::new(true)))).collect();
        for one in all {
            one.await.unwrap();
        }
        assert!(MOST.load(Ordering::SeqCst) <= 2);
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
    async fn work_that_turns_out_to_be_large_goes_on_in_the_pool() {
        let pool = ComputePool::new(1);
        let (send, receive) = mpsc::channel();
        let size = WorkSize::default();
        let known = size.clone();
        let grown = async move {
            known.grow_with(&object(10_000)).await;
            receive.recv()
        };
        let grown = tokio::spawn(pool.run(grown, size));
        let small = tokio::spawn(async move { send.send(7).is_ok() });
        assert!(small.await.unwrap());
        assert_eq!(grown.await.unwrap(), Ok(7));
        let size = WorkSize::default();
        let known = size.clone();
        let small = pool.run(async move { known.grow_with(&object(10)).await }, size);
        assert!(futures::FutureExt::now_or_never(small).is_some());
    }
}
