//! API responses: status, body, headers, warnings, and the form in which the client wants them.

use crate::{AuditAnnotations, Body, messages};
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue,
    RETRY_AFTER, VARY, WARNING, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use mainstay_object::Status;
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{Read, Write};

/// The media type of nearly everything.
pub const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
/// Smaller answers are not worth compressing; the original's bound.
const GZIP_FROM: usize = 128 * 1024;

/// What a handler answers, before the headers that depend on the request.
#[derive(Debug)]
pub struct ApiResponse {
    /// Status code.
    pub code: StatusCode,
    /// Body.
    pub body: Body,
    /// Media type of the body; empty for no body.
    pub content_type: &'static str,
    /// Entity tag, of documents that clients keep.
    pub etag: Option<String>,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
    /// Annotations of the audit event.
    pub audit_annotations: AuditAnnotations,
    /// Headers of this answer alone; they win over those that every answer has.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    retry_after: u32,
    /// Whether the body stays as it is even for clients that get everything else indented.
    plain: bool,
    /// Whether the body is compressed already.
    packed: bool,
    /// Whether it is an answer of a kind that has no protobuf message.
    has_no_message: bool,
    /// Bytes in the body as far as known, to decide on compression.
    pub size: usize,
}

/// What a client wants of every answer alike.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseFormat {
    /// Compressed, where that is worth it.
    pub gzip: bool,
    /// Whether the client is on this machine, to which bytes cost less than compressing them.
    pub is_local: bool,
    /// Indented.
    pub pretty: bool,
    /// In which encoding.
    pub encoding: Encoding,
}

/// How objects are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// As they are made.
    #[default]
    Json,
    /// For people.
    Yaml,
    /// For clients written in Go.
    Protobuf,
}

impl ApiResponse {
    /// Encoded JSON.
    pub fn bytes(code: StatusCode, bytes: Bytes) -> Self {
        let size = bytes.len();
        Self::body(code, Body::from(bytes), size)
    }

    /// Any body of JSON, with its size as far as known.
    pub fn body(code: StatusCode, body: Body, size: usize) -> Self {
        Self {
            code,
            body,
            content_type: JSON,
            etag: None,
            warnings: Vec::new(),
            audit_annotations: AuditAnnotations::default(),
            headers: Vec::new(),
            retry_after: 0,
            plain: false,
            packed: false,
            has_no_message: false,
            size,
        }
    }

    /// A value with code 200, its fields in the order in which its type has them.
    pub fn of<T: Serialize>(value: &T) -> Self {
        match encoded(value) {
            Ok(bytes) => Self::bytes(StatusCode::OK, bytes),
            Err(error) => Self::refusal(&Status::internal(error)),
        }
    }

    /// A JSON value with code 200.
    pub fn ok(value: &Value) -> Self {
        Self::value(StatusCode::OK, value)
    }

    /// A JSON value.
    pub fn value(code: StatusCode, value: &Value) -> Self {
        Self::bytes(code, value.to_string().into())
    }

    /// Plain text.
    pub fn text(code: StatusCode, text: String) -> Self {
        Self { content_type: "text/plain; charset=utf-8", ..Self::bytes(code, text.into()) }
    }

    /// The same answer, whose body is not indented for anybody: it is as it is to be.
    #[must_use]
    pub fn unindented(mut self) -> Self {
        self.plain = true;
        self
    }

    /// The same answer, of a kind that has no protobuf message: no client gets it as one.
    #[must_use]
    pub fn without_message(mut self) -> Self {
        self.has_no_message = true;
        self
    }

    /// A body in protobuf, of a media type of [`messages`].
    pub fn protobuf(code: StatusCode, content_type: &'static str, body: Body, size: usize) -> Self {
        Self { content_type, ..Self::body(code, body, size) }
    }

    /// Whether the body is written anew for a client with such wishes.
    pub fn is_rewritten(&self, wishes: ResponseFormat) -> bool {
        match wishes.encoding {
            Encoding::Protobuf => self.may_be_message(),
            Encoding::Yaml => self.content_type == JSON && !self.packed,
            Encoding::Json => wishes.pretty && self.content_type.starts_with(JSON) && !self.plain,
        }
    }

    fn may_be_message(&self) -> bool {
        self.content_type == JSON
            && self.code != StatusCode::NOT_ACCEPTABLE
            && !self.packed
            && !self.has_no_message
    }

