//! Connection pool for outbound calls.
//!
//! A connection serves one call at a time. The pool keeps few idle connections for each backend, and
//! none for long. The server may close an idle connection: a request that fails there before a
//! response is sent again on another connection, finally on a new one.

use super::dial::{AddressAuthor, dial, dial_error_text};
use super::error::{BrokenConnection, ExchangeError, ReadResponseError};
use super::tls::{self, TlsConfigs};
use super::{ClientConfig, NoResponse, OutboundResponse};
use bytes::{Bytes, BytesMut};
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use mainstay_clock::Clock;
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// The most idle connections to one backend.
const MAX_IDLE: usize = 16;
/// The most backends with idle connections.
const MAX_BACKENDS: usize = 256;
/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes of a response's head.
const MAX_HEAD: usize = 64 * 1024;

type Sender = SendRequest<Full<Bytes>>;

/// The key of a connection: address, server name, CA bundle.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Backend {
    host: String,
    port: u16,
    /// The author of the address: users get no connection that only an administrator may make.
    author: AddressAuthor,
    name: String,
    ca: Arc<str>,
}

#[derive(Debug)]
struct IdleConnection {
    sender: Sender,
    /// The end of its idle timeout, in the clock's time.
    expires: Duration,
}

/// The idle connections.
#[derive(Debug)]
pub(super) struct Pool {
    clock: Clock,
    tls: TlsConfigs,
    idle: Mutex<HashMap<Backend, Vec<IdleConnection>>>,
}

impl Pool {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, tls: TlsConfigs::default(), idle: Mutex::default() }
    }

    /// Sends a request and reads the response.
    pub(super) async fn send(
        &self,
        config: &ClientConfig,
        (host, port, author): (&str, u16, AddressAuthor),
        request: Request<Bytes>,
        limit: usize,
    ) -> Result<OutboundResponse, NoResponse> {
        let backend = Backend {
            host: host.to_owned(),
            port,
            author,
            name: config.server_name(),
            ca: config.ca.clone(),
        };
        while let Some(sender) = self.take(&backend) {
            match self.exchange(&backend, sender, request.clone().map(Full::new), limit).await {
                Err(ExchangeFailure::BeforeResponse(_)) => {}
                Err(ExchangeFailure::Other(error)) => return Err(error),
                Ok(response) => return Ok(response),
            }
        }
        let sender = self.connect(&backend).await?;
        match self.exchange(&backend, sender, request.map(Full::new), limit).await {
            Err(ExchangeFailure::BeforeResponse(broken)) => {
                Err(ExchangeError::Broken(broken).into())
            }
            Err(ExchangeFailure::Other(error)) => Err(error),
            Ok(response) => Ok(response),
        }
    }

    fn take(&self, backend: &Backend) -> Option<Sender> {
        let mut idle = self.idle.lock();
        let connections = idle.get_mut(backend)?;
        while let Some(connection) = connections.pop() {
            if connection.sender.is_ready() && self.clock.elapsed() < connection.expires {
                return Some(connection.sender);
            }
        }
        None
    }

    fn put(&self, backend: &Backend, sender: Sender) {
        let now = self.clock.elapsed();
        let mut idle = self.idle.lock();
        if idle.len() >= MAX_BACKENDS {
            idle.retain(|_, connections| {
                connections.iter().any(|connection| now < connection.expires)
            });
            if idle.len() >= MAX_BACKENDS {
                return;
            }
        }
        let connections = idle.entry(backend.clone()).or_default();
        connections.retain(|connection| !connection.sender.is_closed() && now < connection.expires);
        if connections.len() < MAX_IDLE {
            connections.push(IdleConnection { sender, expires: now + IDLE_TIMEOUT });
        }
    }

    async fn connect(&self, backend: &Backend) -> Result<Sender, ExchangeError> {
        let config = self.tls.get_or_build(&backend.ca)?;
        let name = ServerName::try_from(backend.name.clone())?;
        let address = format!("{}:{}", backend.host, backend.port);
        let stream = dial(&backend.host, backend.port, backend.author)
            .await
            .map_err(|error| dial_error(address, &backend.host, &error))?;
        // Small requests leave at once. A failure of the option is harmless.
        let _ = stream.set_nodelay(true);
        let connector = TlsConnector::from(config);
        let stream = connector
            .connect(name, stream)
            .await
            .map_err(|error| handshake_error(&error, &backend.name))?;
        let (sender, connection) =
            http1::Builder::new().max_buf_size(MAX_HEAD).handshake(TokioIo::new(stream)).await?;
        // The task ends with the sender.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a webhook ended");
            }
        });
        Ok(sender)
    }

    async fn exchange(
        &self,
        backend: &Backend,
        mut sender: Sender,
        request: Request<Full<Bytes>>,
        limit: usize,
    ) -> Result<OutboundResponse, ExchangeFailure> {
        let response = sender.send_request(request).await.map_err(|error| {
            // Go reports EOF here, whether or not TLS was closed properly.
            ExchangeFailure::BeforeResponse(match broken_connection(error) {
                BrokenConnection::UnexpectedEof => BrokenConnection::Eof,
                other => other,
            })
        })?;
        let (parts, mut body) = response.into_parts();
        let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let mut content = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                ExchangeFailure::Other(ReadResponseError::Broken(broken_connection(error)).into())
            })?;
            if let Some(data) = frame.data_ref() {
                if content.len() + data.len() > limit {
                    return Err(ExchangeFailure::Other(
                        ReadResponseError::TooLarge { limit }.into(),
                    ));
                }
                content.extend_from_slice(data);
            }
        }
        let response = OutboundResponse {
            code: parts.status.as_u16(),
            content_type: text(CONTENT_TYPE).unwrap_or_default().to_owned(),
            retry_after: super::retry_after(&parts.headers),
            location: super::location(&parts.headers),
            body: content.freeze(),
        };
        // The sender becomes ready a moment after the end of the body.
        if sender.ready().await.is_ok() {
            self.put(backend, sender);
        }
        Ok(response)
    }
}

/// A request on one connection has no response.
enum ExchangeFailure {
    /// The connection broke before the head of a response.
    BeforeResponse(BrokenConnection),
    /// Another failure.
    Other(NoResponse),
}

/// The error of a failed dial.
fn dial_error(address: String, host: &str, error: &io::Error) -> ExchangeError {
    match dial_error_text(error) {
        Some(reason) => ExchangeError::Dial { address, reason },
        None => ExchangeError::LookUp { host: host.to_owned() },
    }
}

fn handshake_error(error: &io::Error, name: &str) -> ExchangeError {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match (tls, error.kind()) {
        (Some(tls), _) => ExchangeError::Handshake(tls::handshake_text(tls, name)),
        (None, io::ErrorKind::UnexpectedEof) => BrokenConnection::Eof.into(),
        (None, io::ErrorKind::ConnectionReset) => BrokenConnection::Reset.into(),
        (None, _) => ExchangeError::Handshake(error.to_string()),
    }
}

/// The error that Go reports for a failed exchange.
fn broken_connection(error: hyper::Error) -> BrokenConnection {
    if error.is_incomplete_message() {
        return BrokenConnection::Eof;
    }
    if error.is_parse() {
        return BrokenConnection::Malformed;
    }
    let source = std::error::Error::source(&error);
    let inner = source.and_then(|source| source.downcast_ref::<io::Error>());
    match inner.map(io::Error::kind) {
        Some(io::ErrorKind::UnexpectedEof) => BrokenConnection::UnexpectedEof,
        Some(io::ErrorKind::ConnectionReset) => BrokenConnection::Reset,
        _ => BrokenConnection::Http(error),
    }
}
