//! `pods/proxy` and `services/proxy`: HTTP requests to a port of a pod, forwarded unchanged.
//!
//! ```text
//! [scheme:]name[:port] ─► pod ─────────────────────────► its handler, or port of this machine
//!                      └► service ─┬► in-process backend
//!                                  └► endpoint ─┬► pod
//!                                               └► address of the host network
//! ```
//!
//! Request bodies are read whole; response bodies are streamed. Links in pages stay as they are. A
//! redirect is rewritten to a path of the proxy.

use super::{ConnectError, InProcessPod, PodConnection, no_process, upgrade};
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
use mainstay_formats::destination::parse_legacy;
use mainstay_http::Body;
use mainstay_http::response::ApiResponse;
use mainstay_object::{Object, Reason, Status};
use mainstay_outbound::dial::check_address;
use mainstay_outbound::{BackendError, InProcessBackend, TlsConfigError};
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
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest head of a response, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// Hop-by-hop headers.
const HOP_BY_HOP_HEADERS: [HeaderName; 8] = [
    CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authenticate"),
];

/// Handles `proxy` of pods, Services and nodes with its options after admission.
pub async fn handle(
    request: &StreamRequest<'_>,
    options: &Object,
    method: &Method,
) -> Result<ApiResponse, Status> {
    let target = match &*request.row.storage {
        "pods" => pod_target(request)?,
        "services" => service_target(request)?,
        _ => {
            let (_, name, _) = parse_target_name(&request.path.name, "node")?;
            let found = request.store.find("nodes", "", name);
            let unknown = || Status::not_found("", "nodes", name);
            return Err(found.map_or_else(unknown, |_| no_process("proxy")));
        }
    };
    if request.headers.contains_key(UPGRADE) {
        return Err(Status::bad_request("the proxy does not support connection upgrades"));
    }
    let path = options.str(&["path"]).unwrap_or_default();
    if path.is_empty() && matches!(*method, Method::GET | Method::HEAD) {
        return Ok(redirect_to_slash(request.uri));
    }
    let path = format!("/{}", path.trim_start_matches('/'));
    let permit = upgrade::acquire_permit(request)?;
    let response = send(request, method, &target, &path).await.map_err(|error| {
        Status::new(Reason::ServiceUnavailable, format!("error trying to reach service: {error}"))
    })?;
    let (parts, body) = response.into_parts();
    let body = body.with_guard(Some(permit));
    let mut response = ApiResponse::body(parts.status, body, 0);
    response.content_type = "";
    response.headers = response_headers(&parts.headers, request.uri, &target);
    Ok(response)
}

/// A redirect to the path with a slash at the end, so that relative links work.
fn redirect_to_slash(uri: &Uri) -> ApiResponse {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let response = ApiResponse::empty(StatusCode::MOVED_PERMANENTLY);
    match HeaderValue::try_from(format!("{}/{query}", uri.path())) {
        Ok(location) => response.header(LOCATION, location),
        Err(_) => response,
    }
}

/// The target of a proxied request.
struct ProxyTarget {
    /// Whether the target speaks TLS; its certificate is not verified.
    tls: bool,
    /// Address and port.
    authority: String,
    destination: ProxyDestination,
}

enum ProxyDestination {
    /// A port of a pod.
    Pod(Arc<dyn InProcessPod>, u16),
    /// A simulated pod without ports.
    Unreachable,
    /// An address.
    Host(IpAddr, u16),
    /// A handler of this process.
    Backend(Arc<dyn InProcessBackend>),
}

/// Parses the name in a proxy path: `[scheme:]name[:port]`.
fn parse_target_name<'a>(
    name: &'a str,
    resource: &str,
) -> Result<(bool, &'a str, &'a str), Status> {
    let parts: Vec<&str> = name.split(':').collect();
    let (scheme, name_only, port) = match parts[..] {
        [name] => ("", name, ""),
        [name, port] => ("", name, port),
        [scheme, name, port] => (scheme, name, port),
        _ => ("?", "", ""),
    };
    if name_only.is_empty() || !matches!(scheme, "" | "http" | "https") {
        return Err(Status::bad_request(format!("invalid {resource} request {name:?}")));
    }
    Ok((scheme == "https", name_only, port))
}

