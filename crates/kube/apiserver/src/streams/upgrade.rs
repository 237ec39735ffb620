//! From a request to a connection that speaks something else: the WebSocket handshake (RFC 6455,
//! section 4.2) and the choice among the protocols that the client offers.

use crate::handlers::Request;
use crate::http::answer::Answer;
use crate::server::text;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use http::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use mainstay_object::{Reason, Status};
use std::future::Future;
use tokio::sync::OwnedSemaphorePermit;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// Bytes of one message, at most; clients send 32 KiB at a time.
const MESSAGE: usize = 1 << 20;
/// Bytes that are read from a connection at once; every connection keeps room for them.
const READ: usize = 16 * 1024;

/// A connection that speaks WebSocket.
pub(super) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// A client that may change to another protocol.
#[derive(Debug)]
pub(super) struct Offer {
    on_upgrade: OnUpgrade,
    accept: HeaderValue,
    /// The protocol that is chosen.
    pub(super) protocol: &'static str,
    permit: OwnedSemaphorePermit,
}

impl Offer {
    /// What a request offers, if one of `known` is among it; the client's order counts.
    pub(super) fn read(request: &Request<'_>, known: &[&'static str]) -> Result<Self, Status> {
        let headers = request.headers;
        let offered = text(headers, &UPGRADE).unwrap_or_default();
        if offered.is_empty() || !has_word(headers, &CONNECTION, "upgrade") {
            return Err(Status::bad_request("Upgrade request required"));
        }
        if !offered.eq_ignore_ascii_case("websocket") {
            return Err(Status::bad_request(format!(
                "unable to upgrade: {offered} is not spoken here, only websocket is"
            )));
        }
        if text(headers, &SEC_WEBSOCKET_VERSION) != Some("13") {
            return Err(Status::bad_request("unable to upgrade: only version 13 is spoken"));
        }
        let Some(key) = headers.get(SEC_WEBSOCKET_KEY) else {
            return Err(Status::bad_request("unable to upgrade: Sec-WebSocket-Key is missing"));
        };
        let offers: Vec<&str> = words(headers, &SEC_WEBSOCKET_PROTOCOL).collect();
        let chosen = offers.iter().find_map(|offer| known.iter().find(|one| *one == offer));
        let Some(protocol) = chosen.copied() else {
            return Err(Status::bad_request(format!(
                "unable to upgrade: none of the protocols {offers:?} is spoken, only {known:?}"
            )));
        };
        // Requests of this process have no connection that could change.
        let Some(on_upgrade) = request.on_upgrade.clone() else {
            return Err(Status::bad_request(
                "unable to upgrade: the request came over no connection of HTTP/1.1",
            ));
        };
        let sessions = request.server.native_pods.sessions.clone();
        let permit = sessions.try_acquire_owned().map_err(|_| {
            Status::new(Reason::TooManyRequests, "too many streams are open, try again later")
                .retry_after(1)
        })?;
        Ok(Self { on_upgrade, accept: accept(key.as_bytes()), protocol, permit })
    }

    /// The answer that agrees; `serve` is given the connection once the client has it.
    pub(super) fn agree<F, S>(self, request: &Request<'_>, serve: F) -> Answer
    where
        F: FnOnce(Socket) -> S + Send + 'static,
        S: Future<Output = ()> + Send,
    {
        let Self { on_upgrade, accept, protocol, permit } = self;
        let stop = request.server.stop.clone();
        let serving = async move {
            let connection = match on_upgrade.await {
                Ok(connection) => TokioIo::new(connection),
                Err(error) => {
                    tracing::debug!(%error, "a client went before its stream began");
                    return;
                }
            };
            let config = WebSocketConfig::default()
                .read_buffer_size(READ)
                .max_message_size(Some(MESSAGE))
                .max_frame_size(Some(MESSAGE))
                // What waits to be written is what the connection did not take of one message.
                .write_buffer_size(0);
            let socket =
                WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
            serve(socket).await;
        };
        tokio::spawn(async move {
            tokio::select! {
                () = serving => {}
                () = stop.cancelled() => {}
            }
            drop(permit);
        });
        Answer::empty(StatusCode::SWITCHING_PROTOCOLS)
            .header(CONNECTION, HeaderValue::from_static("Upgrade"))
            .header(UPGRADE, HeaderValue::from_static("websocket"))
            .header(SEC_WEBSOCKET_ACCEPT, accept)
            .header(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol))
    }
}

/// The words of a header, with commas between them, in one line or several.
fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    words(headers, name).any(|one| one.eq_ignore_ascii_case(word))
}

/// What proves that the key was read.
fn accept(key: &[u8]) -> HeaderValue {
    let mut context = ring::digest::Context::new(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(key);
    context.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let text = STANDARD.encode(context.finish());
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proof_is_that_of_the_standard() {
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
