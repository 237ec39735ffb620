//! The TLS port: the same service that in-process clients call, for everybody else.
//!
//! Data flow: socket ─► TLS (client certificate optional, judged later) ─► HTTP/1.1 or
//! HTTP/2 as agreed in the handshake ─► request with a [`Peer`] extension ─► service. Who a
//! certificate or a bearer token belongs to is found later, for each request ([`mainstay_auth::authn`]).
//!
//! The port defends itself: handshakes and request heads have deadlines, heads have a size, who takes
//! nothing of an answer is cut, connections have shares ([`mainstay_port::ConnectionLimit`]), those of
//! HTTP/2 on which nothing is asked end, and one that does not speak TLS is told so in plain words.
//!
//! Connections on which nobody has proved who it is (strangers) take half of the room at most. For a
//! newcomer the oldest of them ends, and one that asks for nothing for [`Limits::stranger`] ends anyway,
//! whatever it has sent of a head. The first request with a good proof makes its connection a known one.
//!
//! Shutting down: nobody is accepted any more, answers that are complete are finished, and streams
//! without an end of their own (watches) end at their next frame boundary, so that clients see an
//! orderly end instead of a broken connection. What still runs after the grace period is dropped.

mod gather;
mod patience;

use self::gather::Gathered;
use self::patience::Patient;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use mainstay_auth::authn::Shown;
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
    /// Connections at one time. Half of them, at most, may be of strangers; when their half is full the
    /// oldest one ends for the next.
    pub connections: usize,
    /// How long a connection on which nobody has proved who it is stays without a request: half of this at
    /// least. It covers heads that are sent slowly, and frames of HTTP/2 that are no request.
    pub stranger: Duration,
    /// Streams of one HTTP/2 connection at one time; every watch of a client is one.
    pub streams: u32,
    /// For the TLS handshake, however it is sent.
    pub handshake: Duration,
    /// For the head of a request, and for an idle HTTP/1.1 connection to send its next one.
    pub head: Duration,
    /// Bytes of the head of a request. Those of strangers together are bounded by [`ConnectionLimit`].
    pub heads: usize,
    /// Headers of an HTTP/1.1 request.
    pub headers: usize,
    /// How long a client may take nothing of what is sent to it.
    pub unread: Duration,
    /// How long an HTTP/2 connection stays on which nothing is asked and nothing is answered; at most
    /// twice as long.
    pub idle: Duration,
    /// An HTTP/2 client that does not answer a ping for this long is gone.
    pub ping: Duration,
    /// How long open connections may take to end when shutting down.
    pub grace: Duration,
}

impl Default for Limits {
    /// What suits one machine with its tools and some hundred watches.
    fn default() -> Self {
        Self {
            connections: 4096,
            stranger: Duration::from_secs(20),
            streams: 1000,
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(90),
            heads: 256 * 1024,
            headers: 1000,
            unread: Duration::from_mins(1),
            idle: Duration::from_secs(90),
            ping: Duration::from_secs(30),
            grace: Duration::from_millis(900),
        }
    }
}

/// The other end of a connection; an extension of each of its requests.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The client certificate that it showed, whose key it has; whether it is good is another matter.
    pub certificate: Option<Arc<Shown>>,
    /// Where it connects from.
    pub address: SocketAddr,
    /// The place of its connection, which whoever verifies a proof of it says.
    pub seat: ConnectionHandle,
}

impl Peer {
    /// Whether a request comes from this machine, as far as its headers tell: a proxy on this machine
    /// that names itself stands for others.
    pub(crate) fn is_local(parts: &Parts) -> bool {
        let is_forwarded = ["forwarded", "via", "x-forwarded-for"]
            .iter()
            .any(|name| parts.headers.contains_key(*name));
        let peer = parts.extensions.get::<Self>();
        !is_forwarded && peer.is_some_and(|peer| peer.address.ip().to_canonical().is_loopback())
    }
}

