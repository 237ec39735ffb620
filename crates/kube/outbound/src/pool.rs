//! Connections to backends, kept for the next call.
//!
//! A connection serves one call at a time. Few are kept for each backend, and none for long. A kept
//! one may have been closed by the other side meanwhile: a call that notices this before anything
//! was answered is made again on a new connection, once.

use super::dial::{Origin, dial, failure};
use super::error::{BrokenConnection, ExchangeError, ReadError};
use super::tls::{self, Settings};
use super::{Answered, ClientConfig, Failure};
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

/// Connections that are kept to one backend.
const KEPT: usize = 16;
/// Backends to which connections are kept.
const BACKENDS: usize = 256;
/// How long a connection waits for its next call.
const IDLE: Duration = Duration::from_secs(30);
/// Bytes of an answer's head.
const HEAD: usize = 64 * 1024;

type Sender = SendRequest<Full<Bytes>>;

/// Who is connected: where, under which name, trusted by whom.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Backend {
    host: String,
    port: u16,
    /// Whose word leads there: a connection that an administrator may have is not for others.
    origin: Origin,
    name: String,
    ca: Arc<str>,
}

#[derive(Debug)]
struct Idle {
    sender: Sender,
    /// Of the clock's time.
    until: Duration,
}

/// The connections that nobody uses just now.
#[derive(Debug)]
pub(super) struct Pool {
    clock: Clock,
    settings: Settings,
    idle: Mutex<HashMap<Backend, Vec<Idle>>>,
}

impl Pool {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, settings: Settings::default(), idle: Mutex::default() }
    }

    /// Sends a request and reads the answer.
    pub(super) async fn send(
        &self,
        config: &ClientConfig,
        (host, port, origin): (&str, u16, Origin),
        request: Request<Bytes>,
        limit: usize,
    ) -> Result<Answered, Failure> {
        let backend = Backend {
            host: host.to_owned(),
            port,
            origin,
            name: config.server_name(),
            ca: config.ca.clone(),
        };
        while let Some(sender) = self.take(&backend) {
            match self.ask(&backend, sender, copied(&request), limit).await {
                Err(Lost::BeforeAnAnswer(_)) => {}
                Err(Lost::For(failure)) => return Err(failure),
                Ok(answered) => return Ok(answered),
            }
        }
        let sender = self.connect(&backend).await?;
        match self.ask(&backend, sender, request.map(Full::new), limit).await {
            Err(Lost::BeforeAnAnswer(broken)) => Err(ExchangeError::Broken(broken).into()),
            Err(Lost::For(failure)) => Err(failure),
            Ok(answered) => Ok(answered),
        }
    }

    fn take(&self, backend: &Backend) -> Option<Sender> {
        let mut idle = self.idle.lock();
        let kept = idle.get_mut(backend)?;
        while let Some(one) = kept.pop() {
            if one.sender.is_ready() && self.clock.elapsed() < one.until {
                return Some(one.sender);
            }
        }
        None
    }

    fn keep(&self, backend: &Backend, sender: Sender) {
        let now = self.clock.elapsed();
        let mut idle = self.idle.lock();
        if idle.len() >= BACKENDS {
            idle.retain(|_, kept| kept.iter().any(|one| now < one.until));
            if idle.len() >= BACKENDS {
                return;
            }
        }
        let kept = idle.entry(backend.clone()).or_default();
        kept.retain(|one| !one.sender.is_closed() && now < one.until);
        if kept.len() < KEPT {
            kept.push(Idle { sender, until: now + IDLE });
        }
    }

    async fn connect(&self, backend: &Backend) -> Result<Sender, ExchangeError> {
        let settings = self.settings.of(&backend.ca)?;
        let name = ServerName::try_from(backend.name.clone())?;
        let address = format!("{}:{}", backend.host, backend.port);
        let stream = dial(&backend.host, backend.port, backend.origin)
            .await
            .map_err(|error| not_connected(address, &backend.host, &error))?;
        // Requests leave as they are.
        let _ = stream.set_nodelay(true);
        let connector = TlsConnector::from(settings);
        let stream = connector
            .connect(name, stream)
            .await
            .map_err(|error| handshake(&error, &backend.name))?;
        let (sender, connection) =
            http1::Builder::new().max_buf_size(HEAD).handshake(TokioIo::new(stream)).await?;
        // It ends with its sender.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a webhook ended");
            }
        });
        Ok(sender)
    }

    async fn ask(
        &self,
        backend: &Backend,
        mut sender: Sender,
        request: Request<Full<Bytes>>,
        limit: usize,
    ) -> Result<Answered, Lost> {
        let response = sender.send_request(request).await.map_err(|error| {
            // Whether the connection was closed well is not told before an answer.
            Lost::BeforeAnAnswer(match broken(error) {
                BrokenConnection::UnexpectedEof => BrokenConnection::Eof,
                other => other,
            })
        })?;
        let (parts, mut body) = response.into_parts();
        let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let mut read = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|error| Lost::For(ReadError::Broken(broken(error)).into()))?;
            if let Some(data) = frame.data_ref() {
                if read.len() + data.len() > limit {
                    return Err(Lost::For(ReadError::TooLarge { limit }.into()));
                }
                read.extend_from_slice(data);
            }
        }
        let answered = Answered {
            code: parts.status.as_u16(),
            content_type: text(CONTENT_TYPE).unwrap_or_default().to_owned(),
            retry_after: super::retry_after(&parts.headers),
            location: super::location(&parts.headers),
            body: read.freeze(),
        };
        // It is ready a moment after the body's end.
        if sender.ready().await.is_ok() {
            self.keep(backend, sender);
        }
        Ok(answered)
    }
}

/// Why a connection brought nothing.
enum Lost {
    /// It was closed before the head of an answer came.
    BeforeAnAnswer(BrokenConnection),
    /// For another reason.
    For(Failure),
}

fn copied(request: &Request<Bytes>) -> Request<Full<Bytes>> {
    request.clone().map(Full::new)
}

/// A failed connection in Go's words.
fn not_connected(address: String, host: &str, error: &io::Error) -> ExchangeError {
    match failure(error) {
        Some(reason) => ExchangeError::Dial { address, reason },
        None => ExchangeError::LookUp { host: host.to_owned() },
    }
}

fn handshake(error: &io::Error, name: &str) -> ExchangeError {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match (tls, error.kind()) {
        (Some(tls), _) => ExchangeError::Handshake(tls::refusal(tls, name)),
        (None, io::ErrorKind::UnexpectedEof) => BrokenConnection::Eof.into(),
        (None, io::ErrorKind::ConnectionReset) => BrokenConnection::Reset.into(),
        (None, _) => ExchangeError::Handshake(error.to_string()),
    }
}

/// What Go says of an exchange that failed.
fn broken(error: hyper::Error) -> BrokenConnection {
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
