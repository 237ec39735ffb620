//! The port of the registry: HTTP/1 and HTTP/2 without TLS, for programs on this machine.
//!
//! Loopback has no certificate that clients know, and needs none; docker and podman take it so, and
//! skopeo with `--tls-verify=false`. A page in somebody's browser must not reach it by a name that
//! it makes lead here, so who asks for another host than this machine is sent away.

use crate::plain::{self, Limits};
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use mainstay_image::serve::{Body, Registry};
use std::net::IpAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// What the port takes: layers are large, and their readers may be slow.
const LIMITS: Limits = Limits { connections: 256, streams: 64, stall: Duration::from_mins(1) };

/// Serves a registry until `stop`.
pub(super) async fn serve(listener: TcpListener, registry: Registry, stop: CancellationToken) {
    let answer = move |request| answer(registry.clone(), request);
    plain::serve(listener, LIMITS, stop, answer).await;
}

async fn answer(registry: Registry, request: Request<Incoming>) -> Response<Body> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(http::uri::Authority::as_str));
    if !host.is_some_and(is_here) {
        let text = Full::new("this registry serves its own machine only\n".into());
        let mut refusal = Response::new(text.map_err(|never| match never {}).boxed());
        *refusal.status_mut() = StatusCode::MISDIRECTED_REQUEST;
        return refusal;
    }
    registry.handle(request).await
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
