//! Test harness: an in-memory server, and short functions for requests.

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use mainstay_apiserver::{ApiServer, ApiServerConfig, ApiService, VersionInfo};
use mainstay_auth::Identity;
use mainstay_auth::authn::Authenticator;
use mainstay_auth::pki::Pki;
use mainstay_clock::Clock;
use mainstay_http::Body;
use mainstay_store::{Options, Store};
use serde_json::{Value, json};
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Timeout of a wait.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How many characters of a body a failure shows.
const MAX_SHOWN: usize = 4000;

/// One key for all tests, because its generation is slow.
static TOKEN_KEY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
    Pki::ephemeral(&clock, &[]).unwrap().token_key_pkcs8().to_vec()
});

pub(crate) struct Api {
    pub(crate) server: Arc<ApiServer>,
    pub(crate) store: Store,
    pub(crate) stop: CancellationToken,
    service: ApiService,
}

/// A response. Compare it with a code, so that a failure shows request and body:
/// `assert_eq!(api.get(path).await, 404)`.
pub(crate) struct TestResponse {
    /// Method and path.
    request: String,
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

impl fmt::Debug for TestResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy(&self.bytes);
        let shown: String = text.chars().take(MAX_SHOWN).collect();
        let rest = if shown.len() < text.len() { "…" } else { "" };
        write!(f, "{} ({}: {shown}{rest})", self.code, self.request)
    }
}

impl PartialEq<u16> for TestResponse {
    fn eq(&self, code: &u16) -> bool {
        self.code == *code
    }
}

impl TestResponse {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("the body is no JSON ({error}): {self:?}"))
    }

    /// The object of a successful response.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!(self.code < 300, "expected a success, got {self:?}");
        self.json()
    }

    /// Code and message of a refusal.
    #[track_caller]
    pub(crate) fn refused(&self) -> (u16, String) {
        let status = self.json();
        let is_failure = status["kind"] == "Status" && status["status"] == "Failure";
        assert!(is_failure, "expected a Status with the status Failure, got {self:?}");
        assert_eq!(status["code"], self.code, "the code in the body of {self:?}");
        (self.code, status["message"].as_str().unwrap_or_default().to_owned())
    }

    pub(crate) fn warnings(&self) -> Vec<&str> {
        self.headers.get_all("warning").iter().filter_map(|warning| warning.to_str().ok()).collect()
    }
}

impl Api {
    pub(crate) async fn new() -> Self {
        let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
        Self::on(Store::in_memory(Options::new(clock)), clock).await
    }

    pub(crate) async fn on(store: Store, clock: Clock) -> Self {
        Self::with(store, clock, Authenticator::new(&TOKEN_KEY, clock).unwrap()).await
    }

    pub(crate) async fn with(store: Store, clock: Clock, authenticator: Authenticator) -> Self {
        let stop = CancellationToken::new();
        let server = ApiServer::start(ApiServerConfig {
            store: store.clone(),
            clock,
            authenticator: Arc::new(authenticator),
            version: VersionInfo::default(),
            stop: stop.clone(),
        })
        .await
        .unwrap();
        let service = server.service(Identity::admin());
        Self { server, store, stop, service }
    }

    /// Sends a request; returns the response before its body is read.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> http::Response<Body> {
        self.service.clone().oneshot(request).await.unwrap()
    }

    /// Sends a request with headers, and reads the whole response.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> TestResponse {
        let sent = format!("{method} {path}");
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.send(request.body(Full::new(body.into())).unwrap()).await;
        let (parts, body) = response.into_parts();
        let body = tokio::time::timeout(TIMEOUT, body.collect()).await;
        let body = body.unwrap_or_else(|_| panic!("{sent}: no end of the body after {TIMEOUT:?}"));
        let bytes = body.unwrap().to_bytes();
        let code = parts.status.as_u16();
        TestResponse { request: sent, code, headers: parts.headers, bytes }
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.call(Method::GET, path, &[], "").await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> TestResponse {
        self.call(Method::GET, path, &[("accept", accept)], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> TestResponse {
        self.call(Method::POST, path, &[], body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> TestResponse {
        self.call(Method::PUT, path, &[], body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str, options: &Value) -> TestResponse {
        let body = if options.is_null() { String::new() } else { options.to_string() };
        self.call(Method::DELETE, path, &[], body).await
    }

    /// `kind` is `json`, `merge` or `strategic-merge`.
    pub(crate) async fn patch(&self, path: &str, kind: &str, body: &Value) -> TestResponse {
        let media = format!("application/{kind}-patch+json");
        self.call(Method::PATCH, path, &[("content-type", &media)], body.to_string()).await
    }

    /// Opens a watch.
    pub(crate) async fn watch(&self, path: &str) -> Events {
        self.watch_as(path, "application/json").await
    }

    pub(crate) async fn watch_as(&self, path: &str, accept: &str) -> Events {
        let request = Request::get(path).header("accept", accept);
        let response = self.send(request.body(Full::new(Bytes::new())).unwrap()).await;
        assert_eq!(response.status(), 200, "the watch {path}");
        Events { path: path.to_owned(), body: response.into_body(), rest: Vec::new() }
    }

    /// Creates a CRD and waits for its last condition. A client that reads the CRD earlier and then
    /// writes it would get a conflict, as with kube-apiserver.
    pub(crate) async fn define(&self, definition: &Value) {
        let all = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let created = self.post(all, definition).await.ok();
        let name = created["metadata"]["name"].as_str().unwrap();
        self.until_condition(&format!("{all}/{name}"), "Established", "True").await;
    }

    /// Repeats a GET until the response has this code.
    pub(crate) async fn until(&self, path: &str, code: u16) {
        self.poll(path, &format!("the code {code}"), |response| *response == code).await;
    }

    /// Repeats a GET until the object's condition has this status.
    pub(crate) async fn until_condition(&self, path: &str, kind: &str, status: &str) {
        let holds = |response: &TestResponse| {
            let object = response.ok();
            let conditions = object["status"]["conditions"].as_array();
            conditions
                .into_iter()
                .flatten()
                .any(|condition| condition["type"] == kind && condition["status"] == status)
        };
        self.poll(path, &format!("the condition {kind} with status {status}"), holds).await;
    }

    /// Repeats a GET until the response is as wanted.
    async fn poll(&self, path: &str, wanted: &str, holds: impl Fn(&TestResponse) -> bool) {
        let mut last = None;
        let polling = async {
            loop {
                let response = last.insert(self.get(path).await);
                if holds(response) {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        let outcome = tokio::time::timeout(TIMEOUT, polling).await;
        assert!(outcome.is_ok(), "waited {TIMEOUT:?} for {wanted}; last response: {last:?}");
    }
}

/// The events of a watch.
pub(crate) struct Events {
    path: String,
    body: Body,
    rest: Vec<u8>,
}

impl Events {
    /// The next event; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(at) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=at).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            self.rest.extend_from_slice(&frame.into_data().unwrap());
        }
    }

    /// The next event as `TYPE name`.
    pub(crate) async fn summary(&mut self) -> String {
        let next = tokio::time::timeout(TIMEOUT, self.next()).await;
        let next =
            next.unwrap_or_else(|_| panic!("no event after {TIMEOUT:?}: watch {}", self.path));
        let Some(event) = next else { return "end".to_owned() };
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or("-");
        format!("{} {name}", event["type"].as_str().unwrap())
    }
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) fn map(name: &str) -> String {
    format!("{MAPS}/{name}")
}

/// A `PartialObjectMetadata` accept header.
pub(crate) const AS_METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// The accept header of `kubectl get`.
pub(crate) const AS_TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
