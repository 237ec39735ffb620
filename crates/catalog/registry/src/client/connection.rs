//! One client connection to a registry.

use super::RpcError;
use crate::grpc::api::{
    Bundle, GetPackageRequest, ListBundlesRequest, Package, registry_client::RegistryClient,
};
use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use socket2::{SockRef, TcpKeepalive};
use std::task::{Context, Poll};
use std::{fmt, io, str::FromStr, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::Streaming;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tower::Service;

/// The most bytes of one message; bundles name images or have manifests of a few megabytes.
const MOST_BYTES: usize = 64 << 20;
/// The most messages of one list; ten times the largest published catalogs.
const MOST_MESSAGES: usize = 1_000_000;
/// How long a server may take to accept a health watch.
const WATCH: Duration = Duration::from_secs(2);
/// Flow-control window in bytes; it is large because a catalog is read in one go.
const WINDOW: u32 = 4 << 20;
/// TCP keepalive of an idle connection: time before the first probe, interval, number of probes.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(5), 3);

/// The address of a registry: host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
    text: String,
}

impl FromStr for Address {
    type Err = RpcError;

    /// Parses `host:port`, `[::1]:port`, and either after `dns:///` or `passthrough:///`.
    fn from_str(text: &str) -> Result<Self, RpcError> {
        let bare =
            ["dns:///", "passthrough:///"].iter().find_map(|prefix| text.strip_prefix(prefix));
        let bare = bare.unwrap_or(text);
        let invalid = |why: &str| RpcError::dial("", &format!("address {bare}: {why}"));
        let missing = || invalid("missing port in address");
        let (host, port) = if let Some(rest) = bare.strip_prefix('[') {
            let (host, rest) =
                rest.split_once(']').ok_or_else(|| invalid("missing ']' in address"))?;
            (host, rest.strip_prefix(':').ok_or_else(missing)?)
        } else {
            let (host, port) = bare.rsplit_once(':').ok_or_else(missing)?;
            if host.contains(':') {
                return Err(invalid("too many colons in address"));
            }
            (host, port)
        };
        let number = port.parse().map_err(|_| invalid("invalid port"))?;
        // The address is used as an authority, so an invalid one is reported before any request.
        let authority = bare.parse::<http::uri::Authority>();
        authority.map_err(|_| invalid("invalid host"))?;
        Ok(Self { host: host.to_owned(), port: number, text: bare.to_owned() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Address {
    /// The host name or IP address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Connects to the first address of the host that accepts.
    async fn dial(&self) -> Result<TcpStream, RpcError> {
        let host = if self.host.is_empty() { "localhost" } else { &self.host };
        let unknown = || RpcError::dial("", &format!("lookup {host}: no such host"));
        let found = tokio::net::lookup_host((host, self.port)).await.map_err(|_| unknown())?;
        let mut fault = unknown();
        for to in found {
            match TcpStream::connect(to).await {
                Ok(stream) => return Ok(stream),
                Err(error) => fault = RpcError::refused(&to.to_string(), &error),
            }
        }
        Err(fault)
    }
}

/// Sets the TCP options of a connection to a registry or to a proxy in front of one.
pub fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let (idle, interval, probes) = KEEPALIVE;
    let keepalive =
        TcpKeepalive::new().with_time(idle).with_interval(interval).with_retries(probes);
    // Without keepalive a machine that vanishes is only noticed later.
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}

/// Sends requests over one connection.
#[derive(Clone, Debug)]
struct Sender(SendRequest<tonic::body::Body>);

impl Service<Request<tonic::body::Body>> for Sender {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// A connection to a registry. It closes when this is dropped.
#[derive(Debug)]
pub struct RegistryConnection {
    registry: RegistryClient<Sender>,
    health: HealthClient<Sender>,
    time_limit: Duration,
    ended: CancellationToken,
    _end: DropGuard,
}

impl RegistryConnection {
    /// Connects. `time_limit` is the timeout of the connection attempt and of each later message.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn open(address: &Address, time_limit: Duration) -> Result<Self, RpcError> {
        let stream = timeout(time_limit, address.dial()).await;
        let stream = stream.map_err(|_| RpcError::dial(&address.text, "i/o timeout"))??;
        prepare(&stream);
        Self::connect_over(address, stream, time_limit).await
    }

    /// Connects through another stream, such as that of a proxy; `time_limit` is the timeout.
    ///
    /// # Errors
    /// As [`RegistryConnection::open`].
    pub async fn open_through<S>(
        address: &Address,
        way: impl Future<Output = io::Result<S>>,
        time_limit: Duration,
    ) -> Result<Self, RpcError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match timeout(time_limit, way).await {
            Err(_) => Err(RpcError::dial(&address.text, "i/o timeout")),
            Ok(Err(error)) => Err(RpcError::dial(&address.text, &error.to_string())),
            Ok(Ok(stream)) => Self::connect_over(address, stream, time_limit).await,
        }
    }

    async fn connect_over<S>(
        address: &Address,
        stream: S,
        time_limit: Duration,
    ) -> Result<Self, RpcError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connecting = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .handshake(TokioIo::new(stream));
        let connected = timeout(time_limit, connecting).await.map_err(|_| RpcError::timed_out())?;
        let (sender, connection) = connected.map_err(|error| RpcError::handshake(&error))?;
        let (ended, stop) = (CancellationToken::new(), CancellationToken::new());
        let (done, stopped) = (ended.clone(), stop.clone());
        tokio::spawn(async move {
            if let Some(Err(error)) = stopped.run_until_cancelled(connection).await {
                tracing::debug!(%error, "a connection to a registry broke");
            }
            done.cancel();
        });
        let origin = format!("http://{address}").parse::<Uri>();
        let origin = origin.map_err(|error| RpcError::dial(&address.text, &error.to_string()))?;
        let registry = RegistryClient::with_origin(Sender(sender.clone()), origin.clone())
            .max_decoding_message_size(MOST_BYTES);
        let health = HealthClient::with_origin(Sender(sender), origin);
        Ok(Self { registry, health, time_limit, ended, _end: stop.drop_guard() })
    }

    /// Waits for a response, up to the timeout and the end of the connection.
    async fn await_response<T>(
        &self,
        answer: impl Future<Output = Result<T, tonic::Status>>,
    ) -> Result<T, RpcError> {
        let answer = self.ended.run_until_cancelled(timeout(self.time_limit, answer));
        match answer.await {
            None => Err(RpcError::ended()),
            Some(Err(_)) => Err(RpcError::timed_out()),
            Some(Ok(Ok(answer))) => Ok(answer),
            Some(Ok(Err(status))) => {
                // Transport errors arrive before the end of the connection is known.
                let own = std::error::Error::source(&status).is_some();
                if !own {
                    return Err(RpcError::from_status(&status));
                }
                let over = timeout(Duration::from_millis(50), self.ended.cancelled()).await;
                Err(if over.is_ok() { RpcError::ended() } else { RpcError::handshake(&status) })
            }
        }
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Lists all bundles: each once for every channel that has it.
    ///
    /// # Errors
    /// If the registry refuses the list or the connection fails.
    pub async fn bundles(&self) -> Result<Bundles<'_>, RpcError> {
        let mut client = self.registry.clone();
        let stream =
            self.await_response(client.list_bundles(ListBundlesRequest {})).await?.into_inner();
        Ok(Bundles { connection: self, stream, count: 0 })
    }

    /// Gets a package.
    ///
    /// # Errors
    /// If the registry refuses the call or the connection fails.
    pub async fn package(&self, name: &str) -> Result<Package, RpcError> {
        let mut client = self.registry.clone();
        let request = GetPackageRequest { name: name.to_owned() };
        Ok(self.await_response(client.get_package(request)).await?.into_inner())
    }

    /// Starts to watch for changes. Call this before reading and wait on it afterwards, so that no
    /// change is missed in between.
    pub async fn watch(&self) -> RegistryWatch<'_> {
        let mut client = self.health.clone();
        let watch_call = client.watch(HealthCheckRequest::default());
        let watch_call = timeout(WATCH.min(self.time_limit), self.await_response(watch_call)).await;
        let stream = watch_call.unwrap_or_else(|_| Err(RpcError::timed_out()));
        let mut watch = RegistryWatch {
            connection: self,
            stream: stream.ok().map(tonic::Response::into_inner),
        };
        // The first message is the current state.
        watch.next(WATCH.min(self.time_limit)).await;
        watch
    }
}