    /// A large document, kept compressed ([`packed`]).
    pub fn of_packed(code: StatusCode, bytes: Bytes) -> Self {
        Self { packed: true, plain: true, ..Self::bytes(code, bytes) }
    }

    /// No body at all.
    pub fn empty(code: StatusCode) -> Self {
        Self { content_type: "", ..Self::bytes(code, Bytes::new()) }
    }

    /// What a web server says of a path that nobody registered.
    pub fn page_not_found() -> Self {
        let mut answer = Self::text(StatusCode::NOT_FOUND, "404 page not found\n".to_owned());
        let nosniff = HeaderValue::from_static("nosniff");
        answer.headers.push((X_CONTENT_TYPE_OPTIONS, nosniff));
        answer
    }

    /// The same answer with a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// A refusal.
    pub fn refusal(status: &Status) -> Self {
        let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = status.details.retry_after_seconds;
        Self { retry_after, ..Self::value(code, &status.to_value()) }
    }

    /// The success that a deletion answers.
    pub fn deleted(group: &str, plural: &str, name: &str, uid: &str) -> Self {
        let mut details = json!({"name": name, "kind": plural, "uid": uid});
        if !group.is_empty() {
            details["group"] = group.into();
        }
        Self::ok(&json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success",
            "details": details,
        }))
    }

    /// The response, in YAML, indented and compressed as the client asked.
    pub fn into_response(self, wishes: ResponseFormat) -> Response<Body> {
        let is_rewritten = self.is_rewritten(wishes);
        let (mut body, mut content_type) = (self.body, self.content_type);
        if is_rewritten {
            body = match body.whole() {
                Ok(bytes) => match rewritten(&bytes, wishes.encoding) {
                    Some((bytes, media)) => {
                        content_type = media.unwrap_or(content_type);
                        Body::from(bytes)
                    }
                    None => Body::from(bytes),
                },
                Err(stream) => stream,
            };
        }
        let mut compress = wishes.gzip && !wishes.is_local && self.size >= GZIP_FROM;
        if self.packed {
            compress = false;
            if !wishes.gzip {
                body = match body.whole() {
                    Ok(bytes) => Body::from(unpacked(&bytes)),
                    Err(stream) => stream,
                };
            }
        }
        if compress {
            body = body.gzip();
        }
        let mut response = Response::new(body);
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        if !content_type.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        if !mainstay_fault::is_on("answers-may-be-kept") {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        }
        if compress || self.packed && wishes.gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if let Some(etag) = self.etag.and_then(|tag| HeaderValue::try_from(tag).ok()) {
            headers.insert(ETAG, etag);
            headers.insert(VARY, HeaderValue::from_static("Accept"));
        }
        for (name, _) in &self.headers {
            headers.remove(name);
        }
        for (name, value) in self.headers {
            headers.append(name, value);
        }
        if self.retry_after > 0 {
            headers.insert(RETRY_AFTER, HeaderValue::from(self.retry_after));
        }
        warn(headers, &self.warnings);
        if !self.audit_annotations.0.is_empty() {
            response.extensions_mut().insert(self.audit_annotations);
        }
        response
    }
}

/// A body of JSON as the client wants it, with its media type if that is another one; none if it
/// stays as it is.
fn rewritten(bytes: &Bytes, encoding: Encoding) -> Option<(Bytes, Option<&'static str>)> {
    match encoding {
        Encoding::Json => Some((indented(bytes), None)),
        Encoding::Yaml => {
            let value: Value = serde_json::from_slice(bytes).ok()?;
            Some((mainstay_yaml::to_string(&value).into(), Some(YAML)))
        }
        Encoding::Protobuf => Some((messages::body(bytes)?, Some(messages::MEDIA_TYPE))),
    }
}

/// An answer that a handler of this process made for a client that takes gzip, compressed if that is
/// worth it.
pub fn compressed(response: Response<Body>) -> Response<Body> {
    let known = response.headers().contains_key(CONTENT_ENCODING);
    if known || !response.body().is_worth_compressing(GZIP_FROM) {
        return response;
    }
    let mut response = response.map(Body::gzip);
    let headers = response.headers_mut();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.remove(http::header::CONTENT_LENGTH);
    response
}

/// Writes warnings into the headers of an answer.
pub fn warn(headers: &mut HeaderMap, warnings: &[String]) {
    for warning in told(warnings) {
        if let Ok(value) = HeaderValue::try_from(warning_header(&warning)) {
            headers.append(WARNING, value);
        }
    }
}

