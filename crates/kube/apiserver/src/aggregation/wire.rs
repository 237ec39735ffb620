//! From a remote group-version to whoever serves it: a connection of its own for each request, whose
//! answer is passed on while it comes, or a handler of this process.

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
use mainstay_outbound::{Bundle, Target, service as resolve};
use mainstay_tls::AnyCertificate;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::json;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes of an answer's head.
const HEAD: usize = 64 * 1024;

/// Where a remote group-version is served.
pub(super) enum Endpoint {
    /// In this process, under the Service's name.
    Native(String),
    /// There.
    Host(String, u16),
    /// A simulated pod, which answers for itself.
    Pod(Box<Object>),
}

impl Endpoint {
    /// Name and port as a URL has them.
    pub(super) fn shown(&self, port: u16) -> String {
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

/// The endpoint of a remote group-version.
pub(super) fn endpoint(server: &ApiServer, remote: &Remote) -> Result<Endpoint, SendError> {
    let Remote { namespace, service, port, .. } = remote;
    if server.aggregation.native(remote).is_some() {
        return Ok(Endpoint::Native(format!("{service}.{namespace}.svc")));
    }
    let stored = server.store.find("services", namespace, service);
    let kind = stored.map(|stored| stored.object());
    if kind.as_ref().and_then(|service| service.str(&["spec", "type"])) == Some("ExternalName") {
        return Err(SendError::ExternalName);
    }
    match resolve(&server.store, namespace, service, *port)? {
        Target::Host(host, port) => Ok(Endpoint::Host(host, port)),
        Target::Pod(pod) if server.outbound.answers(&pod) => Ok(Endpoint::Pod(pod)),
        Target::Pod(pod) => {
            let ip = pod.str(&["status", "podIP"]).unwrap_or_default().to_owned();
            Err(SendError::SilentPod { ip, port: *port })
        }
    }
}

/// An answer whose body still comes.
pub(super) enum Sent {
    Native(Response<Body>),
    Host(Response<Incoming>),
}

/// An answer, read to its end.
#[derive(Clone, Debug)]
pub(super) struct Whole {
    pub(super) code: u16,
    pub(super) content_type: String,
    pub(super) etag: String,
    pub(super) body: Bytes,
}

impl Whole {
    pub(super) fn is_good(&self) -> bool {
        (200..300).contains(&self.code)
    }
}

impl Sent {
    /// The connection behind the answer, if the other side changes what is spoken on it.
    pub(super) fn upgraded(&mut self) -> Option<OnUpgrade> {
        match self {
            Self::Host(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                Some(hyper::upgrade::on(response))
            }
            _ => None,
        }
    }

    /// The answer as it is passed on.
    pub(super) fn streamed(self) -> Response<Body> {
        match self {
            Self::Native(response) => response,
            Self::Host(response) => response.map(|body| {
                if http_body::Body::is_end_stream(&body) {
                    return Body::from(Bytes::new());
                }
                Body::stream(stream::unfold(body, |mut body| async move {
                    loop {
                        // A broken answer ends here; its length or form tells the client.
                        let frame = body.frame().await?.ok()?;
                        if let Ok(data) = frame.into_data() {
                            return Some((data, body));
                        }
                    }
                }))
            }),
        }
    }

    /// The whole answer, if it has no more than so many bytes.
    pub(super) async fn whole(self, limit: usize) -> Result<Whole, SendError> {
        let (parts, mut body) = self.streamed().into_parts();
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
        Ok(Whole {
            code: parts.status.as_u16(),
            content_type: text(CONTENT_TYPE),
            etag: text(ETAG),
            body: read.freeze(),
        })
    }
}

/// Sends a request in somebody's name.
pub(super) async fn send(
    server: &ApiServer,
    remote: &Remote,
    identity: &Identity,
    mut request: Request<Bytes>,
) -> Result<Sent, SendError> {
    if let Some(native) = server.aggregation.native(remote) {
        return Ok(Sent::Native(native.call(identity, request).await));
    }
    let endpoint = endpoint(server, remote)?;
    let authority = endpoint.shown(remote.port);
    let (host, port) = match endpoint {
        Endpoint::Host(host, port) => (host, port),
        Endpoint::Pod(_) => return Ok(Sent::Native(simulated(remote, request.uri().path()))),
        Endpoint::Native(_) => return Err(SendError::NoEndpoint),
    };
    sign(&mut request, identity)?;
    let text = HeaderValue::try_from(authority.as_str())?;
    request.headers_mut().insert(HOST, text);
    let config = settings(server, remote)?;
    let connected = async {
        let stream = dial(&host, port, server.outbound.endpoints()).await;
        let stream = stream.map_err(|source| {
            let authority = authority.clone();
            SendError::Dial { authority, source }
        })?;
        // Requests leave as they are.
        let _ = stream.set_nodelay(true);
        let name = format!("{}.{}.svc", remote.service, remote.namespace);
        let name = ServerName::try_from(name)?;
        let stream = TlsConnector::from(config).connect(name, stream).await;
        let stream = stream.map_err(SendError::Tls)?;
        let made = http1::Builder::new().max_buf_size(HEAD).handshake(TokioIo::new(stream)).await;
        made.map_err(SendError::Handshake)
    };
    let connected = tokio::time::timeout(CONNECT, connected).await;
    let (mut sender, connection) =
        connected.map_err(|_| SendError::DialTimeout { authority })??;
    // It ends with the answer, or with whoever reads it.
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to an aggregated server ended");
        }
    });
    let sent = sender.send_request(request.map(Full::new)).await;
    Ok(Sent::Host(sent.map_err(SendError::Exchange)?))
}

