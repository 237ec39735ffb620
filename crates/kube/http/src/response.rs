//! API responses: status code, body, headers and warnings, in the encoding that the client accepts.

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

/// The media type of nearly all responses.
pub const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
/// The least size of a compressed response; the bound of kube-apiserver.
const MIN_GZIP_SIZE: usize = 128 * 1024;

/// The response of a handler, before the headers that depend on the request.
#[derive(Debug)]
pub struct ApiResponse {
    /// Status code.
    pub code: StatusCode,
    /// Body.
    pub body: Body,
    /// Media type of the body; empty for no body.
    pub content_type: &'static str,
    /// Entity tag, of documents that clients cache.
    pub etag: Option<String>,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
    /// Annotations of the audit event.
    pub audit_annotations: AuditAnnotations,
    /// Headers of this response alone; they replace those that all responses have.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    retry_after: u32,
    /// Whether the body is never indented.
    never_indent: bool,
    /// Whether the body is compressed already.
    is_gzip: bool,
    /// Whether the kind of the response has no protobuf message.
    has_no_message: bool,
    /// Bytes in the body as far as known, to decide on compression.
    pub size: usize,
}

/// The format that a client requests for any response.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseFormat {
    /// Compressed, if that pays.
    pub gzip: bool,
    /// Whether the client is on this machine, where sending bytes costs less than compressing them.
    pub is_local: bool,
    /// Indented.
    pub pretty: bool,
    /// The encoding of objects.
    pub encoding: Encoding,
}

