//! A byte stream through WebSocket: binary messages whose bounds have no meaning. The `SPDY/3.1+…`
//! protocols use it for SPDY.

use super::upgrade::WebSocketConnection;
use bytes::{Buf as _, Bytes};
use futures::{Sink as _, Stream as _};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite::{Error, Message};

/// A byte stream over a WebSocket connection.
#[derive(Debug)]
pub(super) struct Tunnel {
    socket: WebSocketConnection,
    /// The unread part of the last message.
    rest: Bytes,
}

impl Tunnel {
    pub(super) fn new(socket: WebSocketConnection) -> Self {
        Self { socket, rest: Bytes::new() }
    }
}

fn io_error(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        other => io::Error::other(other),
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                None | Some(Ok(Message::Close(_))) => return Poll::Ready(Ok(())),
                Some(Ok(Message::Binary(bytes))) => self.rest = bytes,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(_)) => {
                    let message = "a message is not binary";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, message)));
                }
                Some(Err(error)) => return Poll::Ready(Err(io_error(error))),
            }
        }
        let length = self.rest.len().min(buffer.remaining());
        buffer.put_slice(self.rest.get(..length).unwrap_or_default());
        self.rest.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut socket = Pin::new(&mut self.socket);
        ready!(socket.as_mut().poll_ready(cx)).map_err(io_error)?;
        socket.start_send(Message::Binary(Bytes::copy_from_slice(bytes))).map_err(io_error)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx).map_err(io_error)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_close(cx).map_err(io_error)
    }
}
