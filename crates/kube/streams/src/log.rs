//! `pods/log`: the log of a container, as text.

use super::options::{self, LogOptions};
use super::{ContainerLog, LogLine};
use crate::StreamRequest;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use mainstay_http::Body;
use mainstay_http::response::ApiResponse;
use mainstay_object::{Object, Status};
use serde_json::Value;

/// Handles `pods/log`.
pub fn handle(request: &StreamRequest<'_>) -> Result<ApiResponse, Status> {
    let options = LogOptions::read(request.query, &request.path.name)?;
    let pod = options::find_pod(request)?;
    let container = options::find_container(&pod, &options.container)?;
    if !options::has_node(&pod) {
        return Ok(ApiResponse::empty(StatusCode::NO_CONTENT));
    }
    check_has_log(&pod, container, options.previous)
        .map_err(|error| Status::bad_request(error.to_string()))?;
    let handler =
        request.in_process_pods.with_log(&pod, request.store).ok_or_else(super::no_log)?;
    let Some(log) = handler.log(container, options.previous) else {
        let text = format!("container {container:?} in pod {:?} has no log", pod.name());
        return Err(Status::bad_request(text));
    };
    let body = log_body(log, &options, request.clock.now());
    let mut response = ApiResponse::body(StatusCode::OK, body, 0);
    response.content_type = "text/plain";
    Ok(response)
}

/// A container has no log; the texts are those of the kubelet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
struct NoLogError(String);

/// Checks that a container has a log (the kubelet's `validateContainerLogStatus`).
fn check_has_log(pod: &Object, container: &str, previous: bool) -> Result<(), NoLogError> {
    let described = format!("container {container:?} in pod {:?}", pod.name());
    let check = |has_log: bool, text: String| if has_log { Ok(()) } else { Err(NoLogError(text)) };
    let Some(status) = options::container_status(pod, container) else {
        return Err(NoLogError(format!("{described} is not available")));
    };
    // A state may be an empty object.
    let state = |field: &str, name: &str| {
        status.get(field).and_then(|state| state.get(name)).filter(|state| state.is_object())
    };
    let has_run = |state: Option<&Value>| {
        let id = state.and_then(|state| state.get("containerID")).and_then(Value::as_str);
        id.is_some_and(|id| !id.is_empty())
    };
    let last = state("lastState", "terminated");
    if previous {
        return check(has_run(last), format!("previous terminated {described} not found"));
    }
    if state("state", "running").is_some() {
        return Ok(());
    }
    let terminated = state("state", "terminated");
    if terminated.is_some() || last.is_some() {
        let has_log = has_run(terminated) || has_run(last);
        return check(has_log, format!("{described} is terminated"));
    }
    let Some(waiting) = state("state", "waiting") else {
        return Err(NoLogError(format!("{described} is waiting to start - no logs yet")));
    };
    let reason = match waiting.get("reason").and_then(Value::as_str).unwrap_or_default() {
        "ErrImagePull" => "image can't be pulled",
        "ImagePullBackOff" => "trying and failing to pull image",
        other => other,
    };
    Err(NoLogError(format!("{described} is waiting to start: {reason}")))
}

/// The body with the requested part of a log, made while the client reads it.
fn log_body(log: ContainerLog, options: &LogOptions, now: Timestamp) -> Body {
    let ContainerLog { mut existing, new_lines } = log;
    let since = options.since_seconds.and_then(|seconds| {
        // A time before the first timestamp excludes no line.
        now.checked_sub(SignedDuration::from_secs(seconds)).ok()
    });
    if let Some(since) = options.since.or(since) {
        existing.retain(|line| line.time >= since);
    }
    if let Some(tail) = options.tail {
        existing.drain(..existing.len().saturating_sub(tail));
    }
    let new_lines = if options.follow { new_lines } else { stream::empty().boxed() };
    let timestamps = options.timestamps;
    let lines = stream::iter(existing).chain(new_lines);
    Body::stream(stream::unfold((lines, options.limit), move |(mut lines, remaining)| async move {
        // The stream ends at the limit without waiting for a line.
        if remaining == Some(0) {
            return None;
        }
        let mut bytes = format_line(&lines.next().await?, timestamps);
        let remaining = remaining.map(|remaining| {
            bytes.truncate(remaining);
            remaining - bytes.len()
        });
        Some((bytes, (lines, remaining)))
    }))
}

/// The text of a line. The time has nanoseconds, without zeros at the end.
fn format_line(line: &LogLine, timestamps: bool) -> Bytes {
    let text = &line.text;
    if timestamps { format!("{} {text}\n", line.time) } else { format!("{text}\n") }.into()
}
