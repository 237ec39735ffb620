//! Outbound calls: from a `clientConfig` (a URL or Service, and a CA bundle) to an HTTPS call.
//!
//! ```text
//! clientConfig ─► Service ─► endpoint ─┬─► on the host: TLS connection, kept for the next call
//!              └► URL ─────────────────┤
//!                                      ├─► a native handler of this process
//!                                      └─► a simulated pod, which answers for itself
//! ```
//!
//! Addresses are judged right before they are dialled ([`dial`]): what a user of a namespace wrote leads
//! to no loopback and no link-local address, and neither does a redirect.
//!
//! One call has one time limit for everything: resolving, connecting, sending, reading. Answers are
//! read up to a limit of their caller's. Redirects are followed a few times, over HTTPS only, to who
//! is signed for by the same authorities. HTTP/1.1 is spoken.

pub mod dial;
mod error;
mod native;
mod pool;
mod redirect;
mod response_value;
mod service_resolver;
mod tls;

pub use error::{BrokenConnection, CallError, ExchangeError, ReadError, TlsConfigError};
pub use native::{BackendError, NativeBackend};
pub use redirect::RedirectError;
pub use response_value::{ResponseError, response_value};
pub use service_resolver::{ServiceError, Target, service};
pub use tls::{Bundle, bundle_text, insecure_client};

use bytes::Bytes;
use dial::Origin;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST, LOCATION, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request};
use mainstay_clock::Clock;
use mainstay_object::Object;
use mainstay_store::Store;
use native::Natives;
use pool::Pool;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The longest that anything is waited for, whatever the caller wants.
const PATIENCE: Duration = Duration::from_mins(1);

/// How often a call that is put off is made again.
const RETRIES: usize = 10;
/// How often a call is made when each answer sends it elsewhere.
const REDIRECTS: usize = 10;

/// Seconds of a `Retry-After`; none if it is no whole number. What is below zero is at once.
fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let seconds: i64 = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(u64::try_from(seconds).unwrap_or(0))
}

fn location(headers: &HeaderMap) -> String {
    headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// Where something is, and who signs for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientConfig {
    /// URL or Service.
    pub destination: Destination,
    /// PEM of the authorities; empty if none is named.
    pub ca: Arc<str>,
}

/// Where something is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// A URL.
    Url {
        /// Host.
        host: String,
        /// Port.
        port: u16,
        /// Path.
        path: String,
        /// Author of the URL.
        origin: Origin,
    },
    /// Behind a Service.
    Service {
        /// Namespace of the Service.
        namespace: String,
        /// Name of the Service.
        name: String,
        /// Port of the Service.
        port: u16,
        /// Path.
        path: String,
    },
}

/// A `clientConfig` leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum ClientConfigError {
    /// It names neither a Service nor a URL.
    #[error("webhook configuration must have either service or URL")]
    NoDestination,
    /// Its URL is none.
    #[error("Unparsable URL: {0}")]
    Url(#[from] http::uri::InvalidUri),
}