/// The bundles that a registry lists, message by message.
#[derive(Debug)]
pub struct Bundles<'c> {
    connection: &'c RegistryConnection,
    stream: Streaming<Bundle>,
    count: usize,
}

impl Bundles<'_> {
    /// The next bundle; none at the end.
    ///
    /// # Errors
    /// If the stream or the connection fails.
    pub async fn next(&mut self) -> Result<Option<Bundle>, RpcError> {
        let next = self.connection.await_response(self.stream.message()).await?;
        self.count += usize::from(next.is_some());
        if self.count > MOST_MESSAGES {
            return Err(RpcError::too_large(format!("it lists more than {MOST_MESSAGES} entries")));
        }
        Ok(next)
    }
}

/// Watches a registry for changes.
#[derive(Debug)]
pub struct RegistryWatch<'c> {
    connection: &'c RegistryConnection,
    stream: Option<Streaming<tonic_health::pb::HealthCheckResponse>>,
}

impl RegistryWatch<'_> {
    /// Whether the server sent a message to the health watch within the timeout.
    async fn next(&mut self, time_limit: Duration) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        let next = self.connection.ended.run_until_cancelled(timeout(time_limit, stream.message()));
        match next.await {
            Some(Ok(Ok(Some(_)))) => return true,
            Some(Err(_)) => return false,
            // The server ended the watch, as servers do that have one constant state.
            None | Some(Ok(Ok(None) | Err(_))) => {}
        }
        self.stream = None;
        false
    }

    /// Waits until content that was read may be out of date: `true` if the server reports a change
    /// and takes requests, `false` once the connection has ended.
    pub async fn changed(&mut self) -> bool {
        const LONG: Duration = Duration::from_hours(24 * 365);
        while self.stream.is_some() {
            if self.next(LONG).await {
                return true;
            }
        }
        self.connection.ended.cancelled().await;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_a_host_and_a_port() {
        for (text, wanted) in [
            ("127.0.0.1:50051", Ok(("127.0.0.1", 50051))),
            ("cat.olm.svc:50051", Ok(("cat.olm.svc", 50051))),
            ("dns:///cat.olm.svc:1", Ok(("cat.olm.svc", 1))),
            ("[::1]:7", Ok(("::1", 7))),
            ("cat.olm.svc", Err("missing port in address")),
            ("a:b:1", Err("too many colons in address")),
            ("cat:port", Err("invalid port")),
            ("http://cat:1", Err("too many colons in address")),
            ("c at:1", Err("invalid host")),
        ] {
            let read: Result<Address, RpcError> = text.parse();
            match (read, wanted) {
                (Ok(address), Ok(wanted)) => assert_eq!((&*address.host, address.port), wanted),
                (Err(fault), Err(why)) => assert!(fault.text().contains(why), "{text}: {fault}"),
                (read, _) => panic!("{text}: {read:?}"),
            }
        }
    }
}
