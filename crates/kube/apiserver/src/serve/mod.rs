//! TLS port: the same service that in-process clients call, for connections.
//!
//! Data flow: socket ─► TLS (client certificate optional, verified later) ─► HTTP/1.1 or HTTP/2 as
//! agreed in the handshake ─► request with a [`Peer`] extension ─► service. Each request is
//! authenticated by its certificate or bearer token later ([`mainstay_auth::authn`]).
//!
//! The port defends itself:
//!
//! * Handshakes and request heads have deadlines, and heads have a maximum size.
//! * A connection or stream whose client does not read its responses is closed.
//! * Clients share the connections ([`mainstay_port::ConnectionLimit`]).
//! * An idle HTTP/2 connection ends.
//! * A client that does not speak TLS gets a plain-text error.
//!
//! At most half of the connections are unauthenticated. When that half is full, the oldest of them
//! ends for a new one. An idle one ends after [`Limits::unauthenticated_idle`], even while a head is
//! incomplete. The first authenticated request makes its connection an authenticated one.
//!
//! Shutdown: the port accepts no more connections and finishes complete responses. Endless streams
//! (watches) end at their next frame boundary, so that clients see an orderly end instead of a broken
//! connection. Whatever still runs after the grace period is dropped.

mod unread;
mod write_buffer;

use self::unread::TimeoutStream;
use self::write_buffer::WriteBuffer;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use mainstay_auth::authn::ClientCertificate;
use mainstay_port::{ConnectionHandle, ConnectionLimit, PacedBody, StreamExecutor, TrackedBody};
use rustls::ServerConfig;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::{Service, ServiceExt as _};

/// Deadlines and sizes of the port.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at one time. At most half of them may be unauthenticated; when that half is
    /// full, the oldest one ends for the next.
    pub connections: usize,
    /// How long an unauthenticated connection stays open without a request: at least half of this.
    /// It bounds heads that are sent slowly, and HTTP/2 frames that are no request.
    pub unauthenticated_idle: Duration,
    /// Streams of one HTTP/2 connection at one time; every watch of a client is one.
    pub streams: u32,
    /// Timeout of the TLS handshake.
    pub handshake: Duration,
    /// Timeout of a request head, and how long an idle HTTP/1.1 connection stays open.
    pub head: Duration,
    /// Bytes of a request head. [`ConnectionLimit`] bounds the heads of all unauthenticated connections
    /// together.
    pub head_size: usize,
    /// Headers of an HTTP/1.1 request.
    pub headers: usize,
    /// How long a client may read nothing of its responses.
    pub unread: Duration,
    /// How long an HTTP/2 connection without requests stays open; at most twice as long.
    pub idle: Duration,
    /// Timeout of an HTTP/2 ping; without a response the connection ends.
    pub ping: Duration,
    /// How long open connections may take to end at shutdown.
    pub grace: Duration,
}

impl Default for Limits {
    /// Values for one machine with its tools and some hundred watches.
    fn default() -> Self {
        Self {
            connections: 4096,
            unauthenticated_idle: Duration::from_secs(20),
            streams: 1000,
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(90),
            head_size: 256 * 1024,
            headers: 1000,
            unread: Duration::from_mins(1),
            idle: Duration::from_secs(90),
            ping: Duration::from_secs(30),
            grace: Duration::from_millis(900),
        }
    }
}

/// The client of a connection; an extension of each of its requests.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The client certificate whose private key the client holds; it is not verified yet.
    pub certificate: Option<Arc<ClientCertificate>>,
    /// The address of the client.
    pub address: SocketAddr,
    /// The seat of the connection. Authentication marks it as proven.
    pub seat: ConnectionHandle,
}

impl Peer {
    /// Whether a request comes from this machine. A request with the headers of a proxy does not,
    /// because a local proxy acts for others.
    pub(crate) fn is_local(parts: &Parts) -> bool {
        let is_forwarded = ["forwarded", "via", "x-forwarded-for"]
            .iter()
            .any(|name| parts.headers.contains_key(*name));
        let peer = parts.extensions.get::<Self>();
        !is_forwarded && peer.is_some_and(|peer| peer.address.ip().to_canonical().is_loopback())
    }
}

/// Serves until `shutdown` is cancelled and the connections have ended, which takes at most
/// [`Limits::grace`].
pub async fn serve<S, B>(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    limits: Limits,
    shutdown: CancellationToken,
    service: S,
) where
    S: Service<Request<TrackedBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let context = ConnectionContext { acceptor: TlsAcceptor::from(tls), limits, shutdown, service };
    let serve = |stream, address, seat| context.clone().connection(stream, address, seat);
    let room = ConnectionLimit::authenticated(limits.connections);
    mainstay_port::accept_connections(listener, room, limits.grace, &context.shutdown, serve).await;
}

