//! From a request to a connection that speaks something else: the WebSocket handshake (RFC 6455,
//! section 4.2) or that of SPDY, and the choice among the protocols that the client offers.

use crate::StreamRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use http::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use mainstay_http::header_text as text;
use mainstay_http::response::ApiResponse;
use mainstay_object::{Reason, Status};
use std::future::Future;
use tokio::sync::OwnedSemaphorePermit;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// Bytes of one message, at most; clients send 32 KiB at a time.
const MESSAGE: usize = 1 << 20;
/// Bytes that are read from a connection at once; every connection keeps room for them.
const READ: usize = 16 * 1024;
/// What SPDY calls itself where connections change.
const SPDY: &str = "SPDY/3.1";
/// The protocols that a client offers to speak over SPDY, and the one that is chosen.
const VERSION: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// A connection that has changed.
pub(super) type Connection = TokioIo<Upgraded>;
/// A connection that speaks WebSocket.
pub(super) type Socket = WebSocketStream<Connection>;

/// Which protocols are spoken.
#[derive(Debug)]
pub(super) struct Known {
    /// Over WebSocket; an empty one if the client need not name any.
    pub(super) websocket: &'static [&'static str],
    /// Over SPDY.
    pub(super) spdy: &'static [&'static str],
}

/// What a connection changes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// WebSocket, and what proves that the client's key was read.
    WebSocket(HeaderValue),
    /// SPDY/3.1.
    Spdy,
}

/// A client that may change to another protocol.
#[derive(Debug)]
pub(super) struct EndpointForms {
    on_upgrade: OnUpgrade,
    /// What the connection changes to.
    pub(super) way: Way,
    /// The protocol that is chosen.
    pub(super) protocol: &'static str,
    permit: OwnedSemaphorePermit,
}

impl EndpointForms {
    /// What a request offers, if one of the known protocols is among it; the client's order counts.
    pub(super) fn read(request: &StreamRequest<'_>, known: &Known) -> Result<Self, Status> {
        let headers = request.headers;
        let offered = text(headers, &UPGRADE).unwrap_or_default();
        if offered.is_empty() || !has_word(headers, &CONNECTION, "upgrade") {
            return Err(Status::bad_request("Upgrade request required"));
        }
        let (way, protocol) = if offered.eq_ignore_ascii_case("websocket") {
            web_socket(headers, known.websocket)?
        } else if offered.eq_ignore_ascii_case(SPDY) {
            (Way::Spdy, spdy(headers, known.spdy)?)
        } else {
            return Err(Status::bad_request(format!(
                "unable to upgrade: {offered} is not spoken here, only websocket and {SPDY} are"
            )));
        };
        // Requests of this process have no connection that could change.
        let Some(on_upgrade) = request.on_upgrade.cloned() else {
            return Err(Status::bad_request(
                "unable to upgrade: the request came over no connection of HTTP/1.1",
            ));
        };
        let permit = permit(request)?;
        Ok(Self { on_upgrade, way, protocol, permit })
    }

    /// The answer that agrees; `serve` is given the connection once the client has it.
    pub(super) fn agree<F, S>(self, request: &StreamRequest<'_>, serve: F) -> ApiResponse
    where
        F: FnOnce(Connection) -> S + Send + 'static,
        S: Future<Output = ()> + Send,
    {
        let Self { on_upgrade, way, protocol, permit } = self;
        let stop = request.stop.clone();
        let serving = async move {
            match on_upgrade.await {
                Ok(connection) => serve(TokioIo::new(connection)).await,
                Err(error) => tracing::debug!(%error, "a client went before its stream began"),
            }
        };
        tokio::spawn(async move {
            tokio::select! {
                () = serving => {}
                () = stop.cancelled() => {}
            }
            drop(permit);
        });
        let answer = ApiResponse::empty(StatusCode::SWITCHING_PROTOCOLS)
            .header(CONNECTION, HeaderValue::from_static("Upgrade"));
        let protocol = HeaderValue::from_static(protocol);
        match way {
            Way::Spdy => {
                answer.header(UPGRADE, HeaderValue::from_static(SPDY)).header(VERSION, protocol)
            }
            Way::WebSocket(accept) => {
                let answer = answer
                    .header(UPGRADE, HeaderValue::from_static("websocket"))
                    .header(SEC_WEBSOCKET_ACCEPT, accept);
                if protocol.is_empty() {
                    answer
                } else {
                    answer.header(SEC_WEBSOCKET_PROTOCOL, protocol)
                }
            }
        }
    }
}

/// Room for one more stream, or connection that is passed on.
pub(super) fn permit(request: &StreamRequest<'_>) -> Result<OwnedSemaphorePermit, Status> {
    let sessions = request.native_pods.sessions.clone();
    sessions.try_acquire_owned().map_err(|_| {
        let why = "too many streams are open, try again later";
        Status::new(Reason::TooManyRequests, why).retry_after(1)
    })
}

/// A connection that has changed to WebSocket.
pub(super) async fn socket(connection: Connection) -> Socket {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ)
        .max_message_size(Some(MESSAGE))
        .max_frame_size(Some(MESSAGE))
        // What waits to be written is what the connection did not take of one message.
        .write_buffer_size(0);
    WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await
}

fn web_socket(
    headers: &HeaderMap,
    known: &'static [&'static str],
) -> Result<(Way, &'static str), Status> {
    if text(headers, &SEC_WEBSOCKET_VERSION) != Some("13") {
        return Err(Status::bad_request("unable to upgrade: only version 13 is spoken"));
    }
    let Some(key) = headers.get(SEC_WEBSOCKET_KEY) else {
        return Err(Status::bad_request("unable to upgrade: Sec-WebSocket-Key is missing"));
    };
    let mut offers: Vec<&str> = words(headers, &SEC_WEBSOCKET_PROTOCOL).collect();
    if offers.is_empty() {
        offers.push("");
    }
    let protocol = choice(&offers, known).ok_or_else(|| {
        Status::bad_request(format!(
            "unable to upgrade: none of the protocols {offers:?} is spoken, only {known:?}"
        ))
    })?;
    Ok((Way::WebSocket(accept(key.as_bytes())), protocol))
}

fn spdy(headers: &HeaderMap, known: &'static [&'static str]) -> Result<&'static str, Status> {
    let offers: Vec<&str> = words(headers, &VERSION).collect();
    if offers.is_empty() {
        return Err(Status::bad_request(
            "unable to upgrade: header X-Stream-Protocol-Version names no protocol",
        ));
    }
    choice(&offers, known).ok_or_else(|| {
        let list = |words: &[&str]| words.join(" ");
        Status::new(
            Reason::Forbidden,
            format!(
                "unable to upgrade: unable to negotiate protocol: client supports [{}], server accepts [{}]",
                list(&offers),
                list(known)
            ),
        )
    })
}

fn choice(offers: &[&str], known: &'static [&'static str]) -> Option<&'static str> {
    offers.iter().find_map(|offer| known.iter().find(|one| *one == offer)).copied()
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
