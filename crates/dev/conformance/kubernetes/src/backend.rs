//! Backends of a scenario: the webhooks, conversion webhooks and extension API servers that the
//! tested server calls.
//!
//! They reply as the scenario says, over HTTPS on 127.0.0.1, and record the requests that they
//! receive.

use crate::exchange::body;
use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rcgen::{CertificateParams, IsCa, KeyPair, SanType};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The greatest size of a request body.
const MAX_BODY: usize = 16 << 20;
/// The chunk size of large replies.
const CHUNK: usize = 64 << 10;

/// The reply to requests for a path.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// `Content-Type`; empty for none.
    pub content_type: String,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub content: ReplyContent,
}

/// The body of a reply.
#[derive(Clone, Debug, Default)]
pub enum ReplyContent {
    /// A text; `{uid}` stands for the uid of the received review.
    Text(String),
    /// A review of the received kind and version, with this response and the received uid. A
    /// `patch` that is a list is encoded as Base64, and its type is added.
    Response(Value),
    /// A conversion: patches by desired version. All other fields stay.
    Convert(BTreeMap<String, Value>),
    /// No reply; the connection stays open.
    #[default]
    Silence,
    /// No reply; the connection is closed.
    Close,
    /// So many bytes.
    Bytes(u64),
}

/// A running backend of a scenario.
pub(crate) struct Backend {
    /// Its address.
    pub(crate) address: String,
    /// The CA of its certificate, as in `caBundle`.
    pub(crate) ca: String,
    received: Arc<Mutex<Vec<Value>>>,
    _stop: DropGuard,
}

impl Backend {
    /// Starts a backend with a certificate for these names.
    pub(crate) async fn start(
        names: &[String],
        replies: BTreeMap<String, Reply>,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?.to_string();
        let (ca, tls) = certificate(names, &address)?;
        let stop = CancellationToken::new();
        let received = Arc::new(Mutex::new(Vec::new()));
        let handler = Arc::new(Handler { replies, received: received.clone() });
        tokio::spawn(serve(listener, tls, handler, stop.clone()));
        Ok(Self { address, ca, received, _stop: stop.drop_guard() })
    }

    /// The requests received since the last call.
    pub(crate) fn received(&self) -> Vec<Value> {
        std::mem::take(&mut self.received.lock())
    }
}

fn certificate(names: &[String], own: &str) -> anyhow::Result<(String, TlsAcceptor)> {
    let mut ca_params = CertificateParams::new(Vec::new())?;
    ca_params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    ca_params.distinguished_name.push(rcgen::DnType::CommonName, format!("authority of {own}"));
    let ca_key = KeyPair::generate()?;
    let ca = ca_params.self_signed(&ca_key)?;
    let issuer = rcgen::Issuer::new(ca_params, ca_key);
    let mut leaf = CertificateParams::new(Vec::new())?;
    leaf.distinguished_name.push(rcgen::DnType::CommonName, "scenario");
    for name in names {
        leaf.subject_alt_names.push(match name.parse() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(name.as_str().try_into()?),
        });
    }
    let key = KeyPair::generate()?;
    let leaf = leaf.signed_by(&key, &issuer)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from(leaf.der().to_vec())];
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("the certificate of a server")?;
    Ok((STANDARD.encode(ca.pem()), TlsAcceptor::from(Arc::new(config))))
}

async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    handler: Arc<Handler>,
    stop: CancellationToken,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else { return };
        let (tls, handler) = (tls.clone(), handler.clone());
        connections.spawn(async move {
            // A client that does not trust the certificate disconnects.
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = service_fn(move |request| {
                let handler = handler.clone();
                async move { handler.answer(request).await }
            });
            let http = hyper::server::conn::http1::Builder::new();
            // Some scenarios test clients that disconnect.
            drop(http.serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

struct Handler {
    replies: BTreeMap<String, Reply>,
    received: Arc<Mutex<Vec<Value>>>,
}

type ResponseBody = http_body_util::combinators::BoxBody<Bytes, Infallible>;

/// The error that closes the connection.
#[derive(Debug)]
struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("closed, as the scenario says")
    }
}

impl std::error::Error for Closed {}

impl Handler {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<ResponseBody>, Closed> {
        let (parts, sent) = request.into_parts();
        let limited = http_body_util::Limited::new(sent, MAX_BODY);
        let bytes = limited
            .collect()
            .await
            .map_or_else(|_| Bytes::new(), http_body_util::Collected::to_bytes);
        let value = body(&bytes);
        let header = |name: &str| {
            let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
            Value::from(value.unwrap_or_default())
        };
        let path = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        self.received.lock().push(json!({
            "method": parts.method.as_str(), "path": path,
            "type": header("content-type"), "accept": header("accept"), "body": value,
        }));
        let missing = Reply {
            status: 404,
            content_type: "text/plain".to_owned(),
            content: ReplyContent::Text("no such path\n".to_owned()),
            ..Reply::default()
        };
        let reply = self.replies.get(parts.uri.path()).unwrap_or(&missing);
        let whole = |text: String| Full::new(Bytes::from(text)).boxed();
        let content = match &reply.content {
            ReplyContent::Silence => std::future::pending().await,
            ReplyContent::Close => return Err(Closed),
            ReplyContent::Text(text) => {
                let uid = value.pointer("/request/uid").and_then(Value::as_str);
                whole(text.replace("{uid}", uid.unwrap_or_default()))
            }
            ReplyContent::Response(response) => {
                whole(review_response(&value, response).to_string())
            }
            ReplyContent::Convert(patches) => {
                whole(conversion_response(&value, patches).to_string())
            }
            ReplyContent::Bytes(count) => {
                let pieces = usize::try_from(*count).unwrap_or(usize::MAX).div_ceil(CHUNK);
                let piece = Bytes::from(vec![b' '; CHUNK]);
                let all = futures::stream::repeat(piece).take(pieces);
                BodyExt::boxed(StreamBody::new(all.map(|piece| Ok(Frame::data(piece)))))
            }
        };
        let mut response = Response::builder()
            .status(StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK));
        if !reply.content_type.is_empty() {
            response = response.header("content-type", &reply.content_type);
        }
        for (name, value) in &reply.headers {
            response = response.header(name, value);
        }
        response.body(content).map_err(|_| Closed)
    }
}

