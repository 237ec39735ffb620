//! Outbound calls: from a `clientConfig` (a URL or Service, and a CA bundle) to an HTTPS call.
//!
//! ```text
//! clientConfig ─► Service ─► endpoint ─┬─► on the host: TLS connection, kept for the next call
//!              └► URL ─────────────────┤
//!                                      ├─► an in-process backend
//!                                      └─► a simulated pod, with a built-in response
//! ```
//!
//! Addresses are checked right before they are dialled ([`dial`]): neither an address that a user of
//! a namespace wrote nor a redirect leads to a loopback or link-local address.
//!
//! One timeout covers a whole call: resolving, connecting, sending, reading. The caller sets the
//! largest response body. Redirects are followed a few times, over HTTPS only, and the same CA bundle
//! verifies each server. The protocol is HTTP/1.1.

pub mod dial;
mod error;
mod in_process;
mod pool;
mod redirect;
mod response_value;
mod service_resolver;
mod tls;

pub use error::{BrokenConnection, CallError, ExchangeError, ReadResponseError, TlsConfigError};
pub use in_process::{BackendError, InProcessBackend};
pub use redirect::RedirectError;
pub use response_value::{ResponseError, response_value};
pub use service_resolver::{ServiceEndpoint, ServiceError, resolve_service};
pub use tls::{CaBundle, ca_bundle_pem, insecure_client};

use bytes::Bytes;
use dial::AddressAuthor;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST, LOCATION, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request};
use in_process::InProcessBackends;
use mainstay_clock::Clock;
use mainstay_object::Object;
use mainstay_store::Store;
use pool::Pool;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The longest timeout of a call, whatever the caller sets.
const MAX_TIMEOUT: Duration = Duration::from_mins(1);

/// How often a call is repeated after a `Retry-After`.
const RETRIES: usize = 10;
/// How many redirects a call follows.
const MAX_REDIRECTS: usize = 10;

/// Seconds of a `Retry-After`; none if it is no whole number. A negative number counts as zero.
fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let seconds: i64 = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(u64::try_from(seconds).unwrap_or(0))
}

fn location(headers: &HeaderMap) -> String {
    headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// Destination of a call, and the CA bundle that verifies the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientConfig {
    /// URL or Service.
    pub destination: Destination,
    /// PEM of the CA bundle; empty for none.
    pub ca: Arc<str>,
}

/// Destination of a call.
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
        author: AddressAuthor,
    },
    /// A Service.
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

/// A `clientConfig` has no valid destination.
#[derive(Debug, thiserror::Error)]
pub enum ClientConfigError {
    /// The `clientConfig` has neither a Service nor a URL.
    #[error("webhook configuration must have either service or URL")]
    NoDestination,
    /// The URL is invalid.
    #[error("Unparsable URL: {0}")]
    Url(#[from] http::uri::InvalidUri),
}

impl ClientConfig {
    /// Reads a `clientConfig` that has been validated.
    ///
    /// # Errors
    /// If it has no valid destination.
    pub fn read(value: &Value) -> Result<Self, ClientConfigError> {
        let bundle = value.get("caBundle").and_then(Value::as_str).unwrap_or_default();
        let ca = ca_bundle_pem(bundle);
        let text = |value: &Value, field: &str| {
            value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        if let Some(service) = value.get("service").filter(|service| service.is_object()) {
            let port = service.get("port").and_then(Value::as_u64).unwrap_or(443);
            let destination = Destination::Service {
                namespace: text(service, "namespace"),
                name: text(service, "name"),
                port: u16::try_from(port).unwrap_or(443),
                path: join_path(&text(service, "path")),
            };
            return Ok(Self { destination, ca });
        }
        let url = text(value, "url");
        if url.is_empty() {
            return Err(ClientConfigError::NoDestination);
        }
        let uri: http::Uri = url.parse()?;
        let destination = Destination::Url {
            host: uri.host().unwrap_or_default().to_owned(),
            port: uri.port_u16().unwrap_or(443),
            path: join_path(uri.path()),
            author: AddressAuthor::Administrator,
        };
        Ok(Self { destination, ca })
    }

    /// Host and port as in a URL; a URL without a port has none here either.
    fn authority(&self) -> String {
        match &self.destination {
            Destination::Url { host, port: 443, .. } => host.clone(),
            Destination::Url { host, port, .. } => format!("{host}:{port}"),
            Destination::Service { namespace, name, port, .. } => {
                format!("{name}.{namespace}.svc:{port}")
            }
        }
    }

    /// The name that the certificate must have.
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

/// A path as Go's `path.Join` normalizes it.
fn join_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len() + 1);
    for segment in path.split('/').filter(|segment| !matches!(*segment, "" | ".")) {
        out.push('/');
        out.push_str(segment);
    }
    if out.is_empty() { "/".to_owned() } else { out }
}

/// A request of a call.
#[derive(Clone, Debug)]
pub struct OutboundRequest {
    /// The method.
    pub method: Method,
    /// Query with `?`, which follows the path of the `clientConfig`; may be empty.
    pub query: String,
    /// JSON body; empty for none.
    pub body: Bytes,
    /// Timeout of the whole call.
    pub timeout: Duration,
    /// The most bytes of the response body.
    pub limit: usize,
}

/// A response, read to its end.
#[derive(Clone, Debug)]
pub struct OutboundResponse {
    /// HTTP status code.
    pub code: u16,
    /// `Content-Type`; empty if there is none.
    pub content_type: String,
    /// Seconds of `Retry-After`, if present.
    pub retry_after: Option<u64>,
    /// `Location`; empty if there is none.
    pub location: String,
    /// The body.
    pub body: Bytes,
}

impl OutboundResponse {
    /// The target of a redirect.
    fn redirect_location(&self) -> Option<&str> {
        let is_redirect = matches!(self.code, 301 | 302 | 303 | 307 | 308);
        Some(&*self.location).filter(|location| is_redirect && !location.is_empty())
    }

