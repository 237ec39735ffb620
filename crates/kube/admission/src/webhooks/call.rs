//! One call of one webhook.

use super::Attributes;
use super::index::{Hook, Which};
use super::review::{self, Answer, AnswerError};
use crate::metrics::Ended;
use crate::policies::request::VersionedObjects;
use http::Method;
use mainstay_kinds::KindRow;
use mainstay_object::{Status, names};
use mainstay_outbound::{OutboundRequest, response_value};
use serde_json::Value;
use std::fmt;

/// Bytes of a webhook's answer. The largest that means something is a patch that makes an object
/// of the largest size, packed and quoted.
const LIMIT: usize = 16 << 20;

/// Why a webhook did not agree.
pub(super) enum Failed {
    /// It could not be asked, or its answer is none; with the code that counts have for it.
    Calling(u16, String),
    /// It refuses.
    Rejected(Box<Status>),
    /// The server refuses.
    Refused(Box<Status>),
}

/// A JSON patch with at least one operation.
pub(super) struct Patch(pub(super) Value);

/// Asks a webhook that may change the object; what it wants to be changed. Not whether it may fail:
/// see [`settled`].
pub(super) async fn ask(
    attributes: &Attributes<'_>,
    hook: &Hook,
    row: &KindRow,
    shown: &VersionedObjects,
) -> Result<Option<Patch>, Failed> {
    let answer = called(attributes, hook, row, shown, Which::Mutating).await?;
    let Some(patch) = answer.patch else { return Ok(None) };
    let undecodable = |why: &dyn fmt::Display| {
        Failed::Calling(503, format!("received undecodable patch in webhook response: {why}"))
    };
    let patch = mainstay_schema::strict::parse(&patch).map_err(|error| undecodable(&error))?.value;
    match &patch {
        Value::Null => return Ok(None),
        Value::Array(operations) if operations.is_empty() => return Ok(None),
        Value::Array(_) => {}
        other => {
            let found = mainstay_gocompat::values::json_kind(other);
            let why =
                format!("json: cannot unmarshal {found} into Go value of type jsonpatch.Patch");
            return Err(undecodable(&why));
        }
    }
    if attributes.object.is_some() && answer.patch_type != "JSONPatch" {
        let why = format!("unsupported patch type {:?}", answer.patch_type);
        return Err(Failed::Calling(400, why));
    }
    Ok(Some(Patch(patch)))
}

/// Asks a webhook that judges.
pub(super) async fn judge(
    attributes: &Attributes<'_>,
    hook: &Hook,
    row: &KindRow,
    shown: &VersionedObjects,
) -> Result<(), Failed> {
    called(attributes, hook, row, shown, Which::Validating).await.map(drop)
}

/// What becomes of a call, which is counted; `Ok(None)` is one whose failure is forgiven.
pub(super) fn settled<T>(
    attributes: &Attributes<'_>,
    hook: &Hook,
    which: Which,
    outcome: Result<T, Failed>,
    seconds: f64,
) -> Result<Option<T>, Status> {
    let ended = match &outcome {
        Ok(_) => Ended::Agreed,
        Err(Failed::Calling(code, _)) => Ended::Failed { ignored: hook.ignores, code: *code },
        Err(Failed::Rejected(status)) => Ended::Refused(status.code),
        Err(Failed::Refused(_)) => Ended::Unasked,
    };
    let operation = attributes.operation.name();
    let counts = &attributes.admission.metrics;
    counts.webhook(&hook.name, operation, which.kind(), ended, seconds);
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(Failed::Rejected(status) | Failed::Refused(status)) => Err(*status),
        Err(Failed::Calling(_, why)) => {
            let why = format!("failed calling webhook {:?}: {why}", hook.name);
            if hook.ignores || mainstay_fault::is_on("webhooks-may-always-fail") {
                tracing::warn!(%why, "a webhook failed, and is not needed");
                return Ok(None);
            }
            Err(Status::internal(why))
        }
    }
}

async fn called(
    attributes: &Attributes<'_>,
    hook: &Hook,
    row: &KindRow,
    shown: &VersionedObjects,
    which: Which,
) -> Result<Answer, Failed> {
    let name = &hook.name;
    if attributes.dry_run && !hook.bears_dry_runs {
        let why = format!("admission webhook {name:?} does not support dry run");
        return Err(Failed::Refused(Box::new(Status::bad_request(why))));
    }
    let Some(version) = hook.version else {
        return Err(Failed::Calling(
            400,
            "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
                .to_owned(),
        ));
    };
    let client = hook.client.as_ref().map_err(|why| {
        let why = format!("could not get REST client: failed calling webhook {name:?}: {why}");
        Failed::Calling(500, why)
    })?;
    let (uid, body) = review::request(attributes, row, version, shown);
    let admission = attributes.admission;
    let timeout = attributes.allotted.map_or(hook.timeout, |allotted| allotted.min(hook.timeout));
    // It is told in seconds, rounded up.
    let seconds = timeout.as_millis().div_ceil(1000);
    let query = format!("?timeout={seconds}s");
    let call = OutboundRequest { method: Method::POST, query, body, timeout, limit: LIMIT };
    let failed = |code: u16, error: &dyn fmt::Display| {
        Failed::Calling(code, format!("failed to call webhook: {error}"))
    };
    let answered = admission.outbound.call(client, call).await;
    let answered = answered.map_err(|error| failed(503, &error))?;
    let code = if answered.code >= 400 { answered.code } else { 503 };
    let review = response_value(&answered).map_err(|error| failed(code, &error))?;
    let mutating = which == Which::Mutating;
    let answer = review::answer(&review, version, &uid, mutating).map_err(|error| match error {
        AnswerError::Form(error) => failed(503, &error),
        AnswerError::Sense(_) => Failed::Calling(503, error.to_string()),
    })?;
    for (key, value) in &answer.notes {
        let key = format!("{name}/{key}");
        // What is no name is not noted, and nobody else is told.
        if names::qualified_name(&key).is_empty() {
            attributes.warnings.annotate(key, value.clone());
        }
    }
    for warning in
        answer.warnings.iter().filter(|_| !mainstay_fault::is_on("warnings-of-webhooks-are-lost"))
    {
        attributes.warnings.add(warning.clone());
    }
    if answer.allowed { Ok(answer) } else { Err(Failed::Rejected(Box::new(answer.refusal(name)))) }
}
