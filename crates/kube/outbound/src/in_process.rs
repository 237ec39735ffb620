//! In-process backends of Services, and the built-in responses of simulated pods.

use super::error::{ExchangeError, ReadResponseError};
use super::{NoResponse, OutboundResponse};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use mainstay_object::Object;
use parking_lot::RwLock;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The annotation of a simulated pod that controls its responses to webhooks, conversions and
/// discovery: `"false"` makes it refuse connections, as a pod whose process does not listen.
const ANSWERS: &str = "mainstay.dev/answers";

/// An in-process backend failed; the text is reported like that of a connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BackendError(pub String);

/// A handler in this process behind a Service.
pub trait InProcessBackend: Send + Sync + 'static {
    /// Handles a request. The path and the query are those of the `clientConfig`.
    fn call(&self, request: Request<Bytes>)
    -> BoxFuture<'_, Result<Response<Bytes>, BackendError>>;
}

/// In-process backends, by the namespace and name of their Services.
#[derive(Default)]
pub(super) struct InProcessBackends(RwLock<HashMap<String, Arc<dyn InProcessBackend>>>);

impl fmt::Debug for InProcessBackends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.read().keys()).finish()
    }
}

impl InProcessBackends {
    pub(super) fn put(&self, namespace: &str, name: &str, backend: Arc<dyn InProcessBackend>) {
        self.0.write().insert(format!("{namespace}/{name}"), backend);
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<Arc<dyn InProcessBackend>> {
        let backends = self.0.read();
        if backends.is_empty() {
            return None;
        }
        backends.get(&format!("{namespace}/{name}")).cloned()
    }
}

/// Calls an in-process backend.
pub(super) async fn call(
    backend: &dyn InProcessBackend,
    request: Request<Bytes>,
    limit: usize,
) -> Result<OutboundResponse, NoResponse> {
    let response = backend.call(request).await.map_err(ExchangeError::Backend)?;
    let (parts, body) = response.into_parts();
    if body.len() > limit {
        return Err(ReadResponseError::TooLarge { limit }.into());
    }
    let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    Ok(OutboundResponse {
        code: parts.status.as_u16(),
        content_type: content_type.unwrap_or_default().to_owned(),
        retry_after: super::retry_after(&parts.headers),
        location: super::location(&parts.headers),
        body,
    })
}

/// Whether a simulated pod accepts connections, by its annotation.
pub(super) fn pod_answers(pod: &Object) -> bool {
    !pod.annotations().any(|(key, value)| key == ANSWERS && value == "false")
}

/// The response of a simulated pod: it allows admission, and converts only the version.
pub(super) fn simulated_response(request: &Request<Bytes>) -> OutboundResponse {
    let review: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    let (code, body) = match review.get("kind").and_then(Value::as_str) {
        Some("AdmissionReview") => (200, allow(&review)),
        Some("ConversionReview") => (200, convert(&review)),
        _ => (404, json!({"message": "a simulated pod answers webhooks and conversions only"})),
    };
    OutboundResponse {
        code,
        content_type: "application/json".to_owned(),
        retry_after: None,
        location: String::new(),
        body: body.to_string().into(),
    }
}

/// The error of a simulated pod that refuses connections.
pub(super) fn refused_connection(pod: &Object) -> ExchangeError {
    let ip = pod.str(&["status", "podIP"]).unwrap_or_default();
    ExchangeError::SimulatedPod { ip: ip.to_owned() }
}

fn allow(review: &Value) -> Value {
    json!({
        "apiVersion": review["apiVersion"], "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": true},
    })
}

fn convert(review: &Value) -> Value {
    let request = &review["request"];
    let mut objects = request["objects"].as_array().cloned().unwrap_or_default();
    for object in objects.iter_mut().filter_map(Value::as_object_mut) {
        object.insert("apiVersion".to_owned(), request["desiredAPIVersion"].clone());
    }
    json!({
        "apiVersion": review["apiVersion"], "kind": "ConversionReview",
        "response": {
            "uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"},
        },
    })
}
