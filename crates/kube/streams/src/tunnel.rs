//! Bytes over WebSocket: binary messages, whose bounds mean nothing. What `SPDY/3.1+…` protocols
//! speak SPDY through.

use super::upgrade::Socket;
use bytes::{Buf as _, Bytes};
use futures::{Sink as _, Stream as _};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite::{Error, Message};

/// A connection of bytes through one of messages.
#[derive(Debug)]
pub(super) struct Tunnel {
    socket: Socket,
    /// What is left of the last message.
    rest: Bytes,
}

impl Tunnel {
    pub(super) fn new(socket: Socket) -> Self {
        Self { socket, rest: Bytes::new() }
    }
}

fn failed(error: Error) -> io::Error {
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
                    let why = "a message is not binary";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
                }
                Some(Err(error)) => return Poll::Ready(Err(failed(error))),
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
        ready!(socket.as_mut().poll_ready(cx)).map_err(failed)?;
        socket.start_send(Message::Binary(Bytes::copy_from_slice(bytes))).map_err(failed)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx).map_err(failed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_close(cx).map_err(failed)
    }
}
