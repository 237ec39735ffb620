//! Clients that take nothing of what they asked for.
//!
//! A connection whose other end does not read is cut after a while ([`Patient`]): until then it holds
//! what its buffers hold, and nothing that is made on demand is made. Single streams of HTTP/2 that are
//! left unread end after the same while ([`mainstay_port::StreamExecutor`]).

use mainstay_port::ConnectionHandle;
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
    seat: ConnectionHandle,
    patience: Duration,
    /// There while the other end takes nothing.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(super) const fn new(stream: S, seat: ConnectionHandle, patience: Duration) -> Self {
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
        self.seat.count_received(buffer.filled().len() - before);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const WHILE: Duration = Duration::from_mins(1);

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_cut_and_who_takes_a_little_is_not() {
        let (near, mut far) = tokio::io::duplex(10);
        let mut patient = Patient::new(near, ConnectionHandle::default(), WHILE);
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
}
