//! Webhooks whose Service is answered in this process, without a socket and certificates.

use crate::TestCluster;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use mainstay_outbound::{BackendError, InProcessBackend};
use serde_json::Value;
use std::sync::Arc;

/// Answers reviews with the result of a function.
struct Answer<F>(F);

impl<F: Fn(&str, &Value) -> Value + Send + Sync + 'static> InProcessBackend for Answer<F> {
    fn call(
        &self,
        request: Request<Bytes>,
    ) -> BoxFuture<'_, Result<Response<Bytes>, BackendError>> {
        let review = serde_json::from_slice(request.body()).expect("a review is JSON");
        let answer = (self.0)(request.uri().path(), &review);
        Box::pin(async move { Ok(Response::new(answer.to_string().into())) })
    }
}

impl TestCluster {
    /// Answers calls of webhooks to a Service: `answer` gets the path and the review, and returns the review
    /// with its response.
    pub fn answer_webhooks(
        &self,
        namespace: &str,
        service: &str,
        answer: impl Fn(&str, &Value) -> Value + Send + Sync + 'static,
    ) {
        self.server().put_native_backend(namespace, service, Arc::new(Answer(answer)));
    }
}
