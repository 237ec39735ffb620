//! One call of one webhook.

use super::index::{Hook, Which};
use super::review::{self, Answer};
use super::{Attributes, server_of};
use crate::handlers;
use crate::metrics::admission::Ended;
use crate::policy::request::Shown;
use http::Method;
use mainstay_kinds::KindRow;
use mainstay_object::{Status, names};
use mainstay_outbound::{Answered, Call};
use serde_json::Value;

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
    shown: &Shown,
) -> Result<Option<Patch>, Failed> {
    let answer = called(attributes, hook, row, shown, Which::Mutating).await?;
    let Some(patch) = answer.patch else { return Ok(None) };
    let undecodable = |why: String| {
        Failed::Calling(503, format!("received undecodable patch in webhook response: {why}"))
    };
    let patch = mainstay_schema::strict::parse(&patch).map_err(undecodable)?.value;
    match &patch {
        Value::Null => return Ok(None),
        Value::Array(operations) if operations.is_empty() => return Ok(None),
        Value::Array(_) => {}
        other => {
            let found = mainstay_object::gotext::json_kind(other);
            return Err(undecodable(format!(
                "json: cannot unmarshal {found} into Go value of type jsonpatch.Patch"
            )));
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
    shown: &Shown,
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
    let counts = &server_of(attributes).metrics.admission;
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
    shown: &Shown,
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
    let server = server_of(attributes);
    let timeout = attributes.allotted.map_or(hook.timeout, |allotted| allotted.min(hook.timeout));
    // It is told in seconds, rounded up.
    let seconds = timeout.as_millis().div_ceil(1000);
    let query = format!("?timeout={seconds}s");
    let call = Call { method: Method::POST, query, body, timeout, limit: LIMIT };
    let failed =
        |code: u16, why: String| Failed::Calling(code, format!("failed to call webhook: {why}"));
    let answered = server.outbound.call(&server.store, client, call).await;
    let answered = answered.map_err(|why| failed(503, why))?;
    let code = if answered.code >= 400 { answered.code } else { 503 };
    let review = value_of(&answered).map_err(|why| failed(code, why))?;
    let mutating = which == Which::Mutating;
    let answer = review::answer(&review, version, &uid, mutating).map_err(|why| match why {
        review::Wrong::Form(why) => failed(503, why),
        review::Wrong::Sense(why) => {
            Failed::Calling(503, format!("received invalid webhook response: {why}"))
        }
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

/// The value of an answer, or why it has none, in the words of Kubernetes' client: whatever the
/// answer's type says, it is JSON or YAML.
pub(crate) fn value_of(answered: &Answered) -> Result<Value, String> {
    let body = &answered.body;
    if !(200..=206).contains(&answered.code) {
        return Err(status_text(body).unwrap_or_else(|| unexpected(answered)));
    }
    if body.is_empty() {
        let media = match answered.content_type.as_str() {
            "" => "application/json",
            media => media,
        };
        return Err(format!(
            "0-length response with status code: {} and content type: {media}",
            answered.code
        ));
    }
    let is_json = body.trim_ascii_start().first() == Some(&b'{');
    let parsed = if is_json {
        mainstay_schema::strict::parse(body).map(|parsed| parsed.value)
    } else {
        handlers::yaml_value(body)
    };
    parsed.map_err(|why| format!("couldn't get version/kind; json parse error: {why}"))
}

/// The message of a body that is a `Status` of a failure.
fn status_text(body: &[u8]) -> Option<String> {
    let value = mainstay_schema::strict::parse(body).ok()?.value;
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let is_failure =
        text("kind") == "Status" && text("apiVersion") == "v1" && text("status") != "Success";
    is_failure.then(|| text("message").to_owned())
}

/// What is said of an answer that is no success.
fn unexpected(answered: &Answered) -> String {
    /// Bytes of a body that are shown.
    const SHOWN: usize = 2048;
    let media = answered.content_type.split(';').next().unwrap_or_default().trim();
    let is_text = media.is_empty() || media.starts_with("text/");
    let body = &answered.body[..answered.body.len().min(SHOWN)];
    let text = if is_text {
        String::from_utf8_lossy(body).trim().to_owned()
    } else {
        "unknown".to_owned()
    };
    match answered.code {
        409 => "the server reported a conflict".to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        406 if text.is_empty() || text == "unknown" => {
            "the server was unable to respond with a content type that the client supports".to_owned()
        }
        403 | 406 | 415 => text,
        405 => "the server does not allow this method on the requested resource".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        code if code >= 500 => {
            format!("an error on the server ({text:?}) has prevented the request from succeeding")
        }
        code => format!(
            "the server responded with the status code {code} but did not return more information"
        ),
    }
}
