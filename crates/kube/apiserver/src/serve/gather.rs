//! Writes of a connection, gathered.
//!
//! HTTP/2 flushes after every frame, which over TLS means a record and a system call for each of a
//! hundred watches of one client that are told the same thing. [`Gathered`] lets frames collect for
//! as long as their connection has more of them at hand: a flush with something new behind it only
//! asks for another turn, and the turn that brings nothing new writes everything out. Nothing waits
//! for a timer, so a single small answer leaves at once.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that collect at most: two records of TLS.
const CAPACITY: usize = 32 * 1024;

/// A stream that writes in large pieces. While idle it holds no buffer.
#[derive(Debug)]
pub(super) struct Gathered<S> {
    stream: S,
    buffer: Vec<u8>,
    /// How much of the buffer the stream has taken.
    taken: usize,
    /// Whether something was written since the last flush.
    fresh: bool,
}

impl<S: AsyncWrite + Unpin> Gathered<S> {
    pub(super) const fn new(stream: S) -> Self {
        Self { stream, buffer: Vec::new(), taken: 0, fresh: false }
    }

    /// Gives everything that has collected to the stream.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.taken < self.buffer.len() {
            let rest = &self.buffer[self.taken..];
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.taken += written;
        }
        self.buffer.clear();
        self.taken = 0;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathered<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.buffer.len() >= CAPACITY {
            ready!(self.poll_drain(context))?;
        }
        let this = &mut *self;
        if this.buffer.capacity() == 0 {
            this.buffer.reserve_exact(CAPACITY);
        }
        let mut room = CAPACITY - this.buffer.len();
        let before = room;
        for slice in slices {
            let piece = &slice[..slice.len().min(room)];
            this.buffer.extend_from_slice(piece);
            room -= piece.len();
        }
        this.fresh |= room < before;
        Poll::Ready(Ok(before - room))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if std::mem::take(&mut self.fresh) {
            context.waker().wake_by_ref();
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_drain(context))?;
        // A connection that has nothing to say keeps no room for it.
        self.buffer = Vec::new();
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test]
    async fn what_is_written_between_two_turns_leaves_together() {
        let (near, mut far) = tokio::io::duplex(1 << 20);
        let mut gathered = Gathered::new(near);
        let mut seen = [0_u8; 8];
        poll_fn(|context| {
            for text in [b"abcd", b"efgh"] {
                let written = Pin::new(&mut gathered).poll_write(context, text);
                assert!(matches!(written, Poll::Ready(Ok(4))));
                assert!(Pin::new(&mut gathered).poll_flush(context).is_ready());
            }
            let mut buffer = ReadBuf::new(&mut seen);
            assert!(Pin::new(&mut far).poll_read(context, &mut buffer).is_pending());
            // The next turn, which brings nothing.
            assert!(Pin::new(&mut gathered).poll_flush(context).is_ready());
            assert_eq!(gathered.buffer.capacity(), 0);
            Poll::Ready(())
        })
        .await;
        far.read_exact(&mut seen).await.unwrap();
        assert_eq!(&seen, b"abcdefgh");
    }

    #[tokio::test]
    async fn more_than_fits_and_a_slow_reader_lose_nothing() {
        let (near, mut far) = tokio::io::duplex(100);
        let sent: Vec<u8> = (0..=255_u8).cycle().take(3 * CAPACITY + 7).collect();
        let mut gathered = Gathered::new(near);
        let write = async {
            gathered.write_all(&sent).await.unwrap();
            gathered.shutdown().await.unwrap();
        };
        let mut got = Vec::new();
        let ((), read) = tokio::join!(write, far.read_to_end(&mut got));
        read.unwrap();
        assert!(got == sent);
    }
}
