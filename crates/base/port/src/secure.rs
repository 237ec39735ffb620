//! HTTPS listener: as [`crate::plain`], with TLS.
//!
//! The handshake has the deadline of a request head. Timeouts count the bytes of the connection, so they
//! hold for TLS as they hold for HTTP. The TLS configuration selects the certificate of each connection,
//! and with its ALPN protocols the versions of HTTP.

use crate::plain::{Limits, serve_connection, timeout_stream};
use crate::{ConnectionHandle, ConnectionLimit, TrackedBody};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use rustls::ServerConfig;
use std::{error::Error, net::SocketAddr, sync::Arc};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// Serves requests over TLS, each with the address of its client, until `stop` is cancelled and the
/// connections have ended, which takes at most [`Limits::grace`].
pub async fn serve<A, F, B>(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
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
    let acceptor = TlsAcceptor::from(tls);
    let serve = move |stream, client, handle| {
        let (acceptor, handler, stop) = (acceptor.clone(), handler.clone(), stop.clone());
        let handler = move |request| handler(request, client);
        serve_tls(acceptor, stream, client, limits, stop, handle, handler)
    };
    let limit = ConnectionLimit::anonymous(limits.connections);
    crate::accept_connections(listener, limit, limits.grace, &until, serve).await;
}

async fn serve_tls<F, B>(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    client: SocketAddr,
    limits: Limits,
    stop: CancellationToken,
    handle: ConnectionHandle,
    handler: impl Fn(Request<TrackedBody>) -> F + Send + Sync + 'static,
) where
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let handshake = timeout(limits.head, acceptor.accept(timeout_stream(stream, limits)));
    let stream = match stop.run_until_cancelled(handshake).await {
        None => return,
        Some(Ok(Ok(stream))) => stream,
        Some(Ok(Err(error))) => {
            tracing::debug!(%client, %error, "TLS handshake failed");
            return;
        }
        Some(Err(_)) => {
            tracing::debug!(%client, "TLS handshake timed out");
            return;
        }
    };
    serve_connection(stream, client, limits, stop, handle, handler).await;
}
