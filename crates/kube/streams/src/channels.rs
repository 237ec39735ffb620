//! Channels over WebSocket: messages that begin with the number of their channel.

use super::upgrade::WebSocketConnection;
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

/// The interval of pings to the client.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// The connection is closed after this long without a message of the client.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a client may take to close its side of a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The encoding of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChannelEncoding {
    /// A byte for the channel, then the bytes; text messages are rejected.
    Binary,
    /// A digit for the channel, then base64.
    Base64,
}

/// The sending half of a connection with channels.
#[derive(Debug)]
pub(super) struct ChannelSink {
    socket: Mutex<SplitSink<WebSocketConnection, Message>>,
    encoding: ChannelEncoding,
}

/// The receiving half of a connection with channels.
#[derive(Debug)]
pub(super) struct ChannelSource {
    socket: SplitStream<WebSocketConnection>,
    encoding: ChannelEncoding,
}

pub(super) fn split(
    socket: WebSocketConnection,
    encoding: ChannelEncoding,
) -> (ChannelSink, ChannelSource) {
    let (sink, source) = socket.split();
    (ChannelSink { socket: Mutex::new(sink), encoding }, ChannelSource { socket: source, encoding })
}

impl ChannelSink {
    /// Sends bytes on a channel; none if the client does not receive them.
    pub(super) async fn send(&self, channel: u8, bytes: &[u8]) -> Option<()> {
        let message = match self.encoding {
            ChannelEncoding::Binary => {
                let mut message = BytesMut::with_capacity(bytes.len() + 1);
                message.extend_from_slice(&[channel]);
                message.extend_from_slice(bytes);
                Message::Binary(message.freeze())
            }
            ChannelEncoding::Base64 => {
                let digit = char::from(b'0'.wrapping_add(channel));
                Message::Text(format!("{digit}{}", STANDARD.encode(bytes)).into())
            }
        };
        self.socket.lock().await.send(message).await.ok()
    }

    /// Sends pings until one fails.
    pub(super) async fn send_pings(&self) {
        loop {
            tokio::time::sleep(PING_INTERVAL).await;
            if self.socket.lock().await.send(Message::Ping(Bytes::new())).await.is_err() {
                return;
            }
        }
    }
}

impl ChannelSource {
    /// The next message and its channel; none if the client closed the connection or broke the
    /// protocol.
    pub(super) async fn next(&mut self) -> Option<(u8, Bytes)> {
        loop {
            let message = timeout(IDLE_TIMEOUT, self.socket.next()).await.ok()??.ok()?;
            let mut bytes = match (message, self.encoding) {
                (Message::Binary(bytes), _) => bytes,
                (Message::Text(text), ChannelEncoding::Base64) => text.into(),
                (Message::Ping(_) | Message::Pong(_), _) => continue,
                _ => return None,
            };
            let Ok(channel) = bytes.try_get_u8() else { continue };
            return Some(match self.encoding {
                ChannelEncoding::Binary => (channel, bytes),
                ChannelEncoding::Base64 => {
                    (channel.wrapping_sub(b'0'), STANDARD.decode(bytes).ok()?.into())
                }
            });
        }
    }
}

/// Closes a connection.
pub(super) async fn close(sink: ChannelSink, mut source: ChannelSource) {
    // Clients treat a close without a code as an error. Sent data arrives only if no data is left
    // unread when the connection is closed. A client that does not close its side is not waited
    // for.
    let close = async {
        let normal = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
        sink.socket.lock().await.send(Message::Close(Some(normal))).await?;
        while source.socket.next().await.transpose()?.is_some() {}
        Ok::<_, tokio_tungstenite::tungstenite::Error>(())
    };
    let _ = timeout(CLOSE_TIMEOUT, close).await;
}
