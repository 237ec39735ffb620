//! Deadline of responses: a client that reads a little now and then ends, too.
//!
//! The timeout of a connection ([`crate::TimeoutStream`]) ends a client that reads nothing. A client
//! that reads a byte now and then would hold a response, and what belongs to it, for ever.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The deadline of the responses of one connection.
#[derive(Clone, Debug)]
pub(crate) struct ResponseDeadline {
    limit: Option<Duration>,
    late: CancellationToken,
}

impl ResponseDeadline {
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self { limit, late: CancellationToken::new() }
    }

    /// Returns when a response has taken too long, so that its connection must end.
    pub(crate) fn late(&self) -> impl Future<Output = ()> + Send + 'static {
        self.late.clone().cancelled_owned()
    }

    /// Wraps the body of a response that begins now.
    pub(crate) fn begin<B: Body>(&self, body: B) -> TimedBody<B> {
        let limit = self.limit.filter(|_| !body.is_end_stream());
        let ended = limit.map(|limit| {
            let (ended, late) = (CancellationToken::new(), self.late.clone());
            let guard = ended.clone().drop_guard();
            tokio::spawn(async move {
                if timeout(limit, ended.cancelled()).await.is_err() {
                    late.cancel();
                }
            });
            guard
        });
        TimedBody { body: Box::pin(body), _ended: ended }
    }
}

/// The body of a response with a deadline.
#[derive(Debug)]
pub(crate) struct TimedBody<B> {
    body: Pin<Box<B>>,
    _ended: Option<DropGuard>,
}

impl<B: Body<Data = Bytes>> Body for TimedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        self.body.as_mut().poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use http_body_util::Full;

    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_not_sent_in_time_is_late() {
        let deadline = ResponseDeadline::new(Some(Duration::from_secs(3)));
        let body = || Full::new(Bytes::from_static(b"x"));
        drop(deadline.begin(body()));
        let _empty = deadline.begin(Full::<Bytes>::default());
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(deadline.late().now_or_never().is_none());
        let _slow = deadline.begin(body());
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(deadline.late().now_or_never().is_none());
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(deadline.late().now_or_never().is_some());
    }
}