/// What a simulated pod answers: that its group-version is there, and that nothing is in it.
fn simulated(remote: &Remote, path: &str) -> Response<Body> {
    let (code, answer) = if path.trim_end_matches('/') == remote.path() {
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
    let mut response = Response::new(Body::from(Bytes::from(answer)));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Says for whom the request is. The error is that a header cannot carry it: with a part left out it
/// would be in the name of somebody else.
fn sign(request: &mut Request<Bytes>, identity: &Identity) -> Result<(), SendError> {
    const EXTRA: &str = "x-remote-extra-";
    let headers = request.headers_mut();
    let own: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("x-remote-")).cloned().collect();
    for name in own {
        headers.remove(name);
    }
    let mut add = |name: &str, text: &str| {
        let invalid = |part| SendError::Header { part, name: name.to_owned() };
        // A name of people may be of any letters, which go as they are.
        let value = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| invalid("value"))?;
        let known = HeaderName::try_from(name).map_err(|_| invalid("name"))?;
        headers.append(known, value);
        Ok::<(), SendError>(())
    };
    add("x-remote-user", identity.user())?;
    if !identity.uid().is_empty() {
        add("x-remote-uid", identity.uid())?;
    }
    for group in identity.groups() {
        add("x-remote-group", group)?;
    }
    for (key, values) in identity.extra() {
        for value in values {
            add(&format!("{EXTRA}{}", escaped(key)), value)?;
        }
    }
    Ok(())
}

/// A key as a header's name has it: what cannot stand there is percent-encoded.
fn escaped(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a text does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out.to_ascii_lowercase()
}

fn settings(server: &ApiServer, remote: &Remote) -> Result<Arc<ClientConfig>, SendError> {
    let builder = if remote.insecure {
        mainstay_tls::builder_with_verifier(AnyCertificate)
    } else {
        mainstay_tls::builder_with_verifier(Bundle::new(&remote.ca)?)
    };
    let builder = builder?;
    let mut config = match server.aggregation.front.get() {
        Some(front) => builder.with_client_auth_cert(front.chain.clone(), front.key.clone_key())?,
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
    fn a_request_says_for_whom_it_is_and_nothing_that_its_sender_says_of_it() {
        let extra = BTreeMap::from([("acme.com/scopes".to_owned(), vec!["a".to_owned()])]);
        let groups = ["devs".to_owned(), "system:authenticated".to_owned()];
        let identity = Identity::with_details("jane", "7", groups, extra);
        let mut request = Request::get("/apis/a/v1")
            .header("x-remote-user", "admin")
            .header("x-remote-extra-more", "b")
            .body(Bytes::new())
            .unwrap();
        sign(&mut request, &identity).unwrap();
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
    fn who_cannot_be_named_is_not_named_in_part() {
        let named = |user: &str, group: &str, scope: &str| {
            let extra = BTreeMap::from([("scopes".to_owned(), vec![scope.to_owned()])]);
            let identity = Identity::with_details(user, "7", [group.to_owned()], extra);
            let mut request = Request::get("/apis/a/v1").body(Bytes::new()).unwrap();
            sign(&mut request, &identity).map(|()| request.headers()["x-remote-user"].clone())
        };
        assert_eq!(named("jürgen", "küche", "ä").unwrap().as_bytes(), "jürgen".as_bytes());
        for (user, group, scope) in
            [("a\nb", "g", "s"), ("a", "g\r\nx-remote-group: h", "s"), ("a", "g", "s\0")]
        {
            let why = named(user, group, scope).unwrap_err().to_string();
            assert!(
                why.starts_with("net/http: invalid header field value for \"x-remote-"),
                "{why}"
            );
        }
    }
}