/// The context that all connections share.
#[derive(Clone)]
struct ConnectionContext<S> {
    acceptor: TlsAcceptor,
    limits: Limits,
    shutdown: CancellationToken,
    service: S,
}

impl<S, B> ConnectionContext<S>
where
    S: Service<Request<TrackedBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Serves a connection from its first byte to its last. State that only the handshake needs is
    /// boxed and dropped before the first request. Most connections carry one watch for half an
    /// hour, so memory limits their number.
    async fn connection(self, stream: TcpStream, address: SocketAddr, seat: ConnectionHandle) {
        let Some(connection) = Box::pin(self.open(stream, address, seat)).await else { return };
        if let Err(error) = connection.await {
            tracing::debug!(%address, %error, "a connection failed");
        }
    }

    async fn open(
        self,
        stream: TcpStream,
        address: SocketAddr,
        seat: ConnectionHandle,
    ) -> Option<BoxFuture<'static, hyper::Result<()>>> {
        // Responses are small, and latency counts more than packets.
        let _ = stream.set_nodelay(true);
        let handshake = tokio::select! {
            () = self.shutdown.cancelled() => return None,
            done = timeout(self.limits.handshake, handshake(&self.acceptor, stream)) => done,
        };
        let stream = match handshake {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%address, %error, "TLS handshake failed");
                return None;
            }
            Err(_) => {
                tracing::debug!(%address, "TLS handshake timed out");
                return None;
            }
        };
        let (_, session) = stream.get_ref();
        let certificate = ClientCertificate::new(session.peer_certificates()).map(Arc::new);
        let http2 = session.alpn_protocol() == Some(b"h2");
        let peer = Peer { certificate, address, seat };
        Some(self.requests(stream, peer, http2))
    }

    fn requests(
        self,
        stream: TlsStream<TcpStream>,
        peer: Peer,
        http2: bool,
    ) -> BoxFuture<'static, hyper::Result<()>> {
        let Self { limits, shutdown, service, .. } = self;
        let shutdown_token = shutdown.clone();
        let requests = RequestCount::default();
        let (counter, seat) = (requests.clone(), peer.seat.clone());
        let (proof_seat, receiver_seat) = (seat.clone(), seat.clone());
        let unauthenticated = wait_unauthenticated_idle(
            requests.clone(),
            move || proof_seat.is_authenticated(),
            limits.unauthenticated_idle,
        );
        let unauthenticated: BoxFuture<'static, ()> = Box::pin(unauthenticated);
        let service =
            service_fn(move |request: Request<Incoming>| {
                let (mut request, body_state) = TrackedBody::track(request);
                request.extensions_mut().insert(peer.clone());
                let response = service.clone().oneshot(request);
                let shutdown_token = shutdown_token.clone();
                let requests = counter.begin_request(&seat);
                async move {
                    let mut response = response.await?;
                    // A refusal before the body was read ends the connection.
                    body_state.close_if_unread(response.status(), response.headers_mut());
                    Ok::<_, Infallible>(response.map(|body| {
                        PacedBody::new(ShutdownBody::new(body, &shutdown_token, requests))
                    }))
                }
            });
        // ALPN has agreed on the version, so no detection is necessary. HTTP/2 needs many times the
        // memory of HTTP/1.1, so each has its own state.
        if http2 {
            let io = TokioIo::new(WriteBuffer::new(TimeoutStream::new(
                stream,
                receiver_seat,
                limits.unread,
            )));
            let streams = StreamExecutor::new(limits.unread);
            let stuck = streams.stuck();
            let mut builder = http2::Builder::new(streams);
            builder
                .timer(TokioTimer::new())
                .max_concurrent_streams(limits.streams)
                .max_header_list_size(u32::try_from(limits.head_size).unwrap_or(u32::MAX))
                .keep_alive_interval(limits.ping)
                .keep_alive_timeout(limits.ping);
            let connection = Box::pin(builder.serve_connection(io, service));
            let shutdown_signal = async move {
                tokio::select! {
                    () = shutdown.cancelled() => {}
                    () = requests.wait_idle(limits.idle) => {}
                }
            };
            let abort = Box::pin(async move {
                tokio::select! {
                    () = unauthenticated => {}
                    () = stuck => {}
                }
            });
            Box::pin(drive(
                connection,
                abort,
                shutdown_signal,
                http2::Connection::graceful_shutdown,
            ))
        } else {
            let io = TokioIo::new(TimeoutStream::new(stream, receiver_seat, limits.unread));
            let mut builder = http1::Builder::new();
            builder
                .timer(TokioTimer::new())
                .header_read_timeout(limits.head)
                .max_headers(limits.headers)
                .max_buf_size(limits.head_size);
            let connection = Box::pin(builder.serve_connection(io, service).with_upgrades());
            let shutdown_signal = async move { shutdown.cancelled().await };
            let shut_down = http1::UpgradeableConnection::graceful_shutdown;
            Box::pin(drive(connection, unauthenticated, shutdown_signal, shut_down))
        }
    }
}

