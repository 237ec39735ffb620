//! A port without TLS: HTTP/1 and HTTP/2, with limits on whoever sends or takes nothing.
//!
//! Connections ([`Room`]), streams and heads of requests have limits, a connection on which nothing moves
//! is cut, and so is an answer over HTTP/2 that nobody takes, so that whoever does not read does not pin
//! memory for ever.
//!
//! Shutting down: nobody is accepted any more, answers under way are finished, and what still runs after
//! the grace period is dropped.

use crate::{Guard, Paced, Received, Room, Seat, Streams};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::{convert::Infallible, error::Error, net::SocketAddr, time::Duration};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Bytes of an answer that wait for the other end, for each HTTP/2 stream.
const SEND_BUFFER: usize = 64 << 10;

/// Deadlines and sizes of a port.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at one time. Nobody says who it is here: for the next one, the connection ends that asked
    /// for nothing for the longest time.
    pub connections: usize,
    /// Requests of one HTTP/2 connection at one time.
    pub streams: u32,
    /// Bytes of the head of a request.
    pub head_bytes: u32,
    /// For the head of a request.
    pub head: Duration,
    /// How long nothing may come from a client, not even an answer to a ping.
    pub idle: Duration,
    /// How long a client may take nothing of an answer.
    pub stall: Duration,
    /// How often HTTP/2 clients are asked whether they are there.
    pub ping: Duration,
    /// How long answers under way may take to end when shutting down.
    pub grace: Duration,
}

impl Limits {
    /// What suits a port that serves a cluster.
    pub const DEFAULT: Self = Self {
        connections: 1024,
        streams: 128,
        head_bytes: 16 << 10,
        head: Duration::from_secs(10),
        idle: Duration::from_secs(90),
        stall: Duration::from_secs(30),
        ping: Duration::from_secs(30),
        grace: Duration::from_secs(10),
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Answers requests, which come with the address of the client, until `stop` is cancelled and the
/// connections have ended, which takes no longer than [`Limits::grace`].
pub async fn serve<A, F, B>(
    listener: TcpListener,
    limits: Limits,
    stop: CancellationToken,
    answer: A,
) where
    A: Fn(Request<Received>, SocketAddr) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let until = stop.clone();
    let serve = move |stream, client, seat| {
        let answer = answer.clone();
        let answer = move |request| answer(request, client);
        connection(stream, client, limits, stop.clone(), seat, answer)
    };
    let room = Room::open(limits.connections);
    crate::connections(listener, room, limits.grace, &until, serve).await;
}

/// Serves a connection from its first byte to its last.
async fn connection<F, B>(
    stream: TcpStream,
    client: SocketAddr,
    limits: Limits,
    stop: CancellationToken,
    seat: Seat,
    answer: impl Fn(Request<Received>) -> F + Send + Sync + 'static,
) where
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    // Answers are small and latency counts more than packets.
    let _ = stream.set_nodelay(true);
    let streams = Streams::new(limits.stall);
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
        let (request, read) = Received::watch(request);
        let (answered, begun) = (answer(request), seat.begin());
        async move {
            let mut answer = answered.await;
            read.announce(answer.status(), answer.headers_mut());
            drop(begun);
            Ok::<_, Infallible>(answer.map(|body| Paced::new(Box::pin(body))))
        }
    });
    let io = TokioIo::new(Guard::new(stream, limits.idle, limits.stall));
    let mut connection = Box::pin(builder.serve_connection(io, service));
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
        () = stuck => Err("the end of an answer is not taken".into()),
    };
    if let Err(error) = result {
        tracing::debug!(%client, error, "a connection broke");
    }
}
