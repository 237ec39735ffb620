//! HTTP listener of the image registry: HTTP/1 and HTTP/2 without TLS, for programs on this machine.
//!
//! Loopback has no certificate that clients trust, and needs none: docker and podman accept that, and
//! skopeo with `--tls-verify=false`. A web page could reach the listener with a DNS name that leads
//! here, so requests for other hosts are refused. It could also send requests to the address, so a
//! browser's cross-site requests are refused.

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, header};
use mainstay_image::serve::{RegistryBody, RegistryHandler, denied};
use mainstay_port::TrackedBody;
use mainstay_port::plain::{self, Limits};
use std::net::IpAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Limits of the listener: layers are large, and clients may be slow.
const LIMITS: Limits = Limits {
    connections: 256,
    streams: 64,
    head_bytes: 64 << 10,
    stall: Duration::from_mins(1),
    grace: Duration::from_millis(300),
    ..Limits::DEFAULT
};

/// Serves a registry until `stop`.
pub(super) async fn serve(
    listener: TcpListener,
    registry: RegistryHandler,
    stop: CancellationToken,
) {
    let respond = move |request, _| respond(registry.clone(), request);
    plain::serve(listener, LIMITS, stop, respond).await;
}

async fn respond(
    registry: RegistryHandler,
    request: Request<TrackedBody>,
) -> Response<RegistryBody> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(http::uri::Authority::as_str));
    let Some(host) = host.filter(|host| is_this_machine(host)) else {
        let why = "this registry serves its own machine only";
        return denied(StatusCode::MISDIRECTED_REQUEST, why);
    };
    if is_foreign_page(request.headers(), host) {
        let why = "this registry does not answer pages of other sites";
        return denied(StatusCode::FORBIDDEN, why);
    }
    registry.handle(request).await
}

/// Whether a browser sends a request for a page of another site. No registry client sends any of these
/// headers, and a page cannot suppress them.
fn is_foreign_page(headers: &HeaderMap, host: &str) -> bool {
    let own = format!("http://{host}");
    let is_other_origin =
        |origin: &HeaderValue| !origin.as_bytes().eq_ignore_ascii_case(own.as_bytes());
    let is_cross_site = |site: &HeaderValue| !matches!(site.as_bytes(), b"same-origin" | b"none");
    headers.get_all(header::ORIGIN).iter().any(is_other_origin)
        || headers.get_all("sec-fetch-site").iter().any(is_cross_site)
}

/// Whether a host, perhaps with a port, names this machine.
fn is_this_machine(host: &str) -> bool {
    let Ok(uri) = host.parse::<Uri>() else { return false };
    let Some(name) = uri.authority().map(http::uri::Authority::host) else { return false };
    let address: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
    name.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::{is_foreign_page, is_this_machine};
    use http::{HeaderMap, HeaderName, HeaderValue};

    #[test]
    fn requests_for_hosts_other_than_this_machine_are_refused() {
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
            assert_eq!(is_this_machine(host), wanted, "{host}");
        }
    }

    #[test]
    fn browser_requests_from_other_sites_are_refused() {
        for (name, value, wanted) in [
            ("accept", "*/*", false),
            ("origin", "http://127.0.0.1:5000", false),
            ("origin", "http://127.0.0.1:5001", true),
            ("origin", "https://127.0.0.1:5000", true),
            ("origin", "http://evil.example", true),
            ("origin", "null", true),
            ("sec-fetch-site", "same-origin", false),
            ("sec-fetch-site", "none", false),
            ("sec-fetch-site", "same-site", true),
            ("sec-fetch-site", "cross-site", true),
        ] {
            let header = (HeaderName::from_static(name), HeaderValue::from_static(value));
            let headers = HeaderMap::from_iter([header]);
            assert_eq!(is_foreign_page(&headers, "127.0.0.1:5000"), wanted, "{name}: {value}");
        }
    }
}
