//! `pods/proxy` and `services/proxy`: requests of HTTP to a port of a pod, passed on as they are.
//!
//! ```text
//! [scheme:]name[:port] ─► pod ─────────────────────────► its handler, or port of this machine
//!                      └► service ─┬► native backend
//!                                  └► endpoint ─┬► pod
//!                                               └► address of the host's network
//! ```
//!
//! Bodies of requests are whole, those of answers are passed on as they come. Links in pages are
//! left as they are; where an answer redirects to, is put below the proxy.

use super::{ConnectError, Connection, NativePod, no_process, upgrade};
use crate::StreamRequest;
use bytes::Bytes;
use futures::stream;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{Method, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use mainstay_formats::destination::parse_old;
use mainstay_http::Body;
use mainstay_http::response::ApiResponse;
use mainstay_object::{Object, Reason, Status};
use mainstay_outbound::dial::judge;
use mainstay_outbound::{BackendError, NativeBackend, TlsConfigError};
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use serde_json::Value;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(30);
/// Bytes of an answer's head.
const HEAD: usize = 64 * 1024;
/// Headers that are about one connection.
const HOPS: [HeaderName; 8] = [
    CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authenticate"),
];

/// Answers `proxy` of pods, Services and nodes with its options as admission left them.
pub async fn answer(
    request: &StreamRequest<'_>,
    asked: &Object,
    method: &Method,
) -> Result<ApiResponse, Status> {
    let to = match &*request.row.storage {
        "pods" => of_pod(request)?,
        "services" => of_service(request)?,
        _ => {
            let (_, name, _) = parsed(&request.path.name, "node")?;
            let found = request.store.find("nodes", "", name);
            let unknown = || Status::not_found("", "nodes", name);
            return Err(found.map_or_else(unknown, |_| no_process("proxy")));
        }
    };
    if request.headers.contains_key(UPGRADE) {
        return Err(Status::bad_request("a proxy passes no upgrades on"));
    }
    let path = asked.str(&["path"]).unwrap_or_default();
    if path.is_empty() && matches!(*method, Method::GET | Method::HEAD) {
        return Ok(below(request.uri));
    }
    let path = format!("/{}", path.trim_start_matches('/'));
    let permit = upgrade::permit(request)?;
    let response = send(request, method, &to, &path).await.map_err(|error| {
        Status::new(Reason::ServiceUnavailable, format!("error trying to reach service: {error}"))
    })?;
    let (parts, body) = response.into_parts();
    let body = body.with_guard(Some(permit));
    let mut answer = ApiResponse::body(parts.status, body, 0);
    answer.content_type = "";
    answer.headers = headers_of(&parts.headers, request.uri, &to);
    Ok(answer)
}

/// Sends the client where the path ends with a slash, so that relative links hold.
fn below(uri: &Uri) -> ApiResponse {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let answer = ApiResponse::empty(StatusCode::MOVED_PERMANENTLY);
    match HeaderValue::try_from(format!("{}/{query}", uri.path())) {
        Ok(location) => answer.header(LOCATION, location),
        Err(_) => answer,
    }
}

/// Where a request is passed on to.
struct To {
    /// Whether TLS is spoken there; whose certificate is shown does not matter.
    tls: bool,
    /// Address and port.
    authority: String,
    way: Way,
}

enum Way {
    /// A port of a pod.
    Pod(Arc<dyn NativePod>, u16),
    /// A pod that is simulated and has no ports.
    Nobody,
    /// An address.
    Host(IpAddr, u16),
    /// A handler of this process.
    Backend(Arc<dyn NativeBackend>),
}

/// `[scheme:]name[:port]`, as paths name what is reached.
fn parsed<'a>(name: &'a str, what: &str) -> Result<(bool, &'a str, &'a str), Status> {
    let parts: Vec<&str> = name.split(':').collect();
    let (scheme, name_only, port) = match parts[..] {
        [name] => ("", name, ""),
        [name, port] => ("", name, port),
        [scheme, name, port] => (scheme, name, port),
        _ => ("?", "", ""),
    };
    if name_only.is_empty() || !matches!(scheme, "" | "http" | "https") {
        return Err(Status::bad_request(format!("invalid {what} request {name:?}")));
    }
    Ok((scheme == "https", name_only, port))
}

