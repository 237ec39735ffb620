//! Transport to aggregated API servers: a connection for each request, whose response is streamed,
//! or a call of an in-process handler.

use super::error::SendError;
use super::remote::Remote;
use crate::server::ApiServer;
use bytes::{Bytes, BytesMut};
use futures::stream;
use http::header::{CONTENT_TYPE, ETAG, HOST, HeaderName};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use mainstay_auth::Identity;
use mainstay_http::Body;
use mainstay_object::{Object, Reason, Status};
use mainstay_outbound::dial::dial;
use mainstay_outbound::{CaBundle, ServiceEndpoint, resolve_service as resolve};
use mainstay_tls::AnyCertificate;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::json;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum bytes of a response head.
const MAX_HEAD_SIZE: usize = 64 * 1024;

/// The endpoint of a remote group-version.
pub(super) enum Endpoint {
    /// An in-process handler, under the Service's DNS name.
    Native(String),
    /// An address and port.
    Host(String, u16),
    /// A simulated pod, which responds itself.
    Pod(Box<Object>),
}

impl Endpoint {
    /// Host and port in the form of a URL.
    pub(super) fn host_port(&self, port: u16) -> String {
        match self {
            Self::Native(name) => format!("{name}:{port}"),
            Self::Host(host, port) if host.contains(':') => format!("[{host}]:{port}"),
            Self::Host(host, port) => format!("{host}:{port}"),
            Self::Pod(pod) => {
                format!("{}:{port}", pod.str(&["status", "podIP"]).unwrap_or_default())
            }
        }
    }
}

/// Resolves the endpoint of a remote group-version.
pub(super) fn endpoint(server: &ApiServer, remote: &Remote) -> Result<Endpoint, SendError> {
    let Remote { namespace, service, port, .. } = remote;
    if server.aggregation.native(remote).is_some() {
        return Ok(Endpoint::Native(format!("{service}.{namespace}.svc")));
    }
    let stored = server.store.find("services", namespace, service);
    let service_object = stored.map(|stored| stored.object());
    if service_object.as_ref().and_then(|service| service.str(&["spec", "type"]))
        == Some("ExternalName")
    {
        return Err(SendError::ExternalName);
    }
    match resolve(&server.store, namespace, service, *port)? {
        ServiceEndpoint::Host(host, port) => Ok(Endpoint::Host(host, port)),
        ServiceEndpoint::Pod(pod) if server.outbound.pod_answers(&pod) => Ok(Endpoint::Pod(pod)),
        ServiceEndpoint::Pod(pod) => {
            let ip = pod.str(&["status", "podIP"]).unwrap_or_default().to_owned();
            Err(SendError::SilentPod { ip, port: *port })
        }
    }
}

/// A response whose body is still streamed.
pub(super) enum RemoteResponse {
    Native(Response<Body>),
    Host(Response<Incoming>),
}

/// A response that was read to its end.
#[derive(Clone, Debug)]
pub(super) struct BufferedResponse {
    pub(super) code: u16,
    pub(super) content_type: String,
    pub(super) etag: String,
    pub(super) body: Bytes,
}

impl BufferedResponse {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }
}

impl RemoteResponse {
    /// The upgraded connection, if the server switches protocols.
    pub(super) fn upgraded(&mut self) -> Option<OnUpgrade> {
        match self {
            Self::Host(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                Some(hyper::upgrade::on(response))
            }
            _ => None,
        }
    }

    /// The response with a streaming body.
    pub(super) fn into_streaming(self) -> Response<Body> {
        match self {
            Self::Native(response) => response,
            Self::Host(response) => response.map(|body| {
                if http_body::Body::is_end_stream(&body) {
                    return Body::from(Bytes::new());
                }
                Body::stream(stream::unfold(body, |mut body| async move {
                    loop {
                        // A broken response ends here. The client notices it by the length or the
                        // encoding.
                        let frame = body.frame().await?.ok()?;
                        if let Ok(data) = frame.into_data() {
                            return Some((data, body));
                        }
                    }
                }))
            }),
        }
    }

    /// Reads the whole response, up to `limit` bytes.
    pub(super) async fn buffer(self, limit: usize) -> Result<BufferedResponse, SendError> {
        let (parts, mut body) = self.into_streaming().into_parts();
        let mut read = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame;
            if let Ok(data) = frame.into_data() {
                if read.len() + data.len() > limit {
                    return Err(SendError::TooLong { limit });
                }
                read.extend_from_slice(&data);
            }
        }
        let text = |name: HeaderName| {
            let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        Ok(BufferedResponse {
            code: parts.status.as_u16(),
            content_type: text(CONTENT_TYPE),
            etag: text(ETAG),
            body: read.freeze(),
        })
    }
}

