//! HTTP listener of `mainstay run` for health probes and metrics.

use super::access::AccessReviews;
use crate::health::{Health, response};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use mainstay_apiserver::serve::{self, Limits};
use mainstay_auth::authz::Attributes;
use mainstay_port::{TrackedBody, plain};
use rustls::ServerConfig;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::service_fn;

/// Limits of the listener.
const LIMITS: plain::Limits = plain::Limits {
    connections: 64,
    streams: 16,
    head_bytes: 64 << 10,
    grace: Duration::from_millis(300),
    ..plain::Limits::DEFAULT
};

/// The response to a client whose bearer token must allow it to read metrics.
async fn respond_guarded(
    health: &Health,
    access: &AccessReviews,
    request: Request<TrackedBody>,
) -> Response<Full<Bytes>> {
    let (parts, _) = request.into_parts();
    let path = parts.uri.path();
    if path == "/metrics" {
        let authorization = async {
            let identity = access.authenticate(&parts.headers).await?;
            access.authorize(&Attributes::path(&identity, "get", path)).await
        };
        if let Err(status) = authorization.await {
            let code = StatusCode::from_u16(status.code);
            return response(code.unwrap_or(StatusCode::FORBIDDEN), format!("{status}\n"));
        }
    }
    health.respond(&parts.method, path)
}

/// Serves until `stop`: without TLS to every client, or with TLS, and metrics then only to permitted
/// users.
pub(super) async fn serve(
    listener: TcpListener,
    health: Health,
    tls_and_access: Option<(Arc<ServerConfig>, Arc<AccessReviews>)>,
    stop: CancellationToken,
) {
    let Some((settings, access)) = tls_and_access else {
        let respond = move |request: Request<TrackedBody>, _| {
            std::future::ready(health.respond(request.method(), request.uri().path()))
        };
        plain::serve(listener, LIMITS, stop, respond).await;
        return;
    };
    let limits = Limits { connections: LIMITS.connections, ..Limits::default() };
    let service = service_fn(move |request: Request<TrackedBody>| {
        let (health, access) = (health.clone(), Arc::clone(&access));
        async move { Ok::<_, Infallible>(respond_guarded(&health, &access, request).await) }
    });
    serve::serve(listener, settings, limits, stop, service).await;
}
