//! The call of one admission webhook.

use super::AdmissionAttributes;
use super::index::{Webhook, WebhookType};
use super::review::{self, ResponseError, WebhookResponse};
use crate::metrics::CallOutcome;
use crate::policies::request::VersionedObjects;
use http::Method;
use mainstay_kinds::KindRow;
use mainstay_object::{Status, names};
use mainstay_outbound::{OutboundRequest, response_value};
use mainstay_policy::validator::FailurePolicy;
use serde_json::Value;
use std::fmt;

/// Maximum bytes of a response. The largest useful response has a patch that creates an object of
/// maximum size, in base64 and JSON.
const MAX_RESPONSE_BYTES: usize = 16 << 20;

/// The call of a webhook did not admit the request.
pub(super) enum CallError {
    /// The call failed or the response is malformed; with the code of the metric.
    Call(u16, String),
    /// The webhook rejects the request.
    Rejected(Box<Status>),
    /// The server rejects the request.
    Server(Box<Status>),
}

/// A JSON patch with at least one operation.
pub(super) struct Patch(pub(super) Value);

/// Calls a mutating webhook and returns its patch; [`finish_call`] applies the failure policy.
pub(super) async fn call_mutating(
    attributes: &AdmissionAttributes<'_>,
    webhook: &Webhook,
    row: &KindRow,
    objects: &VersionedObjects,
) -> Result<Option<Patch>, CallError> {
    let response = call_webhook(attributes, webhook, row, objects, WebhookType::Mutating).await?;
    let Some(patch) = response.patch else { return Ok(None) };
    let undecodable = |message: &dyn fmt::Display| {
        CallError::Call(503, format!("received undecodable patch in webhook response: {message}"))
    };
    let patch = mainstay_schema::strict::parse(&patch).map_err(|error| undecodable(&error))?.value;
    match &patch {
        Value::Null => return Ok(None),
        Value::Array(operations) if operations.is_empty() => return Ok(None),
        Value::Array(_) => {}
        other => {
            let found = mainstay_gocompat::values::json_kind(other);
            let message =
                format!("json: cannot unmarshal {found} into Go value of type jsonpatch.Patch");
            return Err(undecodable(&message));
        }
    }
    if attributes.object.is_some() && response.patch_type != "JSONPatch" {
        let message = format!("unsupported patch type {:?}", response.patch_type);
        return Err(CallError::Call(400, message));
    }
    Ok(Some(Patch(patch)))
}

/// Calls a validating webhook.
pub(super) async fn call_validating(
    attributes: &AdmissionAttributes<'_>,
    webhook: &Webhook,
    row: &KindRow,
    objects: &VersionedObjects,
) -> Result<(), CallError> {
    call_webhook(attributes, webhook, row, objects, WebhookType::Validating).await.map(drop)
}

/// Records a call and applies the failure policy; `Ok(None)` for a failure that is ignored.
pub(super) fn finish_call<T>(
    attributes: &AdmissionAttributes<'_>,
    webhook: &Webhook,
    webhook_type: WebhookType,
    outcome: Result<T, CallError>,
    seconds: f64,
) -> Result<Option<T>, Status> {
    let ignores_failures = webhook.failure_policy == FailurePolicy::Ignore;
    let call_outcome = match &outcome {
        Ok(_) => CallOutcome::Allowed,
        Err(CallError::Call(code, _)) => {
            CallOutcome::Failed { ignored: ignores_failures, code: *code }
        }
        Err(CallError::Rejected(status)) => CallOutcome::Rejected(status.code),
        Err(CallError::Server(_)) => CallOutcome::NotCalled,
    };
    let operation = attributes.operation.name();
    let metrics = &attributes.admission.metrics;
    metrics.record_webhook(
        &webhook.name,
        operation,
        webhook_type.metric_label(),
        call_outcome,
        seconds,
    );
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(CallError::Rejected(status) | CallError::Server(status)) => Err(*status),
        Err(CallError::Call(_, message)) => {
            let message = format!("failed calling webhook {:?}: {message}", webhook.name);
            if ignores_failures || mainstay_fault::is_on("webhooks-may-always-fail") {
                tracing::warn!(error = %message, "webhook failed; its failurePolicy is Ignore");
                return Ok(None);
            }
            Err(Status::internal(message))
        }
    }
}

async fn call_webhook(
    attributes: &AdmissionAttributes<'_>,
    webhook: &Webhook,
    row: &KindRow,
    objects: &VersionedObjects,
    webhook_type: WebhookType,
) -> Result<WebhookResponse, CallError> {
    let name = &webhook.name;
    if attributes.dry_run && !webhook.supports_dry_run {
        let message = format!("admission webhook {name:?} does not support dry run");
        return Err(CallError::Server(Box::new(Status::bad_request(message))));
    }
    let Some(version) = webhook.review_version else {
        return Err(CallError::Call(
            400,
            "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
                .to_owned(),
        ));
    };
    let client = webhook.client.as_ref().map_err(|error| {
        let message =
            format!("could not get REST client: failed calling webhook {name:?}: {error}");
        CallError::Call(500, message)
    })?;
    let (uid, body) = review::admission_review(attributes, row, version, objects);
    let admission = attributes.admission;
    let timeout =
        attributes.timeout.map_or(webhook.timeout, |timeout| timeout.min(webhook.timeout));
    // The query has whole seconds, rounded up.
    let seconds = timeout.as_millis().div_ceil(1000);
    let query = format!("?timeout={seconds}s");
    let call =
        OutboundRequest { method: Method::POST, query, body, timeout, limit: MAX_RESPONSE_BYTES };
    let failed = |code: u16, error: &dyn fmt::Display| {
        CallError::Call(code, format!("failed to call webhook: {error}"))
    };
    let http_response = admission.outbound.call(client, call).await;
    let http_response = http_response.map_err(|error| failed(503, &error))?;
    let code = if http_response.code >= 400 { http_response.code } else { 503 };
    let review = response_value(&http_response).map_err(|error| failed(code, &error))?;
    let mutating = webhook_type == WebhookType::Mutating;
    let response =
        review::read_response(&review, version, &uid, mutating).map_err(|error| match error {
            ResponseError::Malformed(error) => failed(503, &error),
            ResponseError::Invalid(_) => CallError::Call(503, error.to_string()),
        })?;
    for (key, value) in &response.audit_annotations {
        let key = format!("{name}/{key}");
        // An annotation with an invalid key is dropped without an error.
        if names::qualified_name(&key).is_empty() {
            attributes.warnings.annotate(key, value.clone());
        }
    }
    for warning in
        response.warnings.iter().filter(|_| !mainstay_fault::is_on("warnings-of-webhooks-are-lost"))
    {
        attributes.warnings.add(warning.clone());
    }
    if response.allowed {
        Ok(response)
    } else {
        Err(CallError::Rejected(Box::new(response.rejection(name))))
    }
}
