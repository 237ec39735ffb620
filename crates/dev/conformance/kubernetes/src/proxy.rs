//! The proxy between kubectl and the server: plain HTTP on loopback, which records every request
//! and response.

use crate::exchange::{Request, ServerResponse};
use crate::server::{headers, open};
use anyhow::Context;
use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The user agent of kubectl, independent of its build: field managers are named after it.
pub(crate) const AGENT: &str = "kubectl/v1.35 (scenario)";

/// A request of kubectl and its response.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// The request, as forwarded.
    pub(crate) request: Request,
    /// The response; of a stream, the part received so far.
    pub(crate) answer: ServerResponse,
}

type Log = Arc<Mutex<Vec<Exchange>>>;
type Reply = http::Response<UnsyncBoxBody<Bytes, kube::Error>>;

/// A running proxy. Dropping it stops it.
pub(crate) struct Proxy {
    /// Its URL, such as `http://127.0.0.1:1234`.
    pub(crate) url: String,
    log: Log,
    _stop: DropGuard,
}

impl Proxy {
    /// Starts a proxy in front of a server.
    pub(crate) async fn start(client: kube::Client) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("open a loopback port")?;
        let url = format!("http://{}", listener.local_addr()?);
        let log = Log::default();
        let stop = CancellationToken::new();
        tokio::spawn(accept(listener, client, Arc::clone(&log), stop.clone()));
        Ok(Self { url, log, _stop: stop.drop_guard() })
    }

    /// The exchanges so far, without discovery and OpenAPI documents.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.log.lock().clone()
    }
}

async fn accept(listener: TcpListener, client: kube::Client, log: Log, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let Ok((stream, _)) = accepted else { continue };
        let (client, log, stop) = (client.clone(), Arc::clone(&log), stop.clone());
        tokio::spawn(async move {
            let service = service_fn(|request| forward(client.clone(), Arc::clone(&log), request));
            let serving = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                // The client disconnected.
                _ = serving => {}
                () = stop.cancelled() => {}
            }
        });
    }
}

/// Whether a request reads the API's description instead of objects. kubectl lists all
/// CustomResourceDefinitions if a kind is not in the OpenAPI documents yet, which depends on
/// timing.
fn is_about_the_api(path: &str) -> bool {
    if path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions" {
        return true;
    }
    let path = path.split('?').next().unwrap_or_default();
    let words: Vec<&str> = path.trim_matches('/').split('/').collect();
    match words.as_slice() {
        ["version" | "openapi", ..] => true,
        ["api", rest @ ..] => rest.len() <= 1,
        ["apis", rest @ ..] => rest.len() <= 2,
        _ => false,
    }
}

async fn forward(
    client: kube::Client,
    log: Log,
    request: http::Request<Incoming>,
) -> Result<Reply, kube::Error> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let unrecorded = head.method == http::Method::GET && is_about_the_api(&path);
    for name in ["connection", "host", "content-length", "transfer-encoding", "kubectl-session"] {
        head.headers.remove(name);
    }
    head.headers.remove(ACCEPT_ENCODING);
    head.headers.remove("kubectl-command");
    head.headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    let accept = head.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    // Typed clients prefer protobuf; only JSON can be compared.
    if !unrecorded && accept.is_none_or(|accept| accept.contains("protobuf")) {
        head.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    }
    let body = match body.collect().await {
        Ok(body) => body.to_bytes().to_vec(),
        Err(error) => return Ok(failure(&format!("the request does not end: {error}"))),
    };
    let recorded_headers = ["accept", "content-type", "user-agent"];
    let request = Request {
        method: head.method.as_str().to_owned(),
        path,
        headers: headers(&head.headers)
            .into_iter()
            .filter(|(name, _)| {
                recorded_headers.contains(&&**name) || name.starts_with("impersonate-")
            })
            .collect(),
        body,
    };
    let answer = match open(&client, request.clone()).await {
        Ok(answer) => answer,
        Err(error) => return Ok(failure(&format!("{error:#}"))),
    };
    let (mut head, body) = answer.into_parts();
    // hyper adds its own framing.
    head.headers.remove("transfer-encoding");
    head.headers.remove("connection");
    if unrecorded {
        return Ok(http::Response::from_parts(head, body.boxed_unsync()));
    }
    let answer = ServerResponse {
        status: head.status.as_u16(),
        headers: headers(&head.headers),
        body: Vec::new(),
    };
    let at = {
        let mut log = log.lock();
        log.push(Exchange { request, answer });
        log.len() - 1
    };
    let body = body.map_frame(move |frame| {
        if let Some(data) = frame.data_ref() {
            log.lock()[at].answer.body.extend_from_slice(data);
        }
        frame
    });
    Ok(http::Response::from_parts(head, body.boxed_unsync()))
}

fn failure(what: &str) -> Reply {
    let body = Full::new(Bytes::from(what.to_owned())).map_err(|never| match never {});
    let mut reply = http::Response::new(body.boxed_unsync());
    *reply.status_mut() = http::StatusCode::BAD_GATEWAY;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    reply
}