    /// How long to wait before the request is repeated, if the response asks for that.
    fn retry_delay(&self) -> Option<Duration> {
        let is_retryable = self.code == 429 || self.code >= 500;
        is_retryable.then(|| self.retry_after.map(Duration::from_secs)).flatten()
    }
}

/// Client for outbound calls. One per server; it keeps connections for later calls.
#[derive(Debug)]
pub struct Outbound {
    store: Store,
    pool: Pool,
    backends: InProcessBackends,
    /// Whether simulated pods refuse connections, whatever their annotations say.
    silent: AtomicBool,
    /// Whether endpoints of Services may be addresses of this machine.
    allows_local_endpoints: AtomicBool,
}

impl Outbound {
    /// A client without connections, which resolves Services from the store.
    pub fn new(store: Store, clock: Clock) -> Self {
        Self {
            store,
            pool: Pool::new(clock),
            backends: InProcessBackends::default(),
            silent: AtomicBool::default(),
            allows_local_endpoints: AtomicBool::default(),
        }
    }

    /// Makes all simulated pods refuse connections from now on.
    pub fn silence_simulated_pods(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    /// Allows endpoints of Services at this machine's own addresses from now on.
    pub fn allow_local_endpoints(&self) {
        self.allows_local_endpoints.store(true, Ordering::Relaxed);
    }

    /// The author that counts for endpoints of Services.
    pub fn endpoint_author(&self) -> AddressAuthor {
        if self.allows_local_endpoints.load(Ordering::Relaxed) {
            AddressAuthor::Administrator
        } else {
            AddressAuthor::User
        }
    }

    /// Whether a simulated pod accepts connections.
    pub fn pod_answers(&self, pod: &Object) -> bool {
        !self.silent.load(Ordering::Relaxed) && in_process::pod_answers(pod)
    }

    /// Puts an in-process backend behind a Service: it gets all requests to the Service.
    pub fn put_backend(&self, namespace: &str, service: &str, backend: Arc<dyn InProcessBackend>) {
        self.backends.put(namespace, service, backend);
    }

    /// The in-process backend behind a Service, if any.
    pub fn backend(&self, namespace: &str, service: &str) -> Option<Arc<dyn InProcessBackend>> {
        self.backends.get(namespace, service)
    }

    /// Makes a call. A POST that gets 429 or 5xx with `Retry-After` in seconds is repeated, ten times
    /// at most and within the same timeout, as Kubernetes' client does.
    ///
    /// # Errors
    /// If there is no response, or the response cannot be read.
    pub async fn call(
        &self,
        config: &ClientConfig,
        request: OutboundRequest,
    ) -> Result<OutboundResponse, CallError> {
        let method = go_method_name(&request.method);
        let url = format!("https://{}{}{}", config.authority(), config.path(), request.query);
        let timeout = request.timeout.min(MAX_TIMEOUT);
        let failed = |reason| CallError::Exchange { method, url, reason };
        let with_retries = async {
            for _ in 0..RETRIES {
                let response = self.follow_redirects(config, request.clone()).await?;
                match response.retry_delay().filter(|_| request.method == Method::POST) {
                    None => return Ok(response),
                    Some(wait) => tokio::time::sleep(wait).await,
                }
            }
            self.follow_redirects(config, request).await
        };
        match tokio::time::timeout(timeout, with_retries).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(NoResponse::Exchange(error))) => Err(failed(error)),
            Ok(Err(NoResponse::Read(error))) => Err(error.into()),
            Err(_) => Err(failed(ExchangeError::Timeout)),
        }
    }