/// The encoding of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// The encoding in which responses are made.
    #[default]
    Json,
    /// For human readers.
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
            never_indent: false,
            is_gzip: false,
            has_no_message: false,
            size,
        }
    }

    /// A value with code 200; its fields have the order of its type.
    pub fn of<T: Serialize>(value: &T) -> Self {
        match encode_json(value) {
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

    /// The same response, whose body is never indented.
    #[must_use]
    pub fn unindented(mut self) -> Self {
        self.never_indent = true;
        self
    }

    /// The same response, of a kind that has no protobuf message.
    #[must_use]
    pub fn without_message(mut self) -> Self {
        self.has_no_message = true;
        self
    }

    /// A body in protobuf, of a media type of [`messages`].
    pub fn protobuf(code: StatusCode, content_type: &'static str, body: Body, size: usize) -> Self {
        Self { content_type, ..Self::body(code, body, size) }
    }

    /// Whether the body is encoded again for this format.
    pub fn is_rewritten(&self, format: ResponseFormat) -> bool {
        match format.encoding {
            Encoding::Protobuf => self.may_be_message(),
            Encoding::Yaml => self.content_type == JSON && !self.is_gzip,
            Encoding::Json => {
                format.pretty && self.content_type.starts_with(JSON) && !self.never_indent
            }
        }
    }

    fn may_be_message(&self) -> bool {
        self.content_type == JSON
            && self.code != StatusCode::NOT_ACCEPTABLE
            && !self.is_gzip
            && !self.has_no_message
    }

    /// A large document, compressed by [`gzip_document`].
    pub fn from_gzip(code: StatusCode, bytes: Bytes) -> Self {
        Self { is_gzip: true, never_indent: true, ..Self::bytes(code, bytes) }
    }

    /// No body at all.
    pub fn empty(code: StatusCode) -> Self {
        Self { content_type: "", ..Self::bytes(code, Bytes::new()) }
    }

    /// The response of Go's HTTP server to a path without a route.
    pub fn page_not_found() -> Self {
        let mut response = Self::text(StatusCode::NOT_FOUND, "404 page not found\n".to_owned());
        let nosniff = HeaderValue::from_static("nosniff");
        response.headers.push((X_CONTENT_TYPE_OPTIONS, nosniff));
        response
    }

    /// The same response with a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// A `Status` error.
    pub fn refusal(status: &Status) -> Self {
        let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = status.details.retry_after_seconds;
        Self { retry_after, ..Self::value(code, &status.to_value()) }
    }

    /// The `Status` of a successful deletion.
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

    /// The HTTP response, in the encoding, indentation and compression of the format.
    pub fn into_response(self, format: ResponseFormat) -> Response<Body> {
        let is_rewritten = self.is_rewritten(format);
        let (mut body, mut content_type) = (self.body, self.content_type);
        if is_rewritten {
            body = match body.into_bytes() {
                Ok(bytes) => match reencode(&bytes, format.encoding) {
                    Some((bytes, media)) => {
                        content_type = media.unwrap_or(content_type);
                        Body::from(bytes)
                    }
                    None => Body::from(bytes),
                },
                Err(stream) => stream,
            };
        }
        let mut compress = format.gzip && !format.is_local && self.size >= MIN_GZIP_SIZE;
        if self.is_gzip {
            compress = false;
            if !format.gzip {
                body = match body.into_bytes() {
                    Ok(bytes) => Body::from(gunzip_document(&bytes)),
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
        if compress || self.is_gzip && format.gzip {
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
        add_warnings(headers, &self.warnings);
        if !self.audit_annotations.0.is_empty() {
            response.extensions_mut().insert(self.audit_annotations);
        }
        response
    }
}

/// A JSON body in another encoding or indented, with its media type if that changes; none if the
/// body stays as it is.
fn reencode(bytes: &Bytes, encoding: Encoding) -> Option<(Bytes, Option<&'static str>)> {
    match encoding {
        Encoding::Json => Some((indent_json(bytes), None)),
        Encoding::Yaml => {
            let value: Value = serde_json::from_slice(bytes).ok()?;
            Some((mainstay_yaml::to_string(&value).into(), Some(YAML)))
        }
        Encoding::Protobuf => Some((messages::body(bytes)?, Some(messages::MEDIA_TYPE))),
    }
}

/// Compresses a response of an in-process handler if that pays. The client must accept gzip.
pub fn compress(response: Response<Body>) -> Response<Body> {
    let is_compressed = response.headers().contains_key(CONTENT_ENCODING);
    if is_compressed || !response.body().is_worth_compressing(MIN_GZIP_SIZE) {
        return response;
    }
    let mut response = response.map(Body::gzip);
    let headers = response.headers_mut();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.remove(http::header::CONTENT_LENGTH);
    response
}

/// Adds `Warning` headers.
pub fn add_warnings(headers: &mut HeaderMap, warnings: &[String]) {
    for warning in limit_warnings(warnings) {
        if let Ok(value) = HeaderValue::try_from(warning_header(&warning)) {
            headers.append(WARNING, value);
        }
    }
}

/// Characters of all warnings of a response; if they have more, each is truncated.
const WARNINGS_LIMIT: usize = 4096;
/// The characters of a truncated warning.
const TRUNCATED_WARNING: usize = 256;

/// The warnings that are sent: each once, and no more than headers can hold. As in kube-apiserver,
/// a warning with a control character is dropped.
fn limit_warnings(warnings: &[String]) -> Vec<Cow<'_, str>> {
    let mut sent = HashSet::new();
    let is_valid = |text: &&String| !text.is_empty() && !text.contains(char::is_control);
    let unique: Vec<&String> =
        warnings.iter().filter(is_valid).filter(|text| sent.insert(text.as_str())).collect();
    if unique.iter().map(|text| text.chars().count()).sum::<usize>() <= WARNINGS_LIMIT {
        return unique.into_iter().map(|text| Cow::Borrowed(text.as_str())).collect();
    }
    let mut length = 0;
    let mut truncated = Vec::new();
    for text in unique {
        if length >= WARNINGS_LIMIT {
            break;
        }
        let text: String = text.chars().take(TRUNCATED_WARNING).collect();
        length += text.chars().count();
        truncated.push(Cow::Owned(text));
    }
    truncated
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

/// JSON with the fields in the order of the type, and the line break at the end that kube-apiserver
/// writes.
pub fn encode_json<T: Serialize>(value: &T) -> Result<Bytes, serde_json::Error> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    Ok(bytes.into())
}

/// Compresses a large document for a cache; nearly every client accepts it compressed.
pub fn gzip_document(document: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = encoder.write_all(document);
    encoder.finish().unwrap_or_default().into()
}

fn gunzip_document(bytes: &Bytes) -> Bytes {
    let mut document = Vec::with_capacity(bytes.len() * 10);
    // The bytes come from `gzip_document`, so decompression does not fail.
    let _ = GzDecoder::new(&bytes[..]).read_to_end(&mut document);
    document.into()
}

/// Indents JSON by two spaces. Empty objects and lists stay on one line. The function works on the
/// text, so that it cannot change the order or a number.
pub fn indent_json(bytes: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(bytes.len() * 2);
    let mut depth = 0_usize;
    let mut in_text = false;
    let mut escaped = false;
    // An opening bracket came last, and its first entry is still missing.
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
    fn warnings_are_sent_once_and_truncated_when_they_are_many() {
        let texts = ["a", "", "b", "a", "c\nd", "e\t"].map(str::to_owned);
        assert_eq!(limit_warnings(&texts), ["a", "b"]);
        let long: Vec<String> = (0..100).map(|index| format!("{index:0300}")).collect();
        let sent = limit_warnings(&long);
        assert_eq!((sent.len(), sent[0].len()), (16, 256));
    }

    #[test]
    fn warnings_are_quoted_for_the_header() {
        assert_eq!(
            warning_header("unknown field \"spec.a\""),
            "299 - \"unknown field \\\"spec.a\\\"\""
        );
    }

    #[test]
    fn indentation_keeps_order_numbers_and_texts() {
        let text = br#"{"b":[],"a":{"x":1.50,"y":[1,{"z":"a\\\"{,:"}]},"c":{}}"#;
        let expected = "{\n  \"b\": [],\n  \"a\": {\n    \"x\": 1.50,\n    \"y\": [\n      1,\n      {\n        \"z\": \"a\\\\\\\"{,:\"\n      }\n    ]\n  },\n  \"c\": {}\n}";
        assert_eq!(String::from_utf8_lossy(&indent_json(text)), expected);
    }

    #[test]
    fn error_response_has_status_code_and_retry_after() {
        let status = Status::new(mainstay_object::Reason::Timeout, "later").retry_after(3);
        let response = ApiResponse::refusal(&status).into_response(ResponseFormat::default());
        assert_eq!(response.status(), 504);
        assert_eq!(response.headers()["retry-after"], "3");
    }
}