/// An address of a pod or an endpoint; none if nobody is proxied there.
fn address(ip: &str) -> Option<IpAddr> {
    parse_old(ip).filter(|ip| judge(*ip).is_ok())
}

fn of_pod(request: &StreamRequest<'_>) -> Result<To, Status> {
    let (tls, name, port) = parsed(&request.path.name, "pod")?;
    let store = request.store;
    let found = store.find("pods", &request.path.namespace, name);
    let pod = found.ok_or_else(|| Status::not_found("", "pods", name))?.object();
    let first = || {
        let mut ports = pod
            .array(&["spec", "containers"])
            .iter()
            .filter_map(|one| one.pointer("/ports/0/containerPort").and_then(Value::as_u64));
        ports.next().map(|port| port.to_string())
    };
    let port = if port.is_empty() { first().unwrap_or_default() } else { port.to_owned() };
    let ip = pod.array(&["status", "podIPs"]).first().and_then(|one| one.get("ip"));
    let ip = ip.and_then(Value::as_str).unwrap_or_default();
    let ip = address(ip).ok_or_else(|| Status::bad_request("address not allowed"))?;
    let standard = if tls { 443 } else { 80 };
    // A port that is none is one at which nobody listens.
    let number = if port.is_empty() { standard } else { port.parse().unwrap_or_default() };
    let way = match request.native_pods.with_ports(&pod, store) {
        Some(native) => Way::Pod(native, number),
        None => Way::Nobody,
    };
    Ok(To { tls, authority: authority(ip, number), way })
}

fn authority(ip: IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(ip, port).to_string()
}

fn of_service(request: &StreamRequest<'_>) -> Result<To, Status> {
    let id = request.path.name.as_str();
    let (tls, name, port) = parsed(id, "service")?;
    let unavailable = |why: String| Status::new(Reason::ServiceUnavailable, why);
    let namespace = request.path.namespace.as_str();
    let store = request.store;
    if let Some(backend) = request.outbound.native(namespace, name) {
        let authority = format!("{name}.{namespace}.svc");
        return Ok(To { tls, authority, way: Way::Backend(backend) });
    }
    let mut port = port.to_owned();
    if let Ok(number) = port.parse::<i64>() {
        let found = store.find("services", namespace, name);
        let service = found.ok_or_else(|| Status::not_found("", "services", name))?.object();
        let ports = service.array(&["spec", "ports"]);
        let named = ports.iter().find(|one| one["port"].as_i64() == Some(number));
        let named = named.ok_or_else(|| {
            unavailable(format!("no service port {number} found for service {name:?}"))
        })?;
        named["name"].as_str().unwrap_or_default().clone_into(&mut port);
    }
    let found = store.find("endpoints", namespace, name);
    let endpoints = found.ok_or_else(|| Status::not_found("", "services", name))?.object();
    let subsets = endpoints.array(&["subsets"]);
    if subsets.is_empty() {
        return Err(unavailable(format!("no endpoints available for service {name:?}")));
    }
    let list = |value: &Value, field: &str| value[field].as_array().cloned().unwrap_or_default();
    for subset in subsets {
        let ports = list(subset, "ports");
        let wanted =
            ports.iter().find(|one| one["name"].as_str().unwrap_or_default() == port.as_str());
        let number = wanted.and_then(|one| one["port"].as_u64());
        let Some(number) = number.and_then(|number| u16::try_from(number).ok()) else { continue };
        for one in list(subset, "addresses") {
            if let Some((ip, way)) = endpoint(request, &one, number) {
                if matches!(way, Way::Host(..)) {
                    judge(ip).map_err(|error| Status::bad_request(error.to_string()))?;
                }
                return Ok(To { tls, authority: authority(ip, number), way });
            }
        }
    }
    Err(unavailable(format!("no endpoints available for service {id:?}")))
}

