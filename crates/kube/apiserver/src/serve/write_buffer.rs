//! Write buffer of a connection.
//!
//! HTTP/2 flushes after every frame. Over TLS, each of a hundred watches of one client would then
//! cost a record and a system call for the same event. [`WriteBuffer`] collects frames while their
//! connection has more of them ready: a flush after new data only wakes the task again, and the
//! flush without new data writes everything. No timer is involved, so a single small response
//! leaves at once.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that the buffer collects at most: two TLS records.
const CAPACITY: usize = 32 * 1024;

/// A stream that writes in large pieces. It holds no buffer while idle.
#[derive(Debug)]
pub(super) struct WriteBuffer<S> {
    stream: S,
    buffer: Vec<u8>,
    /// Bytes of the buffer that the stream has accepted.
    flushed: usize,
    /// Whether data was written since the last flush.
    has_new_data: bool,
}

impl<S: AsyncWrite + Unpin> WriteBuffer<S> {
    pub(super) const fn new(stream: S) -> Self {
        Self { stream, buffer: Vec::new(), flushed: 0, has_new_data: false }
    }

    /// Writes the whole buffer to the stream.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.flushed < self.buffer.len() {
            let rest = &self.buffer[self.flushed..];
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.flushed += written;
        }
        self.buffer.clear();
        self.flushed = 0;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteBuffer<S> {
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
        let mut available = CAPACITY - this.buffer.len();
        let before = available;
        for slice in slices {
            let piece = &slice[..slice.len().min(available)];
            this.buffer.extend_from_slice(piece);
            available -= piece.len();
        }
        this.has_new_data |= available < before;
        Poll::Ready(Ok(before - available))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if std::mem::take(&mut self.has_new_data) {
            context.waker().wake_by_ref();
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_drain(context))?;
        // An idle connection keeps no buffer.
        self.buffer = Vec::new();
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteBuffer<S> {
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
    async fn writes_between_two_flushes_leave_together() {
        let (server_end, mut client_end) = tokio::io::duplex(1 << 20);
        let mut writer = WriteBuffer::new(server_end);
        let mut received = [0_u8; 8];
        poll_fn(|context| {
            for text in [b"abcd", b"efgh"] {
                let written = Pin::new(&mut writer).poll_write(context, text);
                assert!(matches!(written, Poll::Ready(Ok(4))));
                assert!(Pin::new(&mut writer).poll_flush(context).is_ready());
            }
            let mut buffer = ReadBuf::new(&mut received);
            assert!(Pin::new(&mut client_end).poll_read(context, &mut buffer).is_pending());
            // The next flush, without new data.
            assert!(Pin::new(&mut writer).poll_flush(context).is_ready());
            assert_eq!(writer.buffer.capacity(), 0);
            Poll::Ready(())
        })
        .await;
        client_end.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"abcdefgh");
    }

    #[tokio::test]
    async fn large_writes_to_a_slow_reader_lose_nothing() {
        let (server_end, mut client_end) = tokio::io::duplex(100);
        let sent: Vec<u8> = (0..=255_u8).cycle().take(3 * CAPACITY + 7).collect();
        let mut writer = WriteBuffer::new(server_end);
        let write = async {
            writer.write_all(&sent).await.unwrap();
            writer.shutdown().await.unwrap();
        };
        let mut received = Vec::new();
        let ((), read) = tokio::join!(write, client_end.read_to_end(&mut received));
        read.unwrap();
        assert!(received == sent);
    }
}
