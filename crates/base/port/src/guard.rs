//! A connection that is cut when nothing moves on it.

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

/// A stream with deadlines: reading fails when nothing was read or written for a while, writing
/// when nothing was taken.
pub struct Guard<S> {
    stream: S,
    idle: Watchdog,
    stall: Watchdog,
}

impl<S> Guard<S> {
    /// Guards a stream; `idle` bounds reading, `stall` writing.
    pub fn new(stream: S, idle: Duration, stall: Duration) -> Self {
        Self { stream, idle: Watchdog::new(idle), stall: Watchdog::new(stall) }
    }

    /// What became of writing: whatever was taken is a sign of life.
    fn wrote<T>(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_pending() {
            return self.stall.bark(context).map(Err);
        }
        self.stall.rest();
        self.idle.rest();
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guard<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_read(context, buffer);
        if result.is_pending() {
            return this.idle.bark(context).map(Err);
        }
        this.idle.rest();
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guard<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.wrote(context, result)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.stream).poll_write_vectored(context, pieces);
        this.wrote(context, result)
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

/// A deadline that runs while somebody waits.
struct Watchdog {
    patience: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    running: bool,
}

impl Watchdog {
    fn new(patience: Duration) -> Self {
        Self { patience, timer: None, running: false }
    }

    /// Something moved.
    fn rest(&mut self) {
        self.running = false;
    }

    /// Nothing moves; ready when that has been so for too long.
    fn bark(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let patience = self.patience;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(patience)));
        if !self.running {
            timer.set(sleep(patience));
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
    async fn who_sends_nothing_is_cut() {
        let (_client, server) = duplex(64);
        let error = Guard::new(server, IDLE, STALL).read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_cut_and_who_takes_little_is_not() {
        let (mut client, server) = duplex(64);
        let reader = tokio::spawn(async move {
            for _ in 0..4 {
                sleep(STALL * 2 / 3).await;
                let mut bytes = [0; 32];
                client.read_exact(&mut bytes).await.unwrap();
            }
            client
        });
        let mut guard = Guard::new(server, IDLE, STALL);
        guard.write_all(&[1; 64 + 4 * 32]).await.unwrap();
        let _client = reader.await.unwrap();
        let error = guard.write_all(&[1]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn time_counts_from_the_last_sign_of_life() {
        let (mut client, server) = duplex(64);
        let writer = tokio::spawn(async move {
            for _ in 0..4 {
                sleep(IDLE * 2 / 3).await;
                client.write_all(&[7]).await.unwrap();
            }
            client
        });
        let mut guard = Guard::new(server, IDLE, STALL);
        for _ in 0..4 {
            assert_eq!(guard.read_u8().await.unwrap(), 7);
        }
        drop(writer.await.unwrap());
    }
}