/// Parses the address of a pod or an endpoint; none if the proxy may not connect to it.
fn allowed_address(ip: &str) -> Option<IpAddr> {
    parse_legacy(ip).filter(|ip| check_address(*ip).is_ok())
}

fn pod_target(request: &StreamRequest<'_>) -> Result<ProxyTarget, Status> {
    let (tls, name, port) = parse_target_name(&request.path.name, "pod")?;
    let store = request.store;
    let found = store.find("pods", &request.path.namespace, name);
    let pod = found.ok_or_else(|| Status::not_found("", "pods", name))?.object();
    let first_port = || {
        let mut ports = pod.array(&["spec", "containers"]).iter().filter_map(|container| {
            container.pointer("/ports/0/containerPort").and_then(Value::as_u64)
        });
        ports.next().map(|port| port.to_string())
    };
    let port = if port.is_empty() { first_port().unwrap_or_default() } else { port.to_owned() };
    let ip = pod.array(&["status", "podIPs"]).first().and_then(|one| one.get("ip"));
    let ip = ip.and_then(Value::as_str).unwrap_or_default();
    let ip = allowed_address(ip).ok_or_else(|| Status::bad_request("address not allowed"))?;
    let default_port = if tls { 443 } else { 80 };
    // An invalid port becomes port 0, on which no program listens.
    let number = if port.is_empty() { default_port } else { port.parse().unwrap_or_default() };
    let destination = match request.in_process_pods.with_ports(&pod, store) {
        Some(handler) => ProxyDestination::Pod(handler, number),
        None => ProxyDestination::Unreachable,
    };
    Ok(ProxyTarget { tls, authority: authority(ip, number), destination })
}

fn authority(ip: IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(ip, port).to_string()
}

fn service_target(request: &StreamRequest<'_>) -> Result<ProxyTarget, Status> {
    let id = request.path.name.as_str();
    let (tls, name, port) = parse_target_name(id, "service")?;
    let unavailable = |message: String| Status::new(Reason::ServiceUnavailable, message);
    let namespace = request.path.namespace.as_str();
    let store = request.store;
    if let Some(backend) = request.outbound.backend(namespace, name) {
        let authority = format!("{name}.{namespace}.svc");
        return Ok(ProxyTarget { tls, authority, destination: ProxyDestination::Backend(backend) });
    }
    let mut port = port.to_owned();
    if let Ok(number) = port.parse::<i64>() {
        let found = store.find("services", namespace, name);
        let service = found.ok_or_else(|| Status::not_found("", "services", name))?.object();
        let ports = service.array(&["spec", "ports"]);
        let service_port = ports.iter().find(|port| port["port"].as_i64() == Some(number));
        let service_port = service_port.ok_or_else(|| {
            unavailable(format!("no service port {number} found for service {name:?}"))
        })?;
        service_port["name"].as_str().unwrap_or_default().clone_into(&mut port);
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
        let endpoint_port =
            ports.iter().find(|other| other["name"].as_str().unwrap_or_default() == port.as_str());
        let number = endpoint_port.and_then(|port| port["port"].as_u64());
        let Some(number) = number.and_then(|number| u16::try_from(number).ok()) else { continue };
        for address in list(subset, "addresses") {
            if let Some((ip, destination)) = endpoint_destination(request, &address, number) {
                if matches!(destination, ProxyDestination::Host(..)) {
                    check_address(ip).map_err(|error| Status::bad_request(error.to_string()))?;
                }
                return Ok(ProxyTarget { tls, authority: authority(ip, number), destination });
            }
        }
    }
    Err(unavailable(format!("no endpoints available for service {id:?}")))
}

/// The destination of an endpoint address; none if it is not usable.
fn endpoint_destination(
    request: &StreamRequest<'_>,
    address: &Value,
    port: u16,
) -> Option<(IpAddr, ProxyDestination)> {
    let ip = address["ip"].as_str()?;
    let Some(reference) = address.get("targetRef").filter(|reference| reference.is_object()) else {
        let ip = parse_legacy(ip)?;
        return Some((ip, ProxyDestination::Host(ip, port)));
    };
    let namespace = request.path.namespace.as_str();
    if reference["kind"] != "Pod" || reference["namespace"] != namespace {
        return None;
    }
    let store = request.store;
    let pod = store.find("pods", namespace, reference["name"].as_str()?)?.object();
    let has_ip = pod.array(&["status", "podIPs"]).iter().any(|pod_ip| pod_ip["ip"] == ip);
    let destination = match request.in_process_pods.with_ports(&pod, store) {
        Some(handler) => ProxyDestination::Pod(handler, port),
        None => ProxyDestination::Unreachable,
    };
    has_ip.then_some(Some((ip.parse().ok()?, destination)))?
}