/// A review with a response.
fn review_response(sent: &Value, response: &Value) -> Value {
    let mut response = response.as_object().cloned().unwrap_or_default();
    response.entry("uid").or_insert_with(|| sent["request"]["uid"].clone());
    if let Some(patch) = response.get("patch").filter(|patch| patch.is_array()) {
        let packed = STANDARD.encode(patch.to_string());
        response.insert("patch".to_owned(), packed.into());
        response.entry("patchType").or_insert_with(|| "JSONPatch".into());
    }
    json!({"apiVersion": sent["apiVersion"], "kind": sent["kind"], "response": response})
}

fn conversion_response(sent: &Value, patches: &BTreeMap<String, Value>) -> Value {
    let desired_version = sent["request"]["desiredAPIVersion"].as_str().unwrap_or_default();
    let version = desired_version.rsplit('/').next().unwrap_or_default();
    let mut objects = sent["request"]["objects"].as_array().cloned().unwrap_or_default();
    for object in &mut objects {
        if object["apiVersion"] == desired_version {
            continue;
        }
        object["apiVersion"] = desired_version.into();
        for step in patches.get(version).and_then(Value::as_array).into_iter().flatten() {
            apply_step(object, step);
        }
    }
    let mut response = Map::new();
    response.insert("convertedObjects".to_owned(), objects.into());
    response.insert("result".to_owned(), json!({"status": "Success"}));
    review_response(sent, &response.into())
}

/// One step of a conversion: `{from, to}` moves a value if it exists, `{at, value}` sets one. Both
/// are JSON pointers, whose parents are created.
fn apply_step(object: &mut Value, step: &Value) {
    let text = |name: &str| step[name].as_str().unwrap_or_default();
    let value = if step.get("from").is_some() {
        remove_field(object, text("from"))
    } else {
        step.get("value").cloned()
    };
    let Some(value) = value else { return };
    let to = if step.get("from").is_some() { text("to") } else { text("at") };
    let mut place = object;
    for segment in to.split('/').skip(1) {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[segment];
    }
    *place = value;
}

fn remove_field(object: &mut Value, pointer: &str) -> Option<Value> {
    let (parent, name) = pointer.rsplit_once('/')?;
    object.pointer_mut(parent)?.as_object_mut()?.remove(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversion_moves_and_sets_fields() {
        let sent = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "u", "desiredAPIVersion": "g/v2", "objects": [
                {"apiVersion": "g/v1", "spec": {"a": 1}}, {"apiVersion": "g/v2", "spec": {"a": 2}},
            ]},
        });
        let steps = json!([{"from": "/spec/a", "to": "/spec/b/c"}, {"at": "/x", "value": true}]);
        let answer = conversion_response(&sent, &BTreeMap::from([("v2".to_owned(), steps)]));
        assert_eq!(
            answer["response"]["convertedObjects"],
            json!([
                {"apiVersion": "g/v2", "spec": {"b": {"c": 1}}, "x": true},
                {"apiVersion": "g/v2", "spec": {"a": 2}},
            ])
        );
        assert_eq!(answer["response"]["uid"], "u");
    }

    #[test]
    fn list_patch_is_encoded_as_base64() {
        let sent = json!({"apiVersion": "a/v1", "kind": "K", "request": {"uid": "u"}});
        let answer = review_response(&sent, &json!({"allowed": true, "patch": [], "uid": "mine"}));
        assert_eq!(
            answer["response"],
            json!({"allowed": true, "patch": "W10=", "patchType": "JSONPatch", "uid": "mine"})
        );
    }
}
