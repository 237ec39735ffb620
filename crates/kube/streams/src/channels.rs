//! Channels over WebSocket: messages with the number of their channel in front.

use super::upgrade::Socket;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf as _, Bytes, BytesMut};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

/// How often the client is asked whether it is still there.
const PING: Duration = Duration::from_secs(20);
/// A client that says nothing for so long is gone.
const SILENCE: Duration = Duration::from_mins(1);
/// How long a client may take to end a connection that is over.
const GOODBYE: Duration = Duration::from_secs(1);

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// A byte for the channel, then bytes as they are; nothing else is taken.
    Binary,
    /// A digit for the channel, then base64.
    Base64,
}

/// Where messages go.
#[derive(Debug)]
pub(super) struct Sink {
    socket: Mutex<SplitSink<Socket, Message>>,
    code: Code,
}

/// Where messages come from.
#[derive(Debug)]
pub(super) struct Source {
    socket: SplitStream<Socket>,
    code: Code,
}

pub(super) fn split(socket: Socket, code: Code) -> (Sink, Source) {
    let (sink, source) = socket.split();
    (Sink { socket: Mutex::new(sink), code }, Source { socket: source, code })
}

impl Sink {
    /// Sends bytes on a channel; none if the client does not take them.
    pub(super) async fn send(&self, channel: u8, bytes: &[u8]) -> Option<()> {
        let message = match self.code {
            Code::Binary => {
                let mut message = BytesMut::with_capacity(bytes.len() + 1);
                message.extend_from_slice(&[channel]);
                message.extend_from_slice(bytes);
                Message::Binary(message.freeze())
            }
            Code::Base64 => {
                let digit = char::from(b'0'.wrapping_add(channel));
                Message::Text(format!("{digit}{}", STANDARD.encode(bytes)).into())
            }
        };
        self.socket.lock().await.send(message).await.ok()
    }

    /// Asks the client for a sign of life from time to time, until asking fails.
    pub(super) async fn ask(&self) {
        loop {
            tokio::time::sleep(PING).await;
            if self.socket.lock().await.send(Message::Ping(Bytes::new())).await.is_err() {
                return;
            }
        }
    }
}

impl Source {
    /// The next message and its channel; none if the client has gone or breaks the protocol.
    pub(super) async fn next(&mut self) -> Option<(u8, Bytes)> {
        loop {
            let message = timeout(SILENCE, self.socket.next()).await.ok()??.ok()?;
            let mut bytes = match (message, self.code) {
                (Message::Binary(bytes), _) => bytes,
                (Message::Text(text), Code::Base64) => text.into(),
                (Message::Ping(_) | Message::Pong(_), _) => continue,
                _ => return None,
            };
            let Ok(channel) = bytes.try_get_u8() else { continue };
            return Some(match self.code {
                Code::Binary => (channel, bytes),
                Code::Base64 => (channel.wrapping_sub(b'0'), STANDARD.decode(bytes).ok()?.into()),
            });
        }
    }
}

/// Ends a connection.
pub(super) async fn goodbye(sink: Sink, mut source: Source) {
    // Clients take an end without a code for a broken one. What was sent arrives only if nothing is
    // left unread when the connection is closed; whoever does not say goodbye in return is not
    // waited for.
    let close = async {
        let normal = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
        sink.socket.lock().await.send(Message::Close(Some(normal))).await?;
        while source.socket.next().await.transpose()?.is_some() {}
        Ok::<_, tokio_tungstenite::tungstenite::Error>(())
    };
    let _ = timeout(GOODBYE, close).await;
}
