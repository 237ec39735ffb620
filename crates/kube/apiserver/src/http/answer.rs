//! Answers and their headers.

use super::Body;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderValue, RETRY_AFTER, VARY, WARNING};
use http::{Response, StatusCode};
use mainstay_object::Status;
use serde_json::{Value, json};

/// The media type of nearly everything.
pub(crate) const JSON: &str = "application/json";
/// Smaller answers are not worth compressing; the original's bound.
const GZIP_FROM: usize = 128 * 1024;

/// What a handler answers, before the headers that depend on the request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    pub(crate) body: Body,
    pub(crate) content_type: &'static str,
    pub(crate) etag: Option<String>,
    pub(crate) warnings: Vec<String>,
    retry_after: u32,
    /// Bytes in the body as far as known, to decide on compression.
    size: usize,
}

impl Answer {
    /// Encoded JSON.
    pub(crate) fn bytes(code: StatusCode, bytes: Bytes) -> Self {
        let size = bytes.len();
        Self::body(code, Body::from(bytes), size)
    }

    /// Any body of JSON, with its size as far as known.
    pub(crate) fn body(code: StatusCode, body: Body, size: usize) -> Self {
        Self {
            code,
            body,
            content_type: JSON,
            etag: None,
            warnings: Vec::new(),
            retry_after: 0,
            size,
        }
    }

    /// A JSON value with code 200.
    pub(crate) fn ok(value: &Value) -> Self {
        Self::value(StatusCode::OK, value)
    }

    /// A JSON value.
    pub(crate) fn value(code: StatusCode, value: &Value) -> Self {
        Self::bytes(code, value.to_string().into())
    }

    /// Plain text.
    pub(crate) fn text(code: StatusCode, text: String) -> Self {
        Self { content_type: "text/plain; charset=utf-8", ..Self::bytes(code, text.into()) }
    }

    /// A refusal.
    pub(crate) fn refusal(status: &Status) -> Self {
        let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = status.details.retry_after_seconds;
        Self { retry_after, ..Self::value(code, &status.to_value()) }
    }

    /// The success that a deletion answers.
    pub(crate) fn deleted(group: &str, plural: &str, name: &str, uid: &str) -> Self {
        let mut details = json!({"name": name, "kind": plural, "uid": uid});
        if !group.is_empty() {
            details["group"] = group.into();
        }
        Self::ok(&json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success",
            "details": details,
        }))
    }

    /// The response, compressed and indented as the client asked.
    pub(crate) fn into_response(self, gzip: bool, pretty: bool) -> Response<Body> {
        let mut body = self.body;
        if pretty && self.content_type == JSON {
            body = match body.whole() {
                Ok(bytes) => Body::from(indented(&bytes)),
                Err(stream) => stream,
            };
        }
        let compress = gzip && self.size >= GZIP_FROM;
        if compress {
            body = body.gzip();
        }
        let mut response = Response::new(body);
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert("cache-control", HeaderValue::from_static("no-cache, private"));
        if compress {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if let Some(etag) = self.etag.and_then(|tag| HeaderValue::try_from(tag).ok()) {
            headers.insert(ETAG, etag);
            headers.insert(VARY, HeaderValue::from_static("Accept"));
        }
        if self.retry_after > 0 {
            headers.insert(RETRY_AFTER, HeaderValue::from(self.retry_after));
        }
        for warning in &self.warnings {
            if let Ok(value) = HeaderValue::try_from(warning_header(warning)) {
                headers.append(WARNING, value);
            }
        }
        response
    }
}

/// RFC 7234 `Warning`: code 299, no agent, quoted text.
fn warning_header(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 10);
    out.push_str("299 - \"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn indented(bytes: &Bytes) -> Bytes {
    let pretty =
        serde_json::from_slice::<Value>(bytes).and_then(|value| serde_json::to_vec_pretty(&value));
    match pretty {
        Ok(mut text) => {
            text.push(b'\n');
            text.into()
        }
        Err(_) => bytes.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_quoted_for_the_header() {
        assert_eq!(
            warning_header("unknown field \"spec.a\"\n"),
            "299 - \"unknown field \\\"spec.a\\\" \""
        );
    }

    #[test]
    fn a_refusal_carries_its_code_and_when_to_come_back() {
        let status = Status::new(mainstay_object::Reason::Timeout, "later").retry_after(3);
        let response = Answer::refusal(&status).into_response(false, false);
        assert_eq!(response.status(), 504);
        assert_eq!(response.headers()["retry-after"], "3");
    }
}
