//! HTTP/2 send timeouts: streams whose client does not read the response.
//!
//! The socket timeout closes a connection whose client reads nothing. On HTTP/2 a client can read
//! everything else and still nothing of one response: it never opens the window of the stream. Then the
//! rest of the response would stay in memory for as long as the client likes.
//!
//! ```text
//! response ─► pieces ([`PacedBody`]) ─► window of the stream ─► socket
//!               └─ pieces that were sent ─► task of the stream ([`StreamExecutor`])
//!                                             ├─ has more to send ────► resets the stream
//!                                             └─ all handed to hyper ─► closes the connection
//! ```
//!
//! A stream with nothing to send (a watch without events) has no timeout. A stream of which the client
//! reads a byte now and then goes on.

use bytes::{Buf, Bytes};
use futures::task::AtomicWaker;
use http_body::{Body, Frame, SizeHint};
use hyper::rt::Executor;
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::CancellationToken;

/// Bytes handed to hyper at a time. A stream can be reset while it has more.
const PIECE: usize = 64 << 10;

/// The progress of a stream in one poll.
struct StreamState {
    /// The stream has data to send, and waits for the client to read it.
    sending: Cell<bool>,
    /// The response body was polled and gave a frame.
    moved: Cell<bool>,
    unsent: Arc<Unsent>,
}

tokio::task_local! {
    /// The state of the stream that is polled now; not set for HTTP/1.1.
    static STREAM_STATE: StreamState;
}

/// Pieces that were handed to hyper and not sent yet.
#[derive(Debug, Default)]
struct Unsent {
    pieces: AtomicUsize,
    /// Some bytes were sent since the last poll of the stream.
    moved: AtomicBool,
    stream: AtomicWaker,
}

/// Bytes of a response that record when some of them are sent.
#[derive(Debug)]
pub struct Outgoing {
    bytes: Bytes,
    /// None for HTTP/1.1.
    unsent: Option<Arc<Unsent>>,
}

impl Buf for Outgoing {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(unsent) = &self.unsent
            && count > 0
        {
            unsent.moved.store(true, Ordering::Release);
        }
    }

    fn copy_to_bytes(&mut self, count: usize) -> Bytes {
        let copy = self.bytes.slice(..count);
        self.advance(count);
        copy
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        let Some(unsent) = &self.unsent else { return };
        unsent.moved.store(true, Ordering::Release);
        unsent.pieces.fetch_sub(1, Ordering::AcqRel);
        unsent.stream.wake();
    }
}

/// A response body in pieces, for streams that [`StreamExecutor`] runs. HTTP/1.1 is not affected.
#[derive(Debug)]
pub struct PacedBody<B> {
    body: B,
    /// The rest of the last frame of the body.
    rest: Bytes,
}

impl<B> PacedBody<B> {
    /// Wraps the body of a response that begins now.
    pub fn new(body: B) -> Self {
        let _ = STREAM_STATE.try_with(|state| {
            state.sending.set(true);
            state.moved.set(true);
        });
        Self { body, rest: Bytes::new() }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for PacedBody<B> {
    type Data = Outgoing;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Outgoing>, B::Error>>> {
        let this = &mut *self;
        let polled_frame = if this.rest.is_empty() {
            Pin::new(&mut this.body).poll_frame(context)
        } else {
            Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.rest)))))
        };
        let unsent = STREAM_STATE.try_with(|state| {
            state.sending.set(polled_frame.is_ready());
            state.moved.set(state.moved.get() || polled_frame.is_ready());
            Arc::clone(&state.unsent)
        });
        let frame = match ready!(polled_frame) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => return Poll::Ready(None),
        };
        Poll::Ready(Some(Ok(frame.map_data(|mut bytes| {
            let unsent = unsent.ok();
            if let Some(unsent) = &unsent {
                this.rest = bytes.split_off(PIECE.min(bytes.len()));
                unsent.pieces.fetch_add(1, Ordering::AcqRel);
            }
            Outgoing { bytes, unsent }
        }))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if rest > 0 {
            if let Some(upper) = hint.upper() {
                hint.set_upper(upper.saturating_add(rest));
            }
            hint.set_lower(hint.lower().saturating_add(rest));
        }
        hint
    }
}

/// Runs the streams of one HTTP/2 connection, and ends those whose client reads nothing. Their
/// responses must have a [`PacedBody`].
#[derive(Clone, Debug)]
pub struct StreamExecutor {
    timeout: Duration,
    stuck: CancellationToken,
}

impl StreamExecutor {
    /// Streams with data to send may wait this long for the client to read.
    pub fn new(timeout: Duration) -> Self {
        Self { timeout, stuck: CancellationToken::new() }
    }

    /// Returns when the connection must be closed: the client does not read the end of a response, which
    /// hyper has already, so the stream can no longer be reset.
    pub fn stuck(&self) -> impl Future<Output = ()> + Send + 'static {
        self.stuck.clone().cancelled_owned()
    }

    fn with_timeout<F>(&self, stream: F) -> TimedStream<F> {
        TimedStream {
            inner: Some(Box::pin(stream)),
            timeout: self.timeout,
            stuck: self.stuck.clone(),
            sending: false,
            unsent: Arc::default(),
            timer: None,
        }
    }
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, stream: F) {
        tokio::spawn(self.with_timeout(stream));
    }
}

struct TimedStream<F> {
    /// None once hyper has the whole response.
    inner: Option<Pin<Box<F>>>,
    timeout: Duration,
    stuck: CancellationToken,
    sending: bool,
    unsent: Arc<Unsent>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Future for TimedStream<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        // Before the pieces are counted, so that no piece that is sent later is missed.
        this.unsent.stream.register(context.waker());
        let mut moved = false;
        if let Some(inner) = &mut this.inner {
            let state = StreamState {
                sending: Cell::new(this.sending),
                moved: Cell::new(false),
                unsent: Arc::clone(&this.unsent),
            };
            let (outcome, sending, polled) = STREAM_STATE.sync_scope(state, || {
                let outcome = inner.as_mut().poll(context);
                STREAM_STATE.with(|state| (outcome, state.sending.get(), state.moved.get()))
            });
            (this.sending, moved) = (sending, polled);
            if outcome.is_ready() {
                this.inner = None;
                this.sending = false;
            }
        }
        moved |= this.unsent.moved.swap(false, Ordering::AcqRel);
        if !this.sending && this.unsent.pieces.load(Ordering::Acquire) == 0 {
            this.timer = None;
            return if this.inner.is_none() { Poll::Ready(()) } else { Poll::Pending };
        }
        if moved {
            this.timer = None;
        }
        let timeout = this.timeout;
        let timer = this.timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(timer.as_mut().poll(context));
        if this.inner.is_none() {
            this.stuck.cancel();
        }
        // Dropping a stream that has more to send resets it.
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests;