impl ClientConfig {
    /// Reads a `clientConfig` that has been validated.
    ///
    /// # Errors
    /// If it leads nowhere.
    pub fn read(value: &Value) -> Result<Self, ClientConfigError> {
        let bundle = value.get("caBundle").and_then(Value::as_str).unwrap_or_default();
        let ca = bundle_text(bundle);
        let text = |value: &Value, field: &str| {
            value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        if let Some(service) = value.get("service").filter(|service| service.is_object()) {
            let port = service.get("port").and_then(Value::as_u64).unwrap_or(443);
            let place = Destination::Service {
                namespace: text(service, "namespace"),
                name: text(service, "name"),
                port: u16::try_from(port).unwrap_or(443),
                path: joined(&text(service, "path")),
            };
            return Ok(Self { destination: place, ca });
        }
        let url = text(value, "url");
        if url.is_empty() {
            return Err(ClientConfigError::NoDestination);
        }
        let uri: http::Uri = url.parse()?;
        let place = Destination::Url {
            host: uri.host().unwrap_or_default().to_owned(),
            port: uri.port_u16().unwrap_or(443),
            path: joined(uri.path()),
            origin: Origin::Administrator,
        };
        // What the URL leaves out is left out of what is said of it, too.
        Ok(Self { destination: place, ca })
    }

    /// Name and port as a URL has them.
    fn authority(&self) -> String {
        match &self.destination {
            Destination::Url { host, port: 443, .. } => host.clone(),
            Destination::Url { host, port, .. } => format!("{host}:{port}"),
            Destination::Service { namespace, name, port, .. } => {
                format!("{name}.{namespace}.svc:{port}")
            }
        }
    }

    /// Who must be in the certificate.
    fn server_name(&self) -> String {
        match &self.destination {
            Destination::Url { host, .. } => host.trim_matches(['[', ']']).to_owned(),
            Destination::Service { namespace, name, .. } => format!("{name}.{namespace}.svc"),
        }
    }

    fn path(&self) -> &str {
        let (Destination::Url { path, .. } | Destination::Service { path, .. }) = &self.destination;
        path
    }
}

/// A path as Go's `path.Join` makes it from its parts.
fn joined(path: &str) -> String {
    let mut out = String::with_capacity(path.len() + 1);
    for segment in path.split('/').filter(|segment| !matches!(*segment, "" | ".")) {
        out.push('/');
        out.push_str(segment);
    }
    if out.is_empty() { "/".to_owned() } else { out }
}

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// What follows the path of the configuration, with `?`; may be empty.
    pub query: String,
    /// JSON; empty for none.
    pub body: Bytes,
    /// How long all of it may take.
    pub timeout: Duration,
    /// Bytes of the answer's body, at most.
    pub limit: usize,
}

/// An answer, read to its end.
#[derive(Clone, Debug)]
pub struct Answered {
    /// HTTP status code.
    pub code: u16,
    /// `Content-Type`; empty if there is none.
    pub content_type: String,
    /// Seconds after which it may be asked again, if it says so.
    pub retry_after: Option<u64>,
    /// `Location`; empty if there is none.
    pub location: String,
    /// The body.
    pub body: Bytes,
}

impl Answered {
    /// Where it sends whoever asked, if it does.
    fn redirects(&self) -> Option<&str> {
        let elsewhere = matches!(self.code, 301 | 302 | 303 | 307 | 308);
        Some(&*self.location).filter(|location| elsewhere && !location.is_empty())
    }

    /// How long to wait until the same is asked once more, if that is wanted.
    fn wants_patience(&self) -> Option<Duration> {
        let busy = self.code == 429 || self.code >= 500;
        busy.then(|| self.retry_after.map(Duration::from_secs)).flatten()
    }
}

/// Calls others. One per server; connections are kept for the next call.
#[derive(Debug)]
pub struct Outbound {
    store: Store,
    pool: Pool,
    natives: Natives,
    /// Whether simulated pods answer nobody, whatever their annotations say.
    silent: AtomicBool,
    /// Whether endpoints may be on this machine.
    at_home: AtomicBool,
}

impl Outbound {
    /// A caller without connections, which resolves Services from the store.
    pub fn new(store: Store, clock: Clock) -> Self {
        Self {
            store,
            pool: Pool::new(clock),
            natives: Natives::default(),
            silent: AtomicBool::default(),
            at_home: AtomicBool::default(),
        }
    }

