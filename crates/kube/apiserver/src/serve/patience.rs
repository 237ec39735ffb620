//! Clients that take nothing of what they asked for.
//!
//! A connection whose other end does not read is cut after a while ([`Patient`]): until then it holds
//! what its buffers hold, and nothing that is made on demand is made. On HTTP/2 a client can leave a
//! single stream unread while it reads others; such a stream is reset after the same while
//! ([`Streams`]). A stream that has nothing to say (a watch of what does not change) waits for ever.

use http_body::Frame;
use hyper::rt::Executor;
use mainstay_port::Seat;
use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream that fails when the other end takes nothing for a while, and says to the port how much came
/// of a request that is not complete.
#[derive(Debug)]
pub(super) struct Patient<S> {
    stream: S,
    seat: Seat,
    patience: Duration,
    /// There while the other end takes nothing.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(super) const fn new(stream: S, seat: Seat, patience: Duration) -> Self {
        Self { stream, seat, patience, waiting: None }
    }

    fn bounded<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.waiting = None;
            return outcome;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bounded(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.bounded(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.bounded(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.bounded(context, outcome)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.seat.received(buffer.filled().len() - before);
        outcome
    }
}

/// What a stream is at.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// It has something to send, and waits for the client to take it.
    sending: bool,
    /// Its body was asked for more.
    moved: bool,
}

tokio::task_local! {
    /// What the stream that is polled now is at.
    static PACE: Cell<Pace>;
}

/// Notes that there is an answer, which is to be sent.
pub(super) fn begun() {
    // Connections of HTTP/1.1 have no streams, and need none.
    let _ = PACE.try_with(|pace| pace.set(Pace { sending: true, moved: true }));
}

/// Notes what the body of an answer gave when it was asked.
pub(super) fn asked<D, E>(outcome: &Poll<Option<Result<Frame<D>, E>>>) {
    let _ = PACE.try_with(|pace| pace.set(Pace { sending: outcome.is_ready(), moved: true }));
}

/// Runs the streams of HTTP/2 connections, and ends those that nobody takes anything of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams(pub(super) Duration);

impl<F> Executor<F> for Streams
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, stream: F) {
        tokio::spawn(Stream {
            inner: Box::pin(stream),
            patience: self.0,
            sending: false,
            waiting: None,
        });
    }
}

struct Stream<F> {
    inner: Pin<Box<F>>,
    patience: Duration,
    sending: bool,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Future for Stream<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let pace = Cell::new(Pace { sending: this.sending, moved: false });
        let (outcome, pace) = PACE.sync_scope(pace, || {
            let outcome = this.inner.as_mut().poll(context);
            (outcome, PACE.with(Cell::get))
        });
        this.sending = pace.sending;
        if outcome.is_ready() {
            return Poll::Ready(());
        }
        if !pace.sending {
            this.waiting = None;
            return Poll::Pending;
        }
        if pace.moved {
            this.waiting = None;
        }
        let patience = this.patience;
        let waiting = this.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        // Dropping the stream resets it.
        waiting.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const WHILE: Duration = Duration::from_mins(1);

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_cut_and_who_takes_a_little_is_not() {
        let (near, mut far) = tokio::io::duplex(10);
        let mut patient = Patient::new(near, Seat::default(), WHILE);
        let write = async { patient.write_all(&[0; 40]).await };
        let read = async {
            for _ in 0..3 {
                sleep(Duration::from_secs(59)).await;
                far.read_exact(&mut [0; 10]).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(write, read);
        written.unwrap();
        let cut = patient.write_all(&[0; 40]).await.unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_what_it_has_to_send_is_not_taken() {
        type Given = Poll<Option<Result<Frame<()>, ()>>>;
        for (given, ends) in [(Given::Ready(None), true), (Given::Pending, false)] {
            let stream = std::future::poll_fn(move |_: &mut Context<'_>| {
                begun();
                asked(&given);
                Poll::<()>::Pending
            });
            let mut stream =
                Stream { inner: Box::pin(stream), patience: WHILE, sending: false, waiting: None };
            let mut context = Context::from_waker(Waker::noop());
            assert!(Pin::new(&mut stream).poll(&mut context).is_pending());
            assert_eq!(stream.waiting.is_some(), ends);
        }
    }
}
