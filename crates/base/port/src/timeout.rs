//! Read and write timeouts of a connection.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// A stream with timeouts: a read fails when no byte was read or written for `idle`, a write when no
/// byte was accepted for `stall`.
pub struct TimeoutStream<S> {
    stream: S,
    idle: IdleTimer,
    stall: IdleTimer,
}

impl<S> TimeoutStream<S> {
    /// Wraps a stream; `idle` limits reads, `stall` writes.
    pub fn new(stream: S, idle: Duration, stall: Duration) -> Self {
        Self { stream, idle: IdleTimer::new(idle), stall: IdleTimer::new(stall) }
    }

    /// Handles the result of a write; any progress resets both timers.
    fn after_write<T>(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_pending() {
            return self.stall.poll_expired(context).map(Err);
        }
        self.stall.reset();
        self.idle.reset();
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_read(context, buffer);
        if result.is_pending() {
            return this.idle.poll_expired(context).map(Err);
        }
        this.idle.reset();
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.after_write(context, result)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_write_vectored(context, pieces);
        this.after_write(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

/// A timeout that runs only while an operation is pending.
struct IdleTimer {
    timeout: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    running: bool,
}

impl IdleTimer {
    fn new(timeout: Duration) -> Self {
        Self { timeout, timer: None, running: false }
    }

    /// Stops the timer because of progress.
    fn reset(&mut self) {
        self.running = false;
    }

    /// Starts the timer unless it runs; ready when it has expired.
    fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let timeout = self.timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
        if !self.running {
            timer.set(sleep(timeout));
            self.running = true;
        }
        timer.as_mut().poll(context).map(|()| {
            io::Error::new(io::ErrorKind::TimedOut, "nothing moved on this connection for too long")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    const IDLE: Duration = Duration::from_secs(9);
    const STALL: Duration = Duration::from_secs(3);

    #[tokio::test(start_paused = true)]
    async fn a_read_times_out_when_the_client_sends_nothing() {
        let (_client, server) = duplex(64);
        let error = TimeoutStream::new(server, IDLE, STALL).read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_times_out_when_the_client_reads_nothing_and_not_when_it_reads_little() {
        let (mut client, server) = duplex(64);
        let reader = tokio::spawn(async move {
            for _ in 0..4 {
                sleep(STALL * 2 / 3).await;
                let mut bytes = [0; 32];
                client.read_exact(&mut bytes).await.unwrap();
            }
            client
        });
        let mut stream = TimeoutStream::new(server, IDLE, STALL);
        stream.write_all(&[1; 64 + 4 * 32]).await.unwrap();
        let _client = reader.await.unwrap();
        let error = stream.write_all(&[1]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn the_idle_timeout_counts_from_the_last_byte() {
        let (mut client, server) = duplex(64);
        let writer = tokio::spawn(async move {
            for _ in 0..4 {
                sleep(IDLE * 2 / 3).await;
                client.write_all(&[7]).await.unwrap();
            }
            client
        });
        let mut stream = TimeoutStream::new(server, IDLE, STALL);
        for _ in 0..4 {
            assert_eq!(stream.read_u8().await.unwrap(), 7);
        }
        drop(writer.await.unwrap());
    }
}
