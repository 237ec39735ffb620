//! Connections to backends, kept for the next call.
//!
//! A connection serves one call at a time. Few are kept for each backend, and none for long. A kept
//! one may have been closed by the other side meanwhile: a call that notices this before anything
//! was answered is made again on a new connection, once.

use super::dial::{Origin, dial, failure};
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

/// How an answer is refused that is larger than anybody needs.
pub(super) fn too_large(limit: usize) -> String {
    format!("the answer has more than {limit} bytes")
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
        let sender = self.connect(&backend).await.map_err(Failure::OnTheWay)?;
        match self.ask(&backend, sender, request.map(Full::new), limit).await {
            Err(Lost::BeforeAnAnswer(why)) => Err(Failure::OnTheWay(why)),
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

    async fn connect(&self, backend: &Backend) -> Result<Sender, String> {
        let settings = self.settings.of(&backend.ca)?;
        let name = ServerName::try_from(backend.name.clone()).map_err(|error| error.to_string())?;
        let address = format!("{}:{}", backend.host, backend.port);
        let stream = dial(&backend.host, backend.port, backend.origin)
            .await
            .map_err(|error| not_connected(&address, &backend.host, &error))?;
        // Requests leave as they are.
        let _ = stream.set_nodelay(true);
        let connector = TlsConnector::from(settings);
        let stream = connector
            .connect(name, stream)
            .await
            .map_err(|error| handshake(&error, &backend.name))?;
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(HEAD)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
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
            let why = sent(&error);
            Lost::BeforeAnAnswer(if why == "unexpected EOF" { "EOF".to_owned() } else { why })
        })?;
        let (parts, mut body) = response.into_parts();
        let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let mut read = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                Lost::For(Failure::Answer(format!(
                    "unexpected error when reading response body. Please retry. Original error: {}",
                    sent(&error)
                )))
            })?;
            if let Some(data) = frame.data_ref() {
                if read.len() + data.len() > limit {
                    return Err(Lost::For(Failure::Answer(too_large(limit))));
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
    BeforeAnAnswer(String),
    /// For another reason.
    For(Failure),
}

fn copied(request: &Request<Bytes>) -> Request<Full<Bytes>> {
    request.clone().map(Full::new)
}

/// A failed connection in Go's words.
fn not_connected(address: &str, host: &str, error: &io::Error) -> String {
    match failure(error) {
        Some(why) => format!("dial tcp {address}: {why}"),
        None => format!("dial tcp: lookup {host}: no such host"),
    }
}

fn handshake(error: &io::Error, name: &str) -> String {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match (tls, error.kind()) {
        (Some(tls), _) => tls::refusal(tls, name),
        (None, io::ErrorKind::UnexpectedEof) => "EOF".to_owned(),
        (None, io::ErrorKind::ConnectionReset) => "read: connection reset by peer".to_owned(),
        (None, _) => error.to_string(),
    }
}

/// What went wrong with an exchange, in Go's words.
fn sent(error: &hyper::Error) -> String {
    if error.is_incomplete_message() {
        return "EOF".to_owned();
    }
    if error.is_parse() {
        return "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
            .to_owned();
    }
    let inner = std::error::Error::source(error).and_then(|it| it.downcast_ref::<io::Error>());
    match inner.map(io::Error::kind) {
        Some(io::ErrorKind::UnexpectedEof) => "unexpected EOF".to_owned(),
        Some(io::ErrorKind::ConnectionReset) => "read: connection reset by peer".to_owned(),
        _ => error.to_string(),
    }
}