/// Counts the requests of a connection.
#[derive(Clone, Debug, Default)]
struct RequestCount(Arc<RequestCounts>);

#[derive(Debug, Default)]
struct RequestCounts {
    /// Requests so far.
    all: AtomicU64,
    /// Requests whose responses are not sent yet.
    open: AtomicU64,
}

/// A request whose response is not sent yet.
struct OpenRequest {
    counts: Arc<RequestCounts>,
    _request: mainstay_port::RequestGuard,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.counts.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl RequestCount {
    fn begin_request(&self, seat: &ConnectionHandle) -> OpenRequest {
        self.0.all.fetch_add(1, Ordering::Relaxed);
        self.0.open.fetch_add(1, Ordering::Relaxed);
        OpenRequest { counts: Arc::clone(&self.0), _request: seat.begin_request() }
    }

    /// Waits until no request was open or began for a while.
    async fn wait_idle(&self, duration: Duration) {
        let mut before = self.0.all.load(Ordering::Relaxed);
        loop {
            sleep(duration).await;
            let now = self.0.all.load(Ordering::Relaxed);
            if now == before && self.0.open.load(Ordering::Relaxed) == 0 {
                return;
            }
            before = now;
        }
    }
}

/// Returns when an unauthenticated connection was idle for too long; never after authentication.
async fn wait_unauthenticated_idle(
    requests: RequestCount,
    is_proven: impl Fn() -> bool,
    duration: Duration,
) {
    requests.wait_idle(duration / 2).await;
    if is_proven() {
        std::future::pending::<()>().await;
    }
}

/// Serves a connection to its end or until `abort`. After `shutdown_signal`, `shut_down` starts its
/// graceful end.
async fn drive<C: Future<Output = hyper::Result<()>>>(
    mut connection: Pin<Box<C>>,
    mut abort: BoxFuture<'static, ()>,
    shutdown_signal: impl Future<Output = ()>,
    shut_down: impl FnOnce(Pin<&mut C>),
) -> hyper::Result<()> {
    tokio::select! {
        result = connection.as_mut() => return result,
        () = abort.as_mut() => return Ok(()),
        () = shutdown_signal => shut_down(connection.as_mut()),
    }
    tokio::select! {
        result = connection.as_mut() => result,
        () = abort.as_mut() => Ok(()),
    }
}

/// The TLS handshake. A plain HTTP request gets a response that its client can read.
async fn handshake(
    acceptor: &TlsAcceptor,
    mut stream: TcpStream,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut first = [0_u8; 1];
    if stream.peek(&mut first).await? == 1 && first[0].is_ascii_uppercase() {
        // The text of Go's server, which people search for.
        stream
            .write_all(
                b"HTTP/1.0 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
            )
            .await?;
        stream.shutdown().await?;
        return Err(std::io::Error::other("an HTTP request without TLS"));
    }
    acceptor.accept(stream).await
}

/// A response body that ends early at shutdown, if it is endless.
struct ShutdownBody<B> {
    body: B,
    /// None for bodies of known length, which are finished.
    shutdown: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    shutdown_token: bool,
    /// Keeps the request open while the body exists.
    _request: OpenRequest,
}

impl<B: Body> ShutdownBody<B> {
    fn new(body: B, shutdown: &CancellationToken, requests: OpenRequest) -> Self {
        let endless = body.size_hint().exact().is_none() && !body.is_end_stream();
        let shutdown = endless.then(|| Box::pin(shutdown.clone().cancelled_owned()));
        Self { body, shutdown, shutdown_token: false, _request: requests }
    }
}

impl<B: Body + Unpin> Body for ShutdownBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.shutdown_token {
            return Poll::Ready(None);
        }
        // The body has priority: a frame that is ready is still sent.
        let outcome = Pin::new(&mut self.body).poll_frame(context);
        if outcome.is_ready() {
            return outcome;
        }
        if let Some(shutdown) = &mut self.shutdown
            && shutdown.as_mut().poll(context).is_ready()
        {
            self.shutdown_token = true;
            return Poll::Ready(None);
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.shutdown_token || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.shutdown_token { SizeHint::with_exact(0) } else { self.body.size_hint() }
    }
}

#[cfg(test)]
mod tests;
