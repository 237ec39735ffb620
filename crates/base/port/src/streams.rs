//! Answers over HTTP/2 that nobody takes.
//!
//! A connection whose other end reads nothing is cut by its socket. On HTTP/2 a client can read
//! everything else and still take nothing of one answer: it never opens the window of the stream. Then
//! the answer, or what is left of it, would be kept for as long as the client likes.
//!
//! ```text
//! answer ─► pieces ([`Paced`]) ─► window of the stream ─► socket
//!             └─ what of them is sent ─► task of the stream ([`Streams`])
//!                                          ├─ it has more to send ──► the stream is reset
//!                                          └─ all was handed over ──► the connection is cut
//! ```
//!
//! A stream that has nothing to say (a watch of what does not change) waits for ever, and one of
//! which a byte is taken now and then goes on.

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

/// Bytes that are handed over to be sent at a time. A stream can be reset while it has more.
const PIECE: usize = 64 << 10;

/// What a stream is at.
struct Pace {
    /// It has something to send, and waits for the client to take it.
    sending: Cell<bool>,
    /// Its answer was asked for more, and gave it.
    moved: Cell<bool>,
    unsent: Arc<Unsent>,
}

tokio::task_local! {
    /// What the stream that is polled now is at. Connections of HTTP/1.1 have no streams, and need none.
    static PACE: Pace;
}

/// What was handed over to be sent and is not sent yet.
#[derive(Debug, Default)]
struct Unsent {
    pieces: AtomicUsize,
    /// Some of it was sent since this was asked last.
    moved: AtomicBool,
    stream: AtomicWaker,
}

/// Bytes of an answer, which tell when some of them are sent.
#[derive(Debug)]
pub struct Outgoing {
    bytes: Bytes,
    /// None where nobody asks.
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

/// The body of an answer on a port whose streams [`Streams`] runs. Over HTTP/1.1 nothing changes.
#[derive(Debug)]
pub struct Paced<B> {
    body: B,
    /// What is left of the bytes that the body gave last.
    rest: Bytes,
}

impl<B> Paced<B> {
    /// The body of an answer that begins now.
    pub fn new(body: B) -> Self {
        let _ = PACE.try_with(|pace| {
            pace.sending.set(true);
            pace.moved.set(true);
        });
        Self { body, rest: Bytes::new() }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Paced<B> {
    type Data = Outgoing;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Outgoing>, B::Error>>> {
        let this = &mut *self;
        let given = if this.rest.is_empty() {
            Pin::new(&mut this.body).poll_frame(context)
        } else {
            Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.rest)))))
        };
        let unsent = PACE.try_with(|pace| {
            pace.sending.set(given.is_ready());
            pace.moved.set(pace.moved.get() || given.is_ready());
            Arc::clone(&pace.unsent)
        });
        let frame = match ready!(given) {
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

/// Runs the streams of one HTTP/2 connection, and ends those that nobody takes anything of. Their
/// answers must be [`Paced`].
#[derive(Clone, Debug)]
pub struct Streams {
    patience: Duration,
    stuck: CancellationToken,
}

impl Streams {
    /// For a connection of which nothing may be taken for so long while there is something.
    pub fn new(patience: Duration) -> Self {
        Self { patience, stuck: CancellationToken::new() }
    }

    /// Returns when the connection must be cut: the end of an answer was handed over, so that its stream
    /// can no longer be reset, and is not taken.
    pub fn stuck(&self) -> impl Future<Output = ()> + Send + 'static {
        self.stuck.clone().cancelled_owned()
    }

    fn stream<F>(&self, stream: F) -> Stream<F> {
        Stream {
            inner: Some(Box::pin(stream)),
            patience: self.patience,
            stuck: self.stuck.clone(),
            sending: false,
            unsent: Arc::default(),
            waiting: None,
        }
    }
}

impl<F> Executor<F> for Streams
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, stream: F) {
        tokio::spawn(self.stream(stream));
    }
}

struct Stream<F> {
    /// None once all was handed over to be sent.
    inner: Option<Pin<Box<F>>>,
    patience: Duration,
    stuck: CancellationToken,
    sending: bool,
    unsent: Arc<Unsent>,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Future for Stream<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        // Before the pieces are counted: those that are sent later are told.
        this.unsent.stream.register(context.waker());
        let mut moved = false;
        if let Some(inner) = &mut this.inner {
            let pace = Pace {
                sending: Cell::new(this.sending),
                moved: Cell::new(false),
                unsent: Arc::clone(&this.unsent),
            };
            let (outcome, sending, asked) = PACE.sync_scope(pace, || {
                let outcome = inner.as_mut().poll(context);
                PACE.with(|pace| (outcome, pace.sending.get(), pace.moved.get()))
            });
            (this.sending, moved) = (sending, asked);
            if outcome.is_ready() {
                this.inner = None;
                this.sending = false;
            }
        }
        moved |= this.unsent.moved.swap(false, Ordering::AcqRel);
        if !this.sending && this.unsent.pieces.load(Ordering::Acquire) == 0 {
            this.waiting = None;
            return if this.inner.is_none() { Poll::Ready(()) } else { Poll::Pending };
        }
        if moved {
            this.waiting = None;
        }
        let patience = this.patience;
        let waiting = this.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(waiting.as_mut().poll(context));
        if this.inner.is_none() {
            this.stuck.cancel();
        }
        // Dropping a stream that has more to send resets it.
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests;