/// Serves until `shutdown` is cancelled and the connections have ended, which takes no longer than
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
    let port = Port { acceptor: TlsAcceptor::from(tls), limits, shutdown, service };
    let serve = |stream, address, seat| port.clone().connection(stream, address, seat);
    let room = ConnectionLimit::authenticated(limits.connections);
    mainstay_port::accept_connections(listener, room, limits.grace, &port.shutdown, serve).await;
}

/// What every connection needs.
#[derive(Clone)]
struct Port<S> {
    acceptor: TlsAcceptor,
    limits: Limits,
    shutdown: CancellationToken,
    service: S,
}

impl<S, B> Port<S>
where
    S: Service<Request<TrackedBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Serves a connection from its first byte to its last. What is needed only to open it lies on
    /// the heap and goes before the first request: most connections carry a watch and nothing else
    /// for half an hour, so that their number is a question of memory.
    async fn connection(self, stream: TcpStream, address: SocketAddr, seat: ConnectionHandle) {
        let Some(connection) = Box::pin(self.open(stream, address, seat)).await else { return };
        if let Err(error) = connection.await {
            tracing::debug!(%address, %error, "a connection broke");
        }
    }

    async fn open(
        self,
        stream: TcpStream,
        address: SocketAddr,
        seat: ConnectionHandle,
    ) -> Option<BoxFuture<'static, hyper::Result<()>>> {
        // Answers are small and latency counts more than packets.
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
                tracing::debug!(%address, "TLS handshake took too long");
                return None;
            }
        };
        let (_, session) = stream.get_ref();
        let certificate = Shown::new(session.peer_certificates()).map(Arc::new);
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
        let ended = shutdown.clone();
        let asked = RequestCount::default();
        let (counter, seat) = (asked.clone(), peer.seat.clone());
        let (own, receiver) = (seat.clone(), seat.clone());
        let strangers = stranger(asked.clone(), move || own.is_authenticated(), limits.stranger);
        let strangers: BoxFuture<'static, ()> = Box::pin(strangers);
        let service = service_fn(move |request: Request<Incoming>| {
            let (mut request, read) = TrackedBody::track(request);
            request.extensions_mut().insert(peer.clone());
            let answer = service.clone().oneshot(request);
            let ended = ended.clone();
            let asked = counter.another(&seat);
            async move {
                let mut answer = answer.await?;
                // A refusal that came before the body was read ends the connection.
                read.close_if_unread(answer.status(), answer.headers_mut());
                Ok::<_, Infallible>(
                    answer.map(|body| PacedBody::new(Ending::new(body, &ended, asked))),
                )
            }
        });
        // The handshake has settled the version, so the first bytes need not be guessed at. The
        // state of HTTP/2 is many times that of HTTP/1.1: each is made for itself.
        if http2 {
            let io = TokioIo::new(Gathered::new(Patient::new(stream, receiver, limits.unread)));
            let streams = StreamExecutor::new(limits.unread);
            let stuck = streams.stuck();
            let mut builder = http2::Builder::new(streams);
            builder
                .timer(TokioTimer::new())
                .max_concurrent_streams(limits.streams)
                .max_header_list_size(u32::try_from(limits.heads).unwrap_or(u32::MAX))
                .keep_alive_interval(limits.ping)
                .keep_alive_timeout(limits.ping);
            let connection = Box::pin(builder.serve_connection(io, service));
            let end = async move {
                tokio::select! {
                    () = shutdown.cancelled() => {}
                    () = asked.idle(limits.idle) => {}
                }
            };
            let cut = Box::pin(async move {
                tokio::select! {
                    () = strangers => {}
                    () = stuck => {}
                }
            });
            Box::pin(drive(connection, cut, end, http2::Connection::graceful_shutdown))
        } else {
            let io = TokioIo::new(Patient::new(stream, receiver, limits.unread));
            let mut builder = http1::Builder::new();
            builder
                .timer(TokioTimer::new())
                .header_read_timeout(limits.head)
                .max_headers(limits.headers)
                .max_buf_size(limits.heads);
            let connection = Box::pin(builder.serve_connection(io, service).with_upgrades());
            let end = async move { shutdown.cancelled().await };
            let ask = http1::UpgradeableConnection::graceful_shutdown;
            Box::pin(drive(connection, strangers, end, ask))
        }
    }
}

