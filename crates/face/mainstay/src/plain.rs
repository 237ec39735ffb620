//! A port without TLS: HTTP/1 and HTTP/2, with limits on whoever sends or takes nothing.

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use mainstay_port::{Guard, Paced, Received, Room, Seat, Streams};
use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// How long the head of a request may take, and how many bytes of it there may be.
const HEAD_TIME: Duration = Duration::from_secs(10);
const HEAD: usize = 32 << 10;
/// How long nothing may come from a client.
const IDLE: Duration = Duration::from_secs(90);
/// How long answers under way may take at the end.
const GRACE: Duration = Duration::from_millis(300);

/// What a port takes.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Connections at one time; for the next one, the connection ends that asked for nothing for the longest
    /// time.
    pub(crate) connections: usize,
    /// Requests of a connection at one time.
    pub(crate) streams: u32,
    /// How long nothing may be taken by a client.
    pub(crate) stall: Duration,
}

/// Answers until `stop`.
pub(crate) async fn serve<A, F, B>(
    listener: TcpListener,
    limits: Limits,
    stop: CancellationToken,
    answer: A,
) where
    A: Fn(Request<Received>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let until = stop.clone();
    let serve =
        move |stream, _, seat| connection(stream, limits, stop.clone(), seat, answer.clone());
    let room = Room::open(limits.connections);
    mainstay_port::connections(listener, room, GRACE, &until, serve).await;
}

async fn connection<A, F, B>(
    stream: TcpStream,
    limits: Limits,
    stop: CancellationToken,
    seat: Seat,
    answer: A,
) where
    A: Fn(Request<Received>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    // Most answers are small.
    let _ = stream.set_nodelay(true);
    let streams = Streams::new(limits.stall);
    let stuck = streams.stuck();
    let mut builder = auto::Builder::new(streams);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD.max(64 << 10))
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(32 << 10);
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
    let io = TokioIo::new(Guard::new(stream, IDLE, limits.stall));
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
        tracing::debug!(error, "a connection broke");
    }
}
