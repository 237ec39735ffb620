//! `pods/log`: what a container has written, as text.

use super::options::{self, LogOptions};
use super::{Log, LogLine};
use crate::StreamRequest;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use mainstay_http::Body;
use mainstay_http::response::ApiResponse;
use mainstay_object::{Object, Status};
use serde_json::Value;

/// Answers `pods/log`.
pub fn answer(request: &StreamRequest<'_>) -> Result<ApiResponse, Status> {
    let options = LogOptions::read(request.query, &request.path.name)?;
    let pod = options::pod(request)?;
    let container = options::container(&pod, &options.container)?;
    if !options::has_node(&pod) {
        return Ok(ApiResponse::empty(StatusCode::NO_CONTENT));
    }
    may_have_log(&pod, container, options.previous)
        .map_err(|error| Status::bad_request(error.to_string()))?;
    let native = request.native_pods.with_log(&pod, request.store).ok_or_else(super::no_log)?;
    let Some(log) = native.log(container, options.previous) else {
        let text = format!("container {container:?} in pod {:?} keeps no log", pod.name());
        return Err(Status::bad_request(text));
    };
    let body = text(log, &options, request.clock.now());
    let mut answer = ApiResponse::body(StatusCode::OK, body, 0);
    answer.content_type = "text/plain";
    Ok(answer)
}

/// A container has no log; the texts are those of a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
struct NoLog(String);

/// What a node says of a container without a log (`validateContainerLogStatus` of the original).
fn may_have_log(pod: &Object, container: &str, previous: bool) -> Result<(), NoLog> {
    let which = format!("container {container:?} in pod {:?}", pod.name());
    let without = |found: bool, text: String| if found { Ok(()) } else { Err(NoLog(text)) };
    let Some(status) = options::status_of(pod, container) else {
        return Err(NoLog(format!("{which} is not available")));
    };
    // An empty object is a state, too.
    let state = |field: &str, name: &str| {
        status.get(field).and_then(|state| state.get(name)).filter(|state| state.is_object())
    };
    let has_run = |state: Option<&Value>| {
        let id = state.and_then(|state| state.get("containerID")).and_then(Value::as_str);
        id.is_some_and(|id| !id.is_empty())
    };
    let last = state("lastState", "terminated");
    if previous {
        return without(has_run(last), format!("previous terminated {which} not found"));
    }
    if state("state", "running").is_some() {
        return Ok(());
    }
    let terminated = state("state", "terminated");
    if terminated.is_some() || last.is_some() {
        let found = has_run(terminated) || has_run(last);
        return without(found, format!("{which} is terminated"));
    }
    let Some(waiting) = state("state", "waiting") else {
        return Err(NoLog(format!("{which} is waiting to start - no logs yet")));
    };
    let reason = match waiting.get("reason").and_then(Value::as_str).unwrap_or_default() {
        "ErrImagePull" => "image can't be pulled",
        "ImagePullBackOff" => "trying and failing to pull image",
        other => other,
    };
    Err(NoLog(format!("{which} is waiting to start: {reason}")))
}

/// The part of a log that is asked for, made as the client takes it.
fn text(log: Log, options: &LogOptions, now: Timestamp) -> Body {
    let Log { mut kept, coming } = log;
    let ago = options.since_seconds.and_then(|seconds| {
        // Before all times there is nothing to leave out.
        now.checked_sub(SignedDuration::from_secs(seconds)).ok()
    });
    if let Some(since) = options.since.or(ago) {
        kept.retain(|line| line.time >= since);
    }
    if let Some(tail) = options.tail {
        kept.drain(..kept.len().saturating_sub(tail));
    }
    let coming = if options.follow { coming } else { stream::empty().boxed() };
    let timestamps = options.timestamps;
    let lines = stream::iter(kept).chain(coming);
    Body::stream(stream::unfold((lines, options.limit), move |(mut lines, left)| async move {
        // Nothing is waited for once the limit is reached.
        if left == Some(0) {
            return None;
        }
        let mut bytes = written(&lines.next().await?, timestamps);
        let left = left.map(|left| {
            bytes.truncate(left);
            left - bytes.len()
        });
        Some((bytes, (lines, left)))
    }))
}

/// A line as it is sent. The time is written to the nanosecond, without zeros at the end.
fn written(line: &LogLine, timestamps: bool) -> Bytes {
    let text = &line.text;
    if timestamps { format!("{} {text}\n", line.time) } else { format!("{text}\n") }.into()
}