/// What is asked on a connection: one token for it, and one for each request until its answer is
/// sent; the number counts them all.
#[derive(Clone, Debug, Default)]
struct RequestCount(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Requests so far.
    all: AtomicU64,
    /// Requests whose answers are not sent yet.
    open: AtomicU64,
}

/// A request until its answer is sent.
struct Open {
    counts: Arc<Counts>,
    _request: mainstay_port::RequestGuard,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.counts.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl RequestCount {
    fn another(&self, seat: &ConnectionHandle) -> Open {
        self.0.all.fetch_add(1, Ordering::Relaxed);
        self.0.open.fetch_add(1, Ordering::Relaxed);
        Open { counts: Arc::clone(&self.0), _request: seat.begin_request() }
    }

    /// Waits until nothing was asked for a while.
    async fn idle(&self, long: Duration) {
        let mut before = self.0.all.load(Ordering::Relaxed);
        loop {
            sleep(long).await;
            let now = self.0.all.load(Ordering::Relaxed);
            if now == before && self.0.open.load(Ordering::Relaxed) == 0 {
                return;
            }
            before = now;
        }
    }
}

/// Returns when a connection on which nobody has proved who it is asks for nothing for too long; never once
/// somebody has.
async fn stranger(asked: RequestCount, is_proven: impl Fn() -> bool, long: Duration) {
    asked.idle(long / 2).await;
    if is_proven() {
        std::future::pending::<()>().await;
    }
}

/// Serves a connection to its end, or until it is `cut`; it is asked by `end` to end after `over`.
async fn drive<C: Future<Output = hyper::Result<()>>>(
    mut connection: Pin<Box<C>>,
    mut cut: BoxFuture<'static, ()>,
    over: impl Future<Output = ()>,
    end: impl FnOnce(Pin<&mut C>),
) -> hyper::Result<()> {
    tokio::select! {
        result = connection.as_mut() => return result,
        () = cut.as_mut() => return Ok(()),
        () = over => end(connection.as_mut()),
    }
    tokio::select! {
        result = connection.as_mut() => result,
        () = cut.as_mut() => Ok(()),
    }
}

/// The handshake; what comes without TLS and looks like HTTP gets an answer it can read.
async fn handshake(
    acceptor: &TlsAcceptor,
    mut stream: TcpStream,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut first = [0_u8; 1];
    if stream.peek(&mut first).await? == 1 && first[0].is_ascii_uppercase() {
        // The words of Go's server, which people search for.
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

/// A body that ends early when the server shuts down, if it has no end of its own.
struct Ending<B> {
    body: B,
    /// None for bodies of known length, which are finished.
    shutdown: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    ended: bool,
    /// Tells the connection, while it is there, that something is asked.
    _asked: Open,
}

impl<B: Body> Ending<B> {
    fn new(body: B, shutdown: &CancellationToken, asked: Open) -> Self {
        let endless = body.size_hint().exact().is_none() && !body.is_end_stream();
        let shutdown = endless.then(|| Box::pin(shutdown.clone().cancelled_owned()));
        Self { body, shutdown, ended: false, _asked: asked }
    }
}

impl<B: Body + Unpin> Body for Ending<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        // The body goes first: what is ready to be sent still is.
        let outcome = Pin::new(&mut self.body).poll_frame(context);
        if outcome.is_ready() {
            return outcome;
        }
        if let Some(shutdown) = &mut self.shutdown
            && shutdown.as_mut().poll(context).is_ready()
        {
            self.ended = true;
            return Poll::Ready(None);
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.ended { SizeHint::with_exact(0) } else { self.body.size_hint() }
    }
}

#[cfg(test)]
mod tests;