/// A request to a pod or a Service failed.
#[derive(Debug, thiserror::Error)]
enum ProxyError {
    /// The address does not accept a connection.
    #[error("dial tcp {address}: {reason}")]
    Dial {
        /// Host and port.
        address: String,
        /// The reason.
        reason: String,
    },
    /// The port of the pod does not accept a connection.
    #[error(transparent)]
    Pod(#[from] ConnectError),
    /// The in-process backend has no response.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The TLS configuration failed.
    #[error(transparent)]
    TlsConfig(#[from] TlsConfigError),
    /// The name of the server is not valid in a certificate.
    #[error(transparent)]
    ServerName(#[from] InvalidDnsNameError),
    /// The TLS handshake failed.
    #[error("tls: {0}")]
    Handshake(io::Error),
    /// The request is not valid HTTP.
    #[error(transparent)]
    BuildRequest(#[from] http::Error),
    /// The connection was closed before a response.
    #[error("EOF")]
    Eof,
    /// The response is not valid HTTP.
    #[error(transparent)]
    Http(#[from] hyper::Error),
}

impl ProxyTarget {
    async fn connect(&self) -> Result<Box<dyn PodConnection>, ProxyError> {
        let dial_error = |reason: &str| ProxyError::Dial {
            address: self.authority.clone(),
            reason: reason.to_owned(),
        };
        let connecting = async {
            match &self.destination {
                ProxyDestination::Pod(handler, port) => Ok(handler.connect(*port).await?),
                // The caller has checked that the address is allowed.
                ProxyDestination::Host(ip, port) => match TcpStream::connect((*ip, *port)).await {
                    Ok(stream) => Ok(Box::new(stream) as Box<dyn PodConnection>),
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                        Err(dial_error("connect: connection refused"))
                    }
                    Err(error) => Err(dial_error(&format!("connect: {error}"))),
                },
                ProxyDestination::Unreachable | ProxyDestination::Backend(_) => {
                    Err(dial_error("connect: connection refused"))
                }
            }
        };
        let stream =
            timeout(CONNECT_TIMEOUT, connecting).await.map_err(|_| dial_error("i/o timeout"))??;
        if !self.tls {
            return Ok(stream);
        }
        let config = mainstay_outbound::insecure_client()?;
        let host = self.authority.rsplit_once(':').map_or("", |(host, _)| host);
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())?;
        let secure = timeout(CONNECT_TIMEOUT, TlsConnector::from(config).connect(name, stream));
        let secure = secure.await.map_err(|_| dial_error("TLS handshake timeout"))?;
        Ok(Box::new(secure.map_err(ProxyError::Handshake)?))
    }
}

async fn send(
    request: &StreamRequest<'_>,
    method: &Method,
    target: &ProxyTarget,
    path: &str,
) -> Result<http::Response<Body>, ProxyError> {
    let query = request.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut builder = http::Request::builder()
        .method(method)
        .uri(format!("{}{query}", escape_path(path)))
        .header(HOST, &target.authority)
        .header("x-forwarded-uri", request.uri.path());
    if let Some(host) = request.headers.get(HOST) {
        builder = builder.header("x-forwarded-host", host);
    }
    for (name, value) in end_to_end_headers(request.headers) {
        let own_prefixes = ["x-forwarded-uri", "x-forwarded-host", "x-remote-", "impersonate-"];
        let is_dropped = *name == AUTHORIZATION || *name == HOST || *name == CONTENT_LENGTH;
        if !is_dropped && !own_prefixes.iter().any(|prefix| name.as_str().starts_with(prefix)) {
            builder = builder.header(name, value);
        }
    }
    let proxied = builder.body(request.body.clone())?;
    if let ProxyDestination::Backend(backend) = &target.destination {
        return Ok(backend.call(proxied).await?.map(Body::from));
    }
    let stream = TokioIo::new(target.connect().await?);
    let handshake = http1::Builder::new().max_buf_size(MAX_HEAD).handshake(stream).await;
    let (mut sender, connection) = handshake?;
    // The task ends with the response, or when the client stops reading it.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a proxied connection ended");
        }
    });
    let response = sender.send_request(proxied.map(Full::new)).await.map_err(|error| {
        if error.is_incomplete_message() { ProxyError::Eof } else { ProxyError::Http(error) }
    })?;
    Ok(response.map(|body| stream_body(body, sender)))
}

