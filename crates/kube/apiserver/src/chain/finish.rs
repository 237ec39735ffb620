//! Work that is carried out even if nobody waits for it any more.

use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// A future that goes on in a task of its own when it is dropped before its end.
///
/// What follows from a commit (kinds that are served, addresses and quotas that are taken) must not
/// be left undone because a client went away. A task for each write would have the same effect, but
/// costs every write two changes of threads, and nearly all are waited for.
pub(super) struct ToTheEnd<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    work: Option<Pin<Box<F>>>,
}

impl<F> ToTheEnd<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    pub(super) fn new(work: F) -> Self {
        Self { work: Some(Box::pin(work)) }
    }
}

impl<F> Future for ToTheEnd<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        // Taken for the time of the poll: work that panics is over.
        let Some(mut work) = this.work.take() else { return Poll::Pending };
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            this.work = Some(work);
        }
        polled
    }
}

impl<F> Drop for ToTheEnd<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn drop(&mut self) {
        // Without a runtime the process ends, and with it everything.
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            drop(runtime.spawn(work));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn what_is_given_up_goes_on() {
        let (go, may) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let work = ToTheEnd::new(async move {
            let _ = may.await;
            let _ = tell.send(7);
        });
        assert!(tokio::time::timeout(Duration::from_millis(1), work).await.is_err());
        go.send(()).unwrap();
        assert_eq!(told.await, Ok(7));
    }

    #[tokio::test]
    async fn what_is_waited_for_gives_its_answer() {
        assert_eq!(ToTheEnd::new(async { 7 }).await, 7);
    }
}