    /// Has simulated pods answer nobody from now on.
    pub fn silence(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    /// Lets endpoints of Services lead to this machine's own addresses from now on.
    pub fn allow_local_endpoints(&self) {
        self.at_home.store(true, Ordering::Relaxed);
    }

    /// Whose word an endpoint of a Service is.
    pub fn endpoints(&self) -> Origin {
        if self.at_home.load(Ordering::Relaxed) { Origin::Administrator } else { Origin::User }
    }

    /// Whether a simulated pod answers at all.
    pub fn answers(&self, pod: &Object) -> bool {
        !self.silent.load(Ordering::Relaxed) && native::answers(pod)
    }

    /// Puts a handler of this process behind a Service: it answers whatever is sent there.
    pub fn put_native(&self, namespace: &str, service: &str, backend: Arc<dyn NativeBackend>) {
        self.natives.put(namespace, service, backend);
    }

    /// The handler of this process behind a Service, if there is one.
    pub fn native(&self, namespace: &str, service: &str) -> Option<Arc<dyn NativeBackend>> {
        self.natives.get(namespace, service)
    }

    /// Makes a call. A POST that is put off (429 or 5xx with `Retry-After` in seconds) is made again,
    /// ten times at most and within the same time limit, as Kubernetes' client does.
    ///
    /// # Errors
    /// If no response comes, or none that can be taken.
    pub async fn call(&self, config: &ClientConfig, call: Call) -> Result<Answered, CallError> {
        let shown = shown_method(&call.method);
        let url = format!("https://{}{}{}", config.authority(), config.path(), call.query);
        let timeout = call.timeout.min(PATIENCE);
        let failed = |reason| CallError::Exchange { method: shown, url, reason };
        let patient = async {
            for _ in 0..RETRIES {
                let answered = self.follow(config, call.clone()).await?;
                match answered.wants_patience().filter(|_| call.method == Method::POST) {
                    None => return Ok(answered),
                    Some(wait) => tokio::time::sleep(wait).await,
                }
            }
            self.follow(config, call).await
        };
        let answered = tokio::time::timeout(timeout, patient).await;
        match answered {
            Ok(Ok(answered)) => Ok(answered),
            Ok(Err(Failure::Exchange(error))) => Err(failed(error)),
            Ok(Err(Failure::Read(error))) => Err(error.into()),
            Err(_) => Err(failed(ExchangeError::Timeout)),
        }
    }

    /// Makes a call where it is wanted.
    async fn follow(&self, config: &ClientConfig, mut call: Call) -> Result<Answered, Failure> {
        let mut config = Cow::Borrowed(config);
        for _ in 0..REDIRECTS {
            let answered = self.exchange(&config, call.clone()).await?;
            let Some(location) = answered.redirects() else { return Ok(answered) };
            let (next, query) =
                redirect::target(&config, location).map_err(ExchangeError::Redirect)?;
            config = Cow::Owned(next);
            call.query = query;
            if !matches!(answered.code, 307 | 308) && call.method != Method::HEAD {
                call.method = Method::GET;
                call.body = Bytes::new();
            }
        }
        Err(ExchangeError::TooManyRedirects { limit: REDIRECTS }.into())
    }

    async fn exchange(&self, config: &ClientConfig, call: Call) -> Result<Answered, Failure> {
        let limit = call.limit;
        let request = request_of(config, call).map_err(ExchangeError::BuildRequest)?;
        let target = match &config.destination {
            Destination::Url { host, port, origin, .. } => {
                let host = host.trim_matches(['[', ']']);
                return self.pool.send(config, (host, *port, *origin), request, limit).await;
            }
            Destination::Service { namespace, name, port, .. } => {
                if let Some(backend) = self.natives.get(namespace, name) {
                    return native::ask(&*backend, request, limit).await;
                }
                service(&self.store, namespace, name, *port)
                    .map_err(ExchangeError::ResolveService)?
            }
        };
        match target {
            Target::Host(host, port) => {
                let origin = self.endpoints();
                self.pool.send(config, (&host, port, origin), request, limit).await
            }
            Target::Pod(pod) if self.answers(&pod) => Ok(native::simulated(&request)),
            Target::Pod(pod) => Err(native::refused(&pod).into()),
        }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// None came.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// What came cannot be taken.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// How Go's client shows a method in its errors.
fn shown_method(method: &Method) -> String {
    let mut shown = String::new();
    for (at, letter) in method.as_str().chars().enumerate() {
        // Writing to a text does not fail.
        let _ = if at == 0 {
            write!(shown, "{letter}")
        } else {
            write!(shown, "{}", letter.to_ascii_lowercase())
        };
    }
    shown
}

fn request_of(config: &ClientConfig, call: Call) -> http::Result<Request<Bytes>> {
    let path = format!("{}{}", config.path(), call.query);
    let mut request = Request::builder()
        .method(call.method)
        .uri(path)
        .header(HOST, config.authority())
        .header(ACCEPT, "application/json, */*")
        .header(
            USER_AGENT,
            concat!("kube-apiserver-admission/mainstay-", env!("CARGO_PKG_VERSION")),
        )
        .body(call.body)?;
    if !request.body().is_empty() {
        let length = request.body().len().into();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_LENGTH, length);
    }
    Ok(request)
}
