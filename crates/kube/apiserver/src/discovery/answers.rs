//! Answers of discovery: what they are made for, and those that are kept with a snapshot of the kinds.

use bytes::Bytes;
use http::StatusCode;
use jiff::Timestamp;
use mainstay_http::response::ApiResponse;
use serde_json::Value;
use sha2::{Digest, Sha512};
use std::fmt::Write;
use std::sync::OnceLock;

/// An encoded answer and its entity tag.
pub(super) type Tagged = (Bytes, String);

/// The large answers made from one snapshot, each made when first asked for.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(super) core: OnceLock<Tagged>,
    pub(super) groups: OnceLock<Tagged>,
    pub(super) openapi_index: OnceLock<Tagged>,
    /// Version 2, compressed.
    pub(super) swagger: OnceLock<Bytes>,
    pub(super) swagger_protobuf: OnceLock<Bytes>,
}

/// Facts of a request that discovery depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiscoveryRequest<'a> {
    /// `Accept`.
    pub(crate) accept: Option<&'a str>,
    /// `If-None-Match`.
    pub(crate) known: Option<&'a str>,
    /// The query parameter `hash`.
    pub(crate) hash: Option<&'a str>,
    /// Under which address the client found the server.
    pub(crate) host: Option<&'a str>,
    /// The time of the request.
    pub(crate) now: Timestamp,
}

/// A value as an answer with its entity tag.
pub(super) fn tagged(value: &Value) -> Tagged {
    let bytes: Bytes = value.to_string().into();
    let etag = format!("\"{}\"", digest(&bytes));
    (bytes, etag)
}

/// SHA-512 in upper-case hexadecimal, as the original's hashes look.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha512::digest(bytes).iter().fold(String::with_capacity(128), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02X}");
        text
    })
}

/// The answer, or 304 if the client has it.
pub(super) fn unless_known(bytes: &Bytes, etag: &str, asked: DiscoveryRequest<'_>) -> ApiResponse {
    let same = asked.known.is_some_and(|known| known.split(',').any(|one| one.trim() == etag));
    let mut answer = if same {
        ApiResponse::empty(StatusCode::NOT_MODIFIED)
    } else {
        ApiResponse::bytes(StatusCode::OK, bytes.clone())
    };
    answer.etag = Some(etag.to_owned());
    answer
}
