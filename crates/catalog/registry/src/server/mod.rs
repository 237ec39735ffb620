//! Registry server: gRPC and HTTP on one port, over HTTP/1 or HTTP/2 without TLS; or the HTTP catalog
//! API alone, over TLS.
//!
//! ```text
//! port ([`mainstay_port::plain`]) ─┬─ application/grpc ─► gRPC
//!                                  └─ anything else ────► catalogs
//! port ([`mainstay_port::secure`]) ─────────────────────► catalogs
//! ```
//!
//! The port listens before content is loaded; requests that come too early get an error.

use crate::http::{CatalogBody, CatalogHttpApi};
use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::Either;
pub use mainstay_port::plain::Limits;
use mainstay_port::{TrackedBody, plain, secure};
use rustls::ServerConfig;
use std::{convert::Infallible, error::Error, net::SocketAddr, sync::Arc, time::Duration};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt as _};

/// A finished request for an access log.
#[derive(Debug)]
pub struct Access<'a> {
    /// The address of the client.
    pub peer: SocketAddr,
    /// The method.
    pub method: &'a http::Method,
    /// The requested URI.
    pub uri: &'a http::Uri,
    /// The status of the response.
    pub status: http::StatusCode,
}

/// Called for every response when it begins.
pub type AccessListener = Arc<dyn Fn(&Access<'_>) + Send + Sync>;

/// Serves until `stop` is cancelled and the connections have ended, which takes at most
/// [`Limits::grace`].
pub async fn serve<G, B>(
    listener: TcpListener,
    http: CatalogHttpApi,
    grpc: G,
    limits: Limits,
    log_access: Option<AccessListener>,
    stop: CancellationToken,
) where
    G: Service<Request<TrackedBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    G::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let apis = Apis { http, grpc, log_access };
    let answer = move |request, client| apis.clone().answer(request, client);
    plain::serve(listener, limits, stop, answer).await;
}

/// Limits for downloads of catalogs: as upstream's catalog server, a response takes five minutes at
/// most, and the head of a request five seconds.
pub const DOWNLOAD_LIMITS: Limits = Limits {
    head: Duration::from_secs(5),
    response: Some(Duration::from_mins(5)),
    ..Limits::DEFAULT
};

/// Serves the HTTP catalog API over TLS until `stop` is cancelled and the connections have ended,
/// which takes at most [`Limits::grace`].
///
/// Upstream serves HTTP/1.1 only: the protocol `http/1.1`.
pub async fn serve_https(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    http: CatalogHttpApi,
    limits: Limits,
    log_access: Option<AccessListener>,
    stop: CancellationToken,
) {
    let answer = move |request: Request<TrackedBody>, peer| {
        let answer = http.answer(&request);
        if let Some(log_access) = &log_access {
            let (method, uri) = (request.method(), request.uri());
            log_access(&Access { peer, method, uri, status: answer.status() });
        }
        std::future::ready(answer)
    };
    secure::serve(listener, tls, limits, stop, answer).await;
}

/// The APIs behind the port.
#[derive(Clone)]
struct Apis<G> {
    http: CatalogHttpApi,
    grpc: G,
    log_access: Option<AccessListener>,
}

impl<G, B> Apis<G>
where
    G: Service<Request<TrackedBody>, Response = Response<B>, Error = Infallible>,
{
    async fn answer(
        self,
        request: Request<TrackedBody>,
        peer: SocketAddr,
    ) -> Response<Either<CatalogBody, B>> {
        let Self { http, grpc, log_access } = self;
        let logged_request =
            log_access.is_some().then(|| (request.method().clone(), request.uri().clone()));
        let kind = request.headers().get(header::CONTENT_TYPE);
        let answer = if kind.is_some_and(|kind| is_grpc(kind.as_bytes())) {
            let Ok(answer) = grpc.oneshot(request).await;
            answer.map(Either::Right)
        } else {
            http.answer(&request).map(Either::Left)
        };
        if let (Some(log_access), Some((method, uri))) = (log_access, logged_request) {
            log_access(&Access { peer, method: &method, uri: &uri, status: answer.status() });
        }
        answer
    }
}

/// Whether a content type is gRPC: `application/grpc`, with an optional suffix or parameters.
fn is_grpc(kind: &[u8]) -> bool {
    let rest = kind.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_that_only_start_like_grpc_are_not_grpc() {
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
