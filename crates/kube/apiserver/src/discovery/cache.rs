//! Discovery requests, and the responses that are cached with a snapshot of the kinds.

use bytes::Bytes;
use http::StatusCode;
use jiff::Timestamp;
use mainstay_http::response::ApiResponse;
use serde_json::Value;
use sha2::{Digest, Sha512};
use std::fmt::Write;
use std::sync::OnceLock;

/// An encoded response and its entity tag.
pub(super) type TaggedBytes = (Bytes, String);

/// The large responses of one snapshot, each made at its first request.
#[derive(Debug, Default)]
pub(crate) struct DiscoveryCache {
    pub(super) core: OnceLock<TaggedBytes>,
    pub(super) groups: OnceLock<TaggedBytes>,
    pub(super) openapi_index: OnceLock<TaggedBytes>,
    /// OpenAPI v2, compressed.
    pub(super) swagger: OnceLock<Bytes>,
    pub(super) swagger_protobuf: OnceLock<Bytes>,
}

/// The parts of a request that discovery reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiscoveryRequest<'a> {
    /// `Accept`.
    pub(crate) accept: Option<&'a str>,
    /// `If-None-Match`.
    pub(crate) if_none_match: Option<&'a str>,
    /// The query parameter `hash`.
    pub(crate) hash: Option<&'a str>,
    /// The address under which the client reached the server.
    pub(crate) host: Option<&'a str>,
    /// The time of the request.
    pub(crate) now: Timestamp,
}

/// Encodes a value and computes its entity tag.
pub(super) fn tagged(value: &Value) -> TaggedBytes {
    let bytes: Bytes = value.to_string().into();
    let etag = format!("\"{}\"", digest(&bytes));
    (bytes, etag)
}

/// SHA-512 in upper-case hexadecimal, as kube-apiserver writes it.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha512::digest(bytes).iter().fold(String::with_capacity(128), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02X}");
        text
    })
}

/// The response, or 304 if the client has it.
pub(super) fn conditional_response(
    bytes: &Bytes,
    etag: &str,
    request: DiscoveryRequest<'_>,
) -> ApiResponse {
    let same = request.if_none_match.is_some_and(|if_none_match| {
        if_none_match.split(',').any(|candidate| candidate.trim() == etag)
    });
    let mut response = if same {
        ApiResponse::empty(StatusCode::NOT_MODIFIED)
    } else {
        ApiResponse::bytes(StatusCode::OK, bytes.clone())
    };
    response.etag = Some(etag.to_owned());
    response
}