/// Characters of all warnings of an answer; if there are more, each is cut.
const ALL_WARNINGS: usize = 4096;
/// What is left of a warning that is cut.
const CUT_WARNING: usize = 256;

/// The warnings that are told: each once, and not more than headers can hold. One with a control
/// character is not told, as by the original.
fn told(warnings: &[String]) -> Vec<Cow<'_, str>> {
    let mut seen = HashSet::new();
    let good = |text: &&String| !text.is_empty() && !text.contains(char::is_control);
    let once: Vec<&String> =
        warnings.iter().filter(good).filter(|text| seen.insert(text.as_str())).collect();
    if once.iter().map(|text| text.chars().count()).sum::<usize>() <= ALL_WARNINGS {
        return once.into_iter().map(|text| Cow::Borrowed(text.as_str())).collect();
    }
    let mut written = 0;
    let mut cut = Vec::new();
    for text in once {
        if written >= ALL_WARNINGS {
            break;
        }
        let text: String = text.chars().take(CUT_WARNING).collect();
        written += text.chars().count();
        cut.push(Cow::Owned(text));
    }
    cut
}

/// RFC 7234 `Warning`: code 299, no agent, quoted text.
fn warning_header(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 10);
    out.push_str("299 - \"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// JSON with its fields in the order of the type, and the line break that the original's encoder
/// ends with.
pub fn encoded<T: Serialize>(value: &T) -> Result<Bytes, serde_json::Error> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    Ok(bytes.into())
}

/// A document compressed with gzip: what is kept of large ones, which nearly every client takes as
/// it is.
pub fn packed(document: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = encoder.write_all(document);
    encoder.finish().unwrap_or_default().into()
}

fn unpacked(bytes: &Bytes) -> Bytes {
    let mut document = Vec::with_capacity(bytes.len() * 10);
    // What was compressed above can be read.
    let _ = GzDecoder::new(&bytes[..]).read_to_end(&mut document);
    document.into()
}

/// JSON indented by two blanks, with its order and its numbers as they were; empty objects and
/// lists stay on one line. Works on the text, so that it cannot change a value.
pub fn indented(bytes: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(bytes.len() * 2);
    let mut depth = 0_usize;
    let mut in_text = false;
    let mut escaped = false;
    // An opening bracket whose first entry has not come yet.
    let mut opened = false;
    let line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', depth * 2));
    };
    for &byte in bytes {
        if in_text {
            out.push(byte);
            in_text = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        if byte.is_ascii_whitespace() {
            continue;
        }
        if opened && !matches!(byte, b'}' | b']') {
            line(&mut out, depth);
            opened = false;
        }
        match byte {
            b'{' | b'[' => {
                out.push(byte);
                depth += 1;
                opened = true;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if !opened {
                    line(&mut out, depth);
                }
                opened = false;
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                line(&mut out, depth);
            }
            b':' => out.extend(b": "),
            b'"' => {
                in_text = true;
                out.push(byte);
            }
            _ => out.push(byte),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_told_once_and_cut_when_they_are_many() {
        let texts = ["a", "", "b", "a", "c\nd", "e\t"].map(str::to_owned);
        assert_eq!(told(&texts), ["a", "b"]);
        let long: Vec<String> = (0..100).map(|at| format!("{at:0300}")).collect();
        let told = told(&long);
        assert_eq!((told.len(), told[0].len()), (16, 256));
    }

    #[test]
    fn warnings_are_quoted_for_the_header() {
        assert_eq!(
            warning_header("unknown field \"spec.a\""),
            "299 - \"unknown field \\\"spec.a\\\"\""
        );
    }

    #[test]
    fn indenting_keeps_order_numbers_and_texts() {
        let text = br#"{"b":[],"a":{"x":1.50,"y":[1,{"z":"a\\\"{,:"}]},"c":{}}"#;
        let expected = "{\n  \"b\": [],\n  \"a\": {\n    \"x\": 1.50,\n    \"y\": [\n      1,\n      {\n        \"z\": \"a\\\\\\\"{,:\"\n      }\n    ]\n  },\n  \"c\": {}\n}";
        assert_eq!(String::from_utf8_lossy(&indented(text)), expected);
    }

    #[test]
    fn a_refusal_carries_its_code_and_when_to_come_back() {
        let status = Status::new(mainstay_object::Reason::Timeout, "later").retry_after(3);
        let response = ApiResponse::refusal(&status).into_response(ResponseFormat::default());
        assert_eq!(response.status(), 504);
        assert_eq!(response.headers()["retry-after"], "3");
    }
}
