//! The port of the registry: HTTP/1 and HTTP/2 without TLS, for programs on this machine.
//!
//! Loopback has no certificate that clients know, and needs none; docker and podman take it so, and
//! skopeo with `--tls-verify=false`. A page in somebody's browser must not reach it by a name that
//! it makes lead here, so who asks for another host than this machine is sent away.

use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use mainstay_image::serve::{Body, Registry};
use mainstay_port::Guard;
use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Connections at one time; more wait.
const CONNECTIONS: usize = 256;
/// Requests of a connection at one time.
const STREAMS: u32 = 64;
/// Bytes of the head of a request, and how long it may take.
const HEAD: usize = 32 << 10;
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long nothing may come from a client, or be taken by it.
const IDLE: Duration = Duration::from_secs(90);
const STALL: Duration = Duration::from_mins(1);
/// How long requests under way may take when the cluster stops.
const GRACE: Duration = Duration::from_millis(300);

/// Serves a registry until `stop`.
pub(super) async fn serve(listener: TcpListener, registry: Registry, stop: CancellationToken) {
    let until = stop.clone();
    let serve = move |stream, _| connection(stream, registry.clone(), stop.clone());
    mainstay_port::connections(listener, CONNECTIONS, GRACE, &until, serve).await;
}

async fn connection(stream: TcpStream, registry: Registry, stop: CancellationToken) {
    // Most answers are small.
    let _ = stream.set_nodelay(true);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD.max(64 << 10))
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(32 << 10);
    let service = service_fn(move |request| answer(registry.clone(), request));
    let io = TokioIo::new(Guard::new(stream, IDLE, STALL));
    let mut connection = Box::pin(builder.serve_connection(io, service));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(error, "a connection to the registry broke");
    }
}

async fn answer(
    registry: Registry,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(http::uri::Authority::as_str));
    if !host.is_some_and(is_here) {
        let text = Full::new("this registry serves its own machine only\n".into());
        let mut refusal = Response::new(text.map_err(|never| match never {}).boxed());
        *refusal.status_mut() = StatusCode::MISDIRECTED_REQUEST;
        return Ok(refusal);
    }
    Ok(registry.handle(request).await)
}

/// Whether a host, perhaps with a port, is this machine by name.
fn is_here(host: &str) -> bool {
    let Ok(uri) = host.parse::<Uri>() else { return false };
    let Some(name) = uri.authority().map(http::uri::Authority::host) else { return false };
    let address: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
    name.eq_ignore_ascii_case("localhost") || address.is_some_and(|it| it.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_here;

    #[test]
    fn only_names_of_this_machine_are_served() {
        for (host, wanted) in [
            ("localhost", true),
            ("localhost:5000", true),
            ("LOCALHOST:1", true),
            ("127.0.0.1:5000", true),
            ("127.0.0.2", true),
            ("[::1]:5000", true),
            ("evil.example", false),
            ("localhost.evil.example:5000", false),
            ("10.0.0.1", false),
            ("", false),
        ] {
            assert_eq!(is_here(host), wanted, "{host}");
        }
    }
}
