//! One port for both APIs: gRPC and HTTP, over HTTP/1 or HTTP/2 without TLS, as clients like it.
//!
//! ```text
//! socket ─► guard (who does not move is cut) ─► HTTP/1 or HTTP/2 ─┬─ application/grpc ─► gRPC
//!                                                                 └─ anything else ────► catalogs
//! ```
//!
//! The port listens before there is content; what is asked too early is answered so. It defends
//! itself: connections ([`Room`]), streams and heads of requests have limits, and a connection on which
//! nothing moves is cut, and so is an answer over HTTP/2 that nobody takes, so that whoever does not read
//! does not pin memory for ever.
//!
//! Shutting down: nobody is accepted any more, answers under way are finished, and what still runs
//! after the grace period is dropped.

use crate::http::{Api, Body};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, Version, header};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use mainstay_port::{Guard, Paced, Room, Seat, Streams};
use std::{convert::Infallible, error::Error, net::SocketAddr, sync::Arc, time::Duration};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt as _};

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

impl Default for Limits {
    /// What suits a catalog that a cluster reads.
    fn default() -> Self {
        Self {
            connections: 1024,
            streams: 128,
            head_bytes: 16 << 10,
            head: Duration::from_secs(10),
            idle: Duration::from_secs(90),
            stall: Duration::from_secs(30),
            ping: Duration::from_secs(30),
            grace: Duration::from_secs(10),
        }
    }
}

/// A request that was answered, for who keeps a log.
#[derive(Debug)]
pub struct Access<'a> {
    /// Who asked.
    pub peer: SocketAddr,
    /// The method.
    pub method: &'a http::Method,
    /// What was asked for.
    pub uri: &'a http::Uri,
    /// The status of the answer.
    pub status: http::StatusCode,
}

/// Hears of every answer when it begins.
pub type Hear = Arc<dyn Fn(&Access<'_>) + Send + Sync>;

/// Serves until `stop` is cancelled and the connections have ended, which takes no longer than
/// [`Limits::grace`].
pub async fn serve<G, B>(
    listener: TcpListener,
    http: Api,
    grpc: G,
    limits: Limits,
    hear: Option<Hear>,
    stop: CancellationToken,
) where
    G: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    G::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let port = Port { http, grpc, limits, hear, stop };
    let serve = |stream, peer, seat| port.clone().connection(stream, peer, seat);
    let room = Room::open(limits.connections);
    mainstay_port::connections(listener, room, limits.grace, &port.stop, serve).await;
}

/// What every connection needs.
#[derive(Clone)]
struct Port<G> {
    http: Api,
    grpc: G,
    limits: Limits,
    hear: Option<Hear>,
    stop: CancellationToken,
}

impl<G, B> Port<G>
where
    G: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    G::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// Serves a connection from its first byte to its last.
    async fn connection(self, stream: TcpStream, peer: SocketAddr, seat: Seat) {
        // Answers are small and latency counts more than packets.
        let _ = stream.set_nodelay(true);
        let (limits, stop) = (self.limits, self.stop.clone());
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
        let service = service_fn(move |request| {
            let (answer, begun) = (self.clone().answer(request, peer), seat.begin());
            async move {
                let answer = answer.await;
                drop(begun);
                answer.map(|answer| answer.map(|body| Paced::new(Box::pin(body))))
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
            tracing::debug!(%peer, error, "a connection broke");
        }
    }

    async fn answer(
        self,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> Result<Response<Either<Body, B>>, Infallible> {
        let Self { http, grpc, hear, .. } = self;
        let asked = hear.is_some().then(|| (request.method().clone(), request.uri().clone()));
        let kind = request.headers().get(header::CONTENT_TYPE);
        let answer = if kind.is_some_and(|kind| is_grpc(kind.as_bytes())) {
            grpc.oneshot(request).await?.map(Either::Right)
        } else {
            // Nothing here has a body; over HTTP/1 one that was sent is no next request.
            let unread = request.version() < Version::HTTP_2
                && !http_body::Body::is_end_stream(request.body());
            let mut answer = http.answer(&request).map(Either::Left);
            if unread {
                answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            answer
        };
        if let (Some(hear), Some((method, uri))) = (hear, asked) {
            hear(&Access { peer, method: &method, uri: &uri, status: answer.status() });
        }
        Ok(answer)
    }
}

/// Whether content of that kind is a call: `application/grpc`, maybe with a coding or parameters.
fn is_grpc(kind: &[u8]) -> bool {
    let rest = kind.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_only_begin_like_grpc_are_no_calls() {
        for (kind, wanted) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc;charset=utf-8", true),
            ("application/grpc-web", false),
            ("application/grpcx", false),
            ("application/json", false),
            ("", false),
        ] {
            assert_eq!(is_grpc(kind.as_bytes()), wanted, "{kind}");
        }
    }
}
