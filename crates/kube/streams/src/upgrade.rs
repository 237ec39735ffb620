//! Connection upgrades: the handshakes of WebSocket (RFC 6455, section 4.2) and SPDY, and the
//! choice among the client's protocols.

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

/// The largest message in bytes; clients send 32 KiB at a time.
const MAX_MESSAGE: usize = 1 << 20;
/// The read buffer of each connection, in bytes.
const READ_BUFFER: usize = 16 * 1024;
/// The name of SPDY in the header `Upgrade`.
const SPDY: &str = "SPDY/3.1";
/// The header with the client's protocols over SPDY, and with the chosen one.
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// A connection after the upgrade.
pub(super) type UpgradedConnection = TokioIo<Upgraded>;
/// A WebSocket connection.
pub(super) type WebSocketConnection = WebSocketStream<UpgradedConnection>;

/// The protocols that an endpoint supports.
#[derive(Debug)]
pub(super) struct SupportedProtocols {
    /// Over WebSocket; an empty one if the client may name none.
    pub(super) websocket: &'static [&'static str],
    /// Over SPDY.
    pub(super) spdy: &'static [&'static str],
}

/// The protocol after the upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// WebSocket, and the value of `Sec-WebSocket-Accept`.
    WebSocket(HeaderValue),
    /// SPDY/3.1.
    Spdy,
}

/// An upgrade that a client requests.
#[derive(Debug)]
pub(super) struct ProtocolUpgrade {
    on_upgrade: OnUpgrade,
    /// The protocol after the upgrade.
    pub(super) transport: Transport,
    /// The chosen protocol over it.
    pub(super) protocol: &'static str,
    permit: OwnedSemaphorePermit,
}

impl ProtocolUpgrade {
    /// Reads the upgrade of a request; an error without a supported protocol. The order of the
    /// client counts.
    pub(super) fn read(
        request: &StreamRequest<'_>,
        supported: &SupportedProtocols,
    ) -> Result<Self, Status> {
        let headers = request.headers;
        let offered = text(headers, &UPGRADE).unwrap_or_default();
        if offered.is_empty() || !has_word(headers, &CONNECTION, "upgrade") {
            return Err(Status::bad_request("Upgrade request required"));
        }
        let (transport, protocol) = if offered.eq_ignore_ascii_case("websocket") {
            choose_websocket(headers, supported.websocket)?
        } else if offered.eq_ignore_ascii_case(SPDY) {
            (Transport::Spdy, choose_spdy(headers, supported.spdy)?)
        } else {
            return Err(Status::bad_request(format!(
                "unable to upgrade: {offered} is not supported, only websocket and {SPDY} are"
            )));
        };
        // In-process requests have no connection that could be upgraded.
        let Some(on_upgrade) = request.on_upgrade.cloned() else {
            return Err(Status::bad_request(
                "unable to upgrade: the request has no HTTP/1.1 connection",
            ));
        };
        let permit = acquire_permit(request)?;
        Ok(Self { on_upgrade, transport, protocol, permit })
    }

    /// The response that accepts the upgrade; `serve` gets the connection once the client has the
    /// response.
    pub(super) fn accept<F, S>(self, request: &StreamRequest<'_>, serve: F) -> ApiResponse
    where
        F: FnOnce(UpgradedConnection) -> S + Send + 'static,
        S: Future<Output = ()> + Send,
    {
        let Self { on_upgrade, transport, protocol, permit } = self;
        let stop = request.stop.clone();
        let serving = async move {
            match on_upgrade.await {
                Ok(connection) => serve(TokioIo::new(connection)).await,
                Err(error) => {
                    tracing::debug!(%error, "a client closed its connection before the upgrade");
                }
            }
        };
        tokio::spawn(async move {
            tokio::select! {
                () = serving => {}
                () = stop.cancelled() => {}
            }
            drop(permit);
        });
        let response = ApiResponse::empty(StatusCode::SWITCHING_PROTOCOLS)
            .header(CONNECTION, HeaderValue::from_static("Upgrade"));
        let protocol = HeaderValue::from_static(protocol);
        match transport {
            Transport::Spdy => response
                .header(UPGRADE, HeaderValue::from_static(SPDY))
                .header(PROTOCOL_VERSION, protocol),
            Transport::WebSocket(accept) => {
                let response = response
                    .header(UPGRADE, HeaderValue::from_static("websocket"))
                    .header(SEC_WEBSOCKET_ACCEPT, accept);
                if protocol.is_empty() {
                    response
                } else {
                    response.header(SEC_WEBSOCKET_PROTOCOL, protocol)
                }
            }
        }
    }
}

/// A permit for one more stream or proxied connection.
pub(super) fn acquire_permit(request: &StreamRequest<'_>) -> Result<OwnedSemaphorePermit, Status> {
    let sessions = request.in_process_pods.sessions.clone();
    sessions.try_acquire_owned().map_err(|_| {
        let message = "too many streams are open, try again later";
        Status::new(Reason::TooManyRequests, message).retry_after(1)
    })
}

/// The WebSocket connection after an upgrade.
pub(super) async fn websocket_connection(connection: UpgradedConnection) -> WebSocketConnection {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE))
        // At most the rest of one message waits to be written.
        .write_buffer_size(0);
    WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await
}

fn choose_websocket(
    headers: &HeaderMap,
    supported: &'static [&'static str],
) -> Result<(Transport, &'static str), Status> {
    if text(headers, &SEC_WEBSOCKET_VERSION) != Some("13") {
        return Err(Status::bad_request(
            "unable to upgrade: only WebSocket version 13 is supported",
        ));
    }
    let Some(key) = headers.get(SEC_WEBSOCKET_KEY) else {
        return Err(Status::bad_request("unable to upgrade: Sec-WebSocket-Key is missing"));
    };
    let mut offers: Vec<&str> = words(headers, &SEC_WEBSOCKET_PROTOCOL).collect();
    if offers.is_empty() {
        offers.push("");
    }
    let protocol = choose_protocol(&offers, supported).ok_or_else(|| {
        Status::bad_request(format!(
            "unable to upgrade: none of the protocols {offers:?} is supported, only {supported:?}"
        ))
    })?;
    Ok((Transport::WebSocket(accept_value(key.as_bytes())), protocol))
}

fn choose_spdy(
    headers: &HeaderMap,
    supported: &'static [&'static str],
) -> Result<&'static str, Status> {
    let offers: Vec<&str> = words(headers, &PROTOCOL_VERSION).collect();
    if offers.is_empty() {
        return Err(Status::bad_request(
            "unable to upgrade: header X-Stream-Protocol-Version names no protocol",
        ));
    }
    choose_protocol(&offers, supported).ok_or_else(|| {
        let list = |words: &[&str]| words.join(" ");
        Status::new(
            Reason::Forbidden,
            format!(
                "unable to upgrade: unable to negotiate protocol: client supports [{}], server accepts [{}]",
                list(&offers),
                list(supported)
            ),
        )
    })
}

fn choose_protocol(offers: &[&str], supported: &'static [&'static str]) -> Option<&'static str> {
    offers.iter().find_map(|offer| supported.iter().find(|protocol| *protocol == offer)).copied()
}

/// The comma-separated words of a header, in one line or several.
fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    words(headers, name).any(|other| other.eq_ignore_ascii_case(word))
}

/// The value of `Sec-WebSocket-Accept` for a client's key.
fn accept_value(key: &[u8]) -> HeaderValue {
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
    fn accept_value_is_that_of_rfc_6455() {
        assert_eq!(accept_value(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