    /// Sends a request, and again to the target of each redirect.
    async fn follow_redirects(
        &self,
        config: &ClientConfig,
        mut request: OutboundRequest,
    ) -> Result<OutboundResponse, NoResponse> {
        let mut config = Cow::Borrowed(config);
        for _ in 0..MAX_REDIRECTS {
            let response = self.exchange(&config, request.clone()).await?;
            let Some(location) = response.redirect_location() else { return Ok(response) };
            let (next, query) =
                redirect::target(&config, location).map_err(ExchangeError::Redirect)?;
            config = Cow::Owned(next);
            request.query = query;
            if !matches!(response.code, 307 | 308) && request.method != Method::HEAD {
                request.method = Method::GET;
                request.body = Bytes::new();
            }
        }
        Err(ExchangeError::TooManyRedirects { limit: MAX_REDIRECTS }.into())
    }

    /// Sends a request once.
    async fn exchange(
        &self,
        config: &ClientConfig,
        request: OutboundRequest,
    ) -> Result<OutboundResponse, NoResponse> {
        let limit = request.limit;
        let request = http_request(config, request).map_err(ExchangeError::BuildRequest)?;
        let target = match &config.destination {
            Destination::Url { host, port, author, .. } => {
                let host = host.trim_matches(['[', ']']);
                return self.pool.send(config, (host, *port, *author), request, limit).await;
            }
            Destination::Service { namespace, name, port, .. } => {
                if let Some(backend) = self.backends.get(namespace, name) {
                    return in_process::call(&*backend, request, limit).await;
                }
                resolve_service(&self.store, namespace, name, *port)
                    .map_err(ExchangeError::ResolveService)?
            }
        };
        match target {
            ServiceEndpoint::Host(host, port) => {
                let author = self.endpoint_author();
                self.pool.send(config, (&host, port, author), request, limit).await
            }
            ServiceEndpoint::Pod(pod) if self.pod_answers(&pod) => {
                Ok(in_process::simulated_response(&request))
            }
            ServiceEndpoint::Pod(pod) => Err(in_process::refused_connection(&pod).into()),
        }
    }
}

/// There is no response.
#[derive(Debug, thiserror::Error)]
enum NoResponse {
    /// No response came.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The response cannot be read.
    #[error(transparent)]
    Read(#[from] ReadResponseError),
}

/// A method as Go's client prints it in errors.
fn go_method_name(method: &Method) -> String {
    let mut name = String::new();
    for (at, letter) in method.as_str().chars().enumerate() {
        // Writing to a string does not fail.
        let _ = if at == 0 {
            write!(name, "{letter}")
        } else {
            write!(name, "{}", letter.to_ascii_lowercase())
        };
    }
    name
}

fn http_request(config: &ClientConfig, request: OutboundRequest) -> http::Result<Request<Bytes>> {
    let path = format!("{}{}", config.path(), request.query);
    let mut request = Request::builder()
        .method(request.method)
        .uri(path)
        .header(HOST, config.authority())
        .header(ACCEPT, "application/json, */*")
        .header(
            USER_AGENT,
            concat!("kube-apiserver-admission/mainstay-", env!("CARGO_PKG_VERSION")),
        )
        .body(request.body)?;
    if !request.body().is_empty() {
        let length = request.body().len().into();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_LENGTH, length);
    }
    Ok(request)
}
