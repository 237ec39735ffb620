//! Plain HTTP listener: HTTP/1 and HTTP/2 without TLS, with limits and timeouts.
//!
//! Connections ([`ConnectionLimit`]), streams and heads of requests have limits. Idle connections time
//! out, and so do HTTP/2 responses that the client does not read, because they hold memory.
//!
//! On shutdown the listener accepts no more connections and finishes the responses in progress. What
//! still runs after the grace period is dropped.

use crate::deadline::ResponseDeadline;
use crate::{
    ConnectionHandle, ConnectionLimit, PacedBody, StreamExecutor, TimeoutStream, TrackedBody,
};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::{convert::Infallible, error::Error, net::SocketAddr, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Bytes of a response that are buffered for each HTTP/2 stream.
const SEND_BUFFER: usize = 64 << 10;

/// Timeouts and sizes of a listener.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at one time. Clients do not authenticate here: for the next one, the connection whose
    /// last request is the oldest ends.
    pub connections: usize,
    /// Requests of one HTTP/2 connection at one time.
    pub streams: u32,
    /// Bytes of the head of a request.
    pub head_bytes: u32,
    /// Time for the head of a request.
    pub head: Duration,
    /// How long a client may send nothing, not even the acknowledgement of a ping.
    pub idle: Duration,
    /// How long a client may read nothing of a response.
    pub stall: Duration,
    /// How long a response may take, whatever the client reads; none for a listener with endless
    /// responses.
    pub response: Option<Duration>,
    /// The interval of HTTP/2 pings.
    pub ping: Duration,
    /// How long responses in progress may take on shutdown.
    pub grace: Duration,
}

impl Limits {
    /// Limits for a listener that serves a cluster.
    pub const DEFAULT: Self = Self {
        connections: 1024,
        streams: 128,
        head_bytes: 16 << 10,
        head: Duration::from_secs(10),
        idle: Duration::from_secs(90),
        stall: Duration::from_secs(30),
        response: None,
        ping: Duration::from_secs(30),
        grace: Duration::from_secs(10),
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Serves requests, each with the address of its client, until `stop` is cancelled and the
/// connections have ended, which takes at most [`Limits::grace`].
pub async fn serve<A, F, B>(
    listener: TcpListener,
    limits: Limits,
    stop: CancellationToken,
    handler: A,
) where
    A: Fn(Request<TrackedBody>, SocketAddr) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let until = stop.clone();
    let serve = move |stream, client, handle| {
        let handler = handler.clone();
        let handler = move |request| handler(request, client);
        let stream = timeout_stream(stream, limits);
        serve_connection(stream, client, limits, stop.clone(), handle, handler)
    };
    let limit = ConnectionLimit::anonymous(limits.connections);
    crate::accept_connections(listener, limit, limits.grace, &until, serve).await;
}

/// A connection with the timeouts of a listener.
pub(crate) fn timeout_stream(stream: TcpStream, limits: Limits) -> TimeoutStream<TcpStream> {
    // Responses are small and latency counts more than packets.
    let _ = stream.set_nodelay(true);
    TimeoutStream::new(stream, limits.idle, limits.stall)
}

/// Serves a connection from its first byte to its last.
pub(crate) async fn serve_connection<S, F, B>(
    stream: S,
    client: SocketAddr,
    limits: Limits,
    stop: CancellationToken,
    handle: ConnectionHandle,
    handler: impl Fn(Request<TrackedBody>) -> F + Send + Sync + 'static,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let deadline = ResponseDeadline::new(limits.response);
    let late = deadline.late();
    let streams = StreamExecutor::new(limits.stall);
    let stuck = streams.stuck();
    let mut builder = auto::Builder::new(streams);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(usize::try_from(limits.head_bytes).unwrap_or(usize::MAX).max(8 << 10))
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(limits.head_bytes)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(limits.ping)
        .keep_alive_timeout(limits.ping);
    let service = service_fn(move |request: Request<Incoming>| {
        let (request, read) = TrackedBody::track(request);
        let (response, guard) = (handler(request), handle.begin_request());
        let deadline = deadline.clone();
        async move {
            let mut response = response.await;
            read.close_if_unread(response.status(), response.headers_mut());
            drop(guard);
            let timed = |body| PacedBody::new(Box::pin(deadline.begin(body)));
            Ok::<_, Infallible>(response.map(timed))
        }
    });
    let mut connection = Box::pin(builder.serve_connection(TokioIo::new(stream), service));
    let ended = async {
        tokio::select! {
            result = connection.as_mut() => result,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    let result = tokio::select! {
        result = ended => result,
        () = stuck => Err("the client does not read the end of a response".into()),
        () = late => Err("a response takes too long".into()),
    };
    if let Err(error) = result {
        tracing::debug!(%client, error, "a connection failed");
    }
}
