//! Requests and responses, and their conversion to values that can be compared.

use crate::mask::Masker;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};
use std::io::Read;

/// The greatest size of an unpacked body, in bytes.
const MAX_BODY: u64 = 64 << 20;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The method.
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    /// Headers.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: Vec<u8>,
}

/// A response.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerResponse {
    /// The status code.
    pub(crate) status: u16,
    /// Headers, with lower-case names, in order.
    pub(crate) headers: Vec<(String, String)>,
    /// The body, compressed if `content-encoding` says so.
    pub(crate) body: Vec<u8>,
}

impl ServerResponse {
    /// The values of a header.
    pub(crate) fn header<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The uncompressed body as a value: JSON as its value, other text as text, other bytes as
    /// Base64.
    pub(crate) fn value(&self) -> Value {
        let is_gzip = self.header("content-encoding").any(|encoding| encoding == "gzip");
        let mut unpacked_body = Vec::new();
        let unpacked = is_gzip
            && GzDecoder::new(&*self.body).take(MAX_BODY).read_to_end(&mut unpacked_body).is_ok();
        body(if unpacked { &unpacked_body } else { &self.body })
    }

    /// The compared parts of the response except its body: status and some headers, masked.
    pub(crate) fn outline(&self, masker: &mut Masker) -> Map<String, Value> {
        let mut outline = Map::new();
        outline.insert("status".to_owned(), json!(self.status));
        for (name, key) in [
            ("content-type", "type"),
            ("retry-after", "retry-after"),
            ("content-encoding", "encoding"),
            ("location", "location"),
            ("allow", "allow"),
        ] {
            if let Some(value) = self.header(name).next() {
                outline.insert(key.to_owned(), masker.text(value).into());
            }
        }
        // Only the existence of the etag is compared.
        if self.header("etag").next().is_some() {
            outline.insert("etag".to_owned(), "<etag>".into());
        }
        let warnings: Vec<Value> =
            self.header("warning").map(|text| masker.text(text).into()).collect();
        if !warnings.is_empty() {
            outline.insert("warnings".to_owned(), warnings.into());
        }
        outline
    }
}

/// Converts a body to a value; see [`ServerResponse::value`].
pub(crate) fn body(bytes: &[u8]) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    // Kubernetes' protobuf may be valid text.
    if bytes.starts_with(b"k8s\0") {
        return as_base64(bytes);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if text.trim_start().starts_with(['{', '[']) => {
            serde_json::from_str(text).unwrap_or_else(|_| json!({"text": text}))
        }
        Ok(text) => json!({"text": text}),
        Err(_) => as_base64(bytes),
    }
}

/// Bytes as a value, in Base64.
pub(crate) fn as_base64(bytes: &[u8]) -> Value {
    json!({"base64": STANDARD.encode(bytes)})
}

/// The inverse of [`body`]; JSON in its shortest form.
pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    match value.as_object() {
        _ if value.is_null() => Vec::new(),
        Some(only) if only.len() == 1 && only.contains_key("text") => {
            only["text"].as_str().unwrap_or_default().as_bytes().to_vec()
        }
        Some(only) if only.len() == 1 && only.contains_key("base64") => {
            STANDARD.decode(only["base64"].as_str().unwrap_or_default()).unwrap_or_default()
        }
        _ => value.to_string().into_bytes(),
    }
}