/// Sends a request with the identity of the client.
pub(super) async fn send(
    server: &ApiServer,
    remote: &Remote,
    identity: &Identity,
    mut request: Request<Bytes>,
) -> Result<RemoteResponse, SendError> {
    if let Some(native) = server.aggregation.native(remote) {
        return Ok(RemoteResponse::Native(native.call(identity, request).await));
    }
    let endpoint = endpoint(server, remote)?;
    let authority = endpoint.host_port(remote.port);
    let (host, port) = match endpoint {
        Endpoint::Host(host, port) => (host, port),
        Endpoint::Pod(_) => {
            return Ok(RemoteResponse::Native(simulated_response(remote, request.uri().path())));
        }
        Endpoint::Native(_) => return Err(SendError::NoEndpoint),
    };
    set_identity_headers(&mut request, identity)?;
    let text = HeaderValue::try_from(authority.as_str())?;
    request.headers_mut().insert(HOST, text);
    let config = tls_config(server, remote)?;
    let connect = async {
        let stream = dial(&host, port, server.outbound.endpoint_author()).await;
        let stream = stream.map_err(|source| {
            let authority = authority.clone();
            SendError::Dial { authority, source }
        })?;
        // Latency counts more than packets.
        let _ = stream.set_nodelay(true);
        let name = format!("{}.{}.svc", remote.service, remote.namespace);
        let name = ServerName::try_from(name)?;
        let stream = TlsConnector::from(config).connect(name, stream).await;
        let stream = stream.map_err(SendError::Tls)?;
        let handshake =
            http1::Builder::new().max_buf_size(MAX_HEAD_SIZE).handshake(TokioIo::new(stream)).await;
        handshake.map_err(SendError::Handshake)
    };
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, connect).await;
    let (mut sender, connection) =
        connected.map_err(|_| SendError::DialTimeout { authority })??;
    // The task ends with the response, or when its reader drops it.
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to an aggregated API server failed");
        }
    });
    let sent = sender.send_request(request.map(Full::new)).await;
    Ok(RemoteResponse::Host(sent.map_err(SendError::Exchange)?))
}

/// The response of a simulated pod: its group-version exists and has no kinds.
fn simulated_response(remote: &Remote, path: &str) -> Response<Body> {
    let (code, text) = if path.trim_end_matches('/') == remote.path() {
        let group_version = format!("{}/{}", remote.group, remote.version);
        let list = json!({
            "kind": "APIResourceList", "apiVersion": "v1",
            "groupVersion": group_version.trim_start_matches('/'), "resources": [],
        });
        (StatusCode::OK, list.to_string())
    } else {
        let status =
            Status::new(Reason::NotFound, "a simulated pod answers discovery, and has no objects");
        (StatusCode::NOT_FOUND, status.to_value().to_string())
    };
    let mut response = Response::new(Body::from(Bytes::from(text)));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Sets the identity headers of a request. Fails if a header cannot carry a part of the identity:
/// without that part, the request would have another identity.
fn set_identity_headers(
    request: &mut Request<Bytes>,
    identity: &Identity,
) -> Result<(), SendError> {
    const EXTRA: &str = "x-remote-extra-";
    let headers = request.headers_mut();
    let client_headers: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("x-remote-")).cloned().collect();
    for name in client_headers {
        headers.remove(name);
    }
    let mut add_header = |name: &str, text: &str| {
        let invalid = |part| SendError::Header { part, name: name.to_owned() };
        // User names may contain any letters, which are sent as UTF-8.
        let value = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| invalid("value"))?;
        let name = HeaderName::try_from(name).map_err(|_| invalid("name"))?;
        headers.append(name, value);
        Ok::<(), SendError>(())
    };
    add_header("x-remote-user", identity.user())?;
    if !identity.uid().is_empty() {
        add_header("x-remote-uid", identity.uid())?;
    }
    for group in identity.groups() {
        add_header("x-remote-group", group)?;
    }
    for (key, values) in identity.extra() {
        for value in values {
            add_header(&format!("{EXTRA}{}", escape_header_name(key)), value)?;
        }
    }
    Ok(())
}

/// Escapes a key for a header name: invalid bytes are percent-encoded.
fn escape_header_name(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out.to_ascii_lowercase()
}

fn tls_config(server: &ApiServer, remote: &Remote) -> Result<Arc<ClientConfig>, SendError> {
    let builder = if remote.insecure {
        mainstay_tls::builder_with_verifier(AnyCertificate)
    } else {
        mainstay_tls::builder_with_verifier(CaBundle::new(&remote.ca)?)
    };
    let builder = builder?;
    let mut config = match server.aggregation.front_proxy.get() {
        Some(front_proxy) => {
            builder.with_client_auth_cert(front_proxy.chain.clone(), front_proxy.key.clone_key())?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn identity_headers_replace_those_of_the_client() {
        let extra = BTreeMap::from([("acme.com/scopes".to_owned(), vec!["a".to_owned()])]);
        let groups = ["devs".to_owned(), "system:authenticated".to_owned()];
        let identity = Identity::with_details("jane", "7", groups, extra);
        let mut request = Request::get("/apis/a/v1")
            .header("x-remote-user", "admin")
            .header("x-remote-extra-more", "b")
            .body(Bytes::new())
            .unwrap();
        set_identity_headers(&mut request, &identity).unwrap();
        let all: Vec<String> = request
            .headers()
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        assert_eq!(
            all,
            [
                "x-remote-user: jane",
                "x-remote-uid: 7",
                "x-remote-group: devs",
                "x-remote-group: system:authenticated",
                "x-remote-extra-acme.com%2fscopes: a",
            ]
        );
    }

    #[test]
    fn an_identity_that_no_header_can_carry_is_an_error() {
        let identity_header = |user: &str, group: &str, scope: &str| {
            let extra = BTreeMap::from([("scopes".to_owned(), vec![scope.to_owned()])]);
            let identity = Identity::with_details(user, "7", [group.to_owned()], extra);
            let mut request = Request::get("/apis/a/v1").body(Bytes::new()).unwrap();
            set_identity_headers(&mut request, &identity)
                .map(|()| request.headers()["x-remote-user"].clone())
        };
        assert_eq!(
            identity_header("jürgen", "küche", "ä").unwrap().as_bytes(),
            "jürgen".as_bytes()
        );
        for (user, group, scope) in
            [("a\nb", "g", "s"), ("a", "g\r\nx-remote-group: h", "s"), ("a", "g", "s\0")]
        {
            let why = identity_header(user, group, scope).unwrap_err().to_string();
            assert!(
                why.starts_with("net/http: invalid header field value for \"x-remote-"),
                "{why}"
            );
        }
    }
}
