//! Backends that are no process elsewhere: handlers of this one, and simulated pods, which answer
//! for themselves.

use super::error::{ExchangeError, ReadError};
use super::{Answered, Failure};
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

/// The annotation of a simulated pod that says whether it answers webhooks, conversions and
/// discovery for itself: `"false"` makes it refuse connections, as a pod whose process does not listen.
const ANSWERS: &str = "mainstay.dev/answers";

/// A handler of this process has no response; the text is shown like that of a connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BackendError(pub String);

/// A handler of this process behind a Service.
pub trait NativeBackend: Send + Sync + 'static {
    /// Answers a request. The path and the query are those of the `clientConfig`.
    fn call(&self, request: Request<Bytes>)
    -> BoxFuture<'_, Result<Response<Bytes>, BackendError>>;
}

/// The native backends, by the namespace and name of their Services.
#[derive(Default)]
pub(super) struct Natives(RwLock<HashMap<String, Arc<dyn NativeBackend>>>);

impl fmt::Debug for Natives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.read().keys()).finish()
    }
}

impl Natives {
    pub(super) fn put(&self, namespace: &str, name: &str, backend: Arc<dyn NativeBackend>) {
        self.0.write().insert(format!("{namespace}/{name}"), backend);
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<Arc<dyn NativeBackend>> {
        let natives = self.0.read();
        if natives.is_empty() {
            return None;
        }
        natives.get(&format!("{namespace}/{name}")).cloned()
    }
}

/// Asks a native backend.
pub(super) async fn ask(
    backend: &dyn NativeBackend,
    request: Request<Bytes>,
    limit: usize,
) -> Result<Answered, Failure> {
    let response = backend.call(request).await.map_err(ExchangeError::Backend)?;
    let (parts, body) = response.into_parts();
    if body.len() > limit {
        return Err(ReadError::TooLarge { limit }.into());
    }
    let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    Ok(Answered {
        code: parts.status.as_u16(),
        content_type: content_type.unwrap_or_default().to_owned(),
        retry_after: super::retry_after(&parts.headers),
        location: super::location(&parts.headers),
        body,
    })
}

/// Whether a simulated pod answers at all.
pub(super) fn answers(pod: &Object) -> bool {
    !pod.annotations().any(|(key, value)| key == ANSWERS && value == "false")
}

/// What a simulated pod answers: admission is allowed, conversion changes the version only.
pub(super) fn simulated(request: &Request<Bytes>) -> Answered {
    let review: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    let (code, answer) = match review.get("kind").and_then(Value::as_str) {
        Some("AdmissionReview") => (200, admitted(&review)),
        Some("ConversionReview") => (200, converted(&review)),
        _ => (404, json!({"message": "a simulated pod answers webhooks and conversions only"})),
    };
    Answered {
        code,
        content_type: "application/json".to_owned(),
        retry_after: None,
        location: String::new(),
        body: answer.to_string().into(),
    }
}

/// Why a simulated pod does not answer.
pub(super) fn refused(pod: &Object) -> ExchangeError {
    let ip = pod.str(&["status", "podIP"]).unwrap_or_default();
    ExchangeError::SimulatedPod { ip: ip.to_owned() }
}

fn admitted(review: &Value) -> Value {
    json!({
        "apiVersion": review["apiVersion"], "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": true},
    })
}

fn converted(review: &Value) -> Value {
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