/// The streamed body. It owns the sender, which keeps the connection open.
fn stream_body(body: Incoming, sender: http1::SendRequest<Full<Bytes>>) -> Body {
    Body::stream(stream::unfold((body, sender), |(mut body, sender)| async move {
        loop {
            // A broken response ends here; the client notices by its length or chunks.
            let frame = body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                return Some((data, (body, sender)));
            }
        }
    }))
}

/// The end-to-end headers of a message.
fn end_to_end_headers(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    let connection_headers = headers.get_all(CONNECTION).into_iter();
    let connection_headers: Vec<String> = connection_headers
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|word| word.trim().to_ascii_lowercase())
        .collect();
    headers.iter().filter(move |(name, _)| {
        !HOP_BY_HOP_HEADERS.contains(name)
            && !connection_headers.iter().any(|word| word == name.as_str())
    })
}

/// The headers of a response for the client.
fn response_headers(
    headers: &HeaderMap,
    uri: &Uri,
    target: &ProxyTarget,
) -> Vec<(HeaderName, HeaderValue)> {
    let forwarded = end_to_end_headers(headers);
    let forwarded =
        forwarded.filter(|(name, _)| !name.as_str().starts_with("access-control-allow-"));
    forwarded
        .map(|(name, value)| {
            let rewritten =
                (*name == LOCATION).then(|| rewrite_location(value, uri, target)).flatten();
            (name.clone(), rewritten.unwrap_or_else(|| value.clone()))
        })
        .collect()
}

/// The location of a redirect as a path of the proxy; none if it stays as it is.
fn rewrite_location(
    location: &HeaderValue,
    uri: &Uri,
    target: &ProxyTarget,
) -> Option<HeaderValue> {
    let text = location.to_str().ok()?;
    let scheme = if target.tls { "https://" } else { "http://" };
    let path = match text.strip_prefix(scheme) {
        Some(rest) => rest.strip_prefix(target.authority.as_str())?,
        None => text,
    };
    if !path.starts_with('/') || path.starts_with("//") {
        return None;
    }
    let (proxy, _) = uri.path().split_once("/proxy")?;
    HeaderValue::try_from(format!("{proxy}/proxy{path}")).ok()
}

/// Escapes a decoded path.
fn escape_path(path: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=:@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_name_may_have_a_scheme_and_a_port() {
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
            assert_eq!(parse_target_name(name, "pod").ok(), expected, "{name}");
        }
    }

    #[test]
    fn redirects_of_the_target_are_rewritten_to_the_proxy() {
        let uri: Uri = "/api/v1/namespaces/n/pods/p/proxy/a/b".parse().unwrap();
        let target = ProxyTarget {
            tls: false,
            authority: "10.0.0.1:80".to_owned(),
            destination: ProxyDestination::Unreachable,
        };
        for (location, expected) in [
            ("/x", Some("/api/v1/namespaces/n/pods/p/proxy/x")),
            ("http://10.0.0.1:80/x?y", Some("/api/v1/namespaces/n/pods/p/proxy/x?y")),
            ("http://example.com/x", None),
            ("//example.com/x", None),
            ("x", None),
        ] {
            let rewritten = rewrite_location(&HeaderValue::from_static(location), &uri, &target);
            assert_eq!(
                rewritten.as_ref().map(|location| location.to_str().unwrap()),
                expected,
                "{location}"
            );
        }
    }

    #[test]
    fn proxy_does_not_connect_to_loopback_and_link_local_addresses() {
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
            assert_eq!(allowed_address(ip).is_some(), allowed, "{ip}");
        }
    }
}