/// Where an endpoint is; none if it cannot be used.
fn endpoint(request: &StreamRequest<'_>, one: &Value, port: u16) -> Option<(IpAddr, Way)> {
    let ip = one["ip"].as_str()?;
    let Some(reference) = one.get("targetRef").filter(|reference| reference.is_object()) else {
        let ip = parse_old(ip)?;
        return Some((ip, Way::Host(ip, port)));
    };
    let namespace = request.path.namespace.as_str();
    if reference["kind"] != "Pod" || reference["namespace"] != namespace {
        return None;
    }
    let store = request.store;
    let pod = store.find("pods", namespace, reference["name"].as_str()?)?.object();
    let has = pod.array(&["status", "podIPs"]).iter().any(|one| one["ip"] == ip);
    let way = match request.native_pods.with_ports(&pod, store) {
        Some(native) => Way::Pod(native, port),
        None => Way::Nobody,
    };
    has.then_some(Some((ip.parse().ok()?, way)))?
}

/// A pod or a Service is not reached.
#[derive(Debug, thiserror::Error)]
enum ProxyError {
    /// The address takes no connection.
    #[error("dial tcp {address}: {reason}")]
    Dial {
        /// Host and port.
        address: String,
        /// Why not.
        reason: String,
    },
    /// The port of the pod takes no connection.
    #[error(transparent)]
    Pod(#[from] ConnectError),
    /// The in-process backend has no response.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// There are no settings of TLS.
    #[error(transparent)]
    TlsConfig(#[from] TlsConfigError),
    /// A certificate cannot have the name of the server.
    #[error(transparent)]
    ServerName(#[from] InvalidDnsNameError),
    /// The handshake of TLS failed.
    #[error("tls: {0}")]
    Handshake(io::Error),
    /// The request cannot be written.
    #[error(transparent)]
    BuildRequest(#[from] http::Error),
    /// The connection was closed before a response.
    #[error("EOF")]
    Eof,
    /// The connection brings no HTTP.
    #[error(transparent)]
    Http(#[from] hyper::Error),
}

impl To {
    async fn connect(&self) -> Result<Box<dyn Connection>, ProxyError> {
        let refused = |why: &str| ProxyError::Dial {
            address: self.authority.clone(),
            reason: why.to_owned(),
        };
        let connecting = async {
            match &self.way {
                Way::Pod(native, port) => Ok(native.connect(*port).await?),
                // It was judged where it was found.
                Way::Host(ip, port) => match TcpStream::connect((*ip, *port)).await {
                    Ok(stream) => Ok(Box::new(stream) as Box<dyn Connection>),
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                        Err(refused("connect: connection refused"))
                    }
                    Err(error) => Err(refused(&format!("connect: {error}"))),
                },
                Way::Nobody | Way::Backend(_) => Err(refused("connect: connection refused")),
            }
        };
        let stream = timeout(CONNECT, connecting).await.map_err(|_| refused("i/o timeout"))??;
        if !self.tls {
            return Ok(stream);
        }
        let config = mainstay_outbound::insecure_client()?;
        let host = self.authority.rsplit_once(':').map_or("", |(host, _)| host);
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())?;
        let secure = timeout(CONNECT, TlsConnector::from(config).connect(name, stream));
        let secure = secure.await.map_err(|_| refused("TLS handshake timeout"))?;
        Ok(Box::new(secure.map_err(ProxyError::Handshake)?))
    }
}

async fn send(
    request: &StreamRequest<'_>,
    method: &Method,
    to: &To,
    path: &str,
) -> Result<http::Response<Body>, ProxyError> {
    let query = request.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut builder = http::Request::builder()
        .method(method)
        .uri(format!("{}{query}", escaped(path)))
        .header(HOST, &to.authority)
        .header("x-forwarded-uri", request.uri.path());
    if let Some(host) = request.headers.get(HOST) {
        builder = builder.header("x-forwarded-host", host);
    }
    for (name, value) in passed_on(request.headers) {
        let ours = ["x-forwarded-uri", "x-forwarded-host", "x-remote-", "impersonate-"];
        let secret = *name == AUTHORIZATION || *name == HOST || *name == CONTENT_LENGTH;
        if !secret && !ours.iter().any(|word| name.as_str().starts_with(word)) {
            builder = builder.header(name, value);
        }
    }
    let sent = builder.body(request.body.clone())?;
    if let Way::Backend(backend) = &to.way {
        return Ok(backend.call(sent).await?.map(Body::from));
    }
    let stream = TokioIo::new(to.connect().await?);
    let made = http1::Builder::new().max_buf_size(HEAD).handshake(stream).await;
    let (mut sender, connection) = made?;
    // It ends with the answer, or with whoever reads it.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection through a proxy ended");
        }
    });
    let response = sender.send_request(sent.map(Full::new)).await.map_err(|error| {
        if error.is_incomplete_message() { ProxyError::Eof } else { ProxyError::Http(error) }
    })?;
    Ok(response.map(|body| streamed(body, sender)))
}

