//! Timeout of clients that do not read their responses.
//!
//! A connection whose client does not read is closed after a timeout ([`TimeoutStream`]). Until
//! then it holds only its buffers; nothing further is produced. Unread single streams of HTTP/2 end
//! after the same timeout ([`mainstay_port::StreamExecutor`]).

use mainstay_port::ConnectionHandle;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream that fails when its client reads nothing for a while. It reports received bytes to the
/// port, which bounds incomplete requests.
#[derive(Debug)]
pub(super) struct TimeoutStream<S> {
    stream: S,
    seat: ConnectionHandle,
    timeout: Duration,
    /// The timer while the client reads nothing.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> TimeoutStream<S> {
    pub(super) const fn new(stream: S, seat: ConnectionHandle, timeout: Duration) -> Self {
        Self { stream, seat, timeout, timer: None }
    }

    fn limit<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.timer = None;
            return outcome;
        }
        let timeout = self.timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
        match timer.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limit(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.limit(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.limit(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.limit(context, outcome)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutStream<S> {
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

    const TIMEOUT: Duration = Duration::from_mins(1);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_disconnected_and_a_slow_one_is_not() {
        let (server_end, mut client_end) = tokio::io::duplex(10);
        let mut stream = TimeoutStream::new(server_end, ConnectionHandle::default(), TIMEOUT);
        let write = async { stream.write_all(&[0; 40]).await };
        let read = async {
            for _ in 0..3 {
                sleep(Duration::from_secs(59)).await;
                client_end.read_exact(&mut [0; 10]).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(write, read);
        written.unwrap();
        let error = stream.write_all(&[0; 40]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