/// The body as it comes. Its connection is kept with it.
fn streamed(body: Incoming, sender: http1::SendRequest<Full<Bytes>>) -> Body {
    Body::stream(stream::unfold((body, sender), |(mut body, sender)| async move {
        loop {
            // A broken answer ends here; its length or form tells the client.
            let frame = body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                return Some((data, (body, sender)));
            }
        }
    }))
}

/// Headers that go on to the next connection.
fn passed_on(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    let named = headers.get_all(CONNECTION).into_iter();
    let named: Vec<String> = named
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|word| word.trim().to_ascii_lowercase())
        .collect();
    headers.iter().filter(move |(name, _)| {
        !HOPS.contains(name) && !named.iter().any(|word| word == name.as_str())
    })
}

/// The headers of an answer as the client gets them.
fn headers_of(headers: &HeaderMap, uri: &Uri, to: &To) -> Vec<(HeaderName, HeaderValue)> {
    let kept = passed_on(headers);
    let kept = kept.filter(|(name, _)| !name.as_str().starts_with("access-control-allow-"));
    kept.map(|(name, value)| {
        let moved = (*name == LOCATION).then(|| moved(value, uri, to)).flatten();
        (name.clone(), moved.unwrap_or_else(|| value.clone()))
    })
    .collect()
}

/// Where an answer redirects to, seen from outside; none if it stays as it is.
fn moved(location: &HeaderValue, uri: &Uri, to: &To) -> Option<HeaderValue> {
    let text = location.to_str().ok()?;
    let scheme = if to.tls { "https://" } else { "http://" };
    let path = match text.strip_prefix(scheme) {
        Some(rest) => rest.strip_prefix(to.authority.as_str())?,
        None => text,
    };
    if !path.starts_with('/') || path.starts_with("//") {
        return None;
    }
    let (proxy, _) = uri.path().split_once("/proxy")?;
    HeaderValue::try_from(format!("{proxy}/proxy{path}")).ok()
}

/// A decoded path as it is sent.
fn escaped(path: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=:@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a text does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_scheme_and_a_port_or_not() {
        for (name, expected) in [
            ("a", Some((false, "a", ""))),
            ("a:80", Some((false, "a", "80"))),
            ("a:http", Some((false, "a", "http"))),
            ("https:a:", Some((true, "a", ""))),
            (":a:80", Some((false, "a", "80"))),
            ("ftp:a:80", None),
            (":", None),
            ("a:b:c:d", None),
        ] {
            assert_eq!(parsed(name, "pod").ok(), expected, "{name}");
        }
    }

    #[test]
    fn redirections_stay_below_the_proxy() {
        let uri: Uri = "/api/v1/namespaces/n/pods/p/proxy/a/b".parse().unwrap();
        let to = To { tls: false, authority: "10.0.0.1:80".to_owned(), way: Way::Nobody };
        for (location, expected) in [
            ("/x", Some("/api/v1/namespaces/n/pods/p/proxy/x")),
            ("http://10.0.0.1:80/x?y", Some("/api/v1/namespaces/n/pods/p/proxy/x?y")),
            ("http://example.com/x", None),
            ("//example.com/x", None),
            ("x", None),
        ] {
            let moved = moved(&HeaderValue::from_static(location), &uri, &to);
            assert_eq!(
                moved.as_ref().map(|location| location.to_str().unwrap()),
                expected,
                "{location}"
            );
        }
    }

    #[test]
    fn pods_are_at_addresses_of_their_own() {
        for (ip, allowed) in [
            ("10.0.0.1", true),
            ("fd00::1", true),
            ("127.0.0.1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:169.254.169.254", false),
            ("0127.0.0.1", false),
            ("64:ff9b::7f00:1", false),
            ("169.254.169.254", false),
            ("0.0.0.0", false),
            ("", false),
        ] {
            assert_eq!(address(ip).is_some(), allowed, "{ip}");
        }
    }
}
