//! What a client can ask this server for.
//!
//! Everything is made from one snapshot of the kinds, and the large answers are kept with that
//! snapshot: a definition that adds kinds makes a new snapshot, so no answer can be stale and every
//! `ETag` and hash changes exactly with the content.

mod aggregated;
mod legacy;
mod openapi;

use crate::aggregation::Aggregation;
use bytes::Bytes;
use http::StatusCode;
use http::header::{CACHE_CONTROL, HeaderValue};
use jiff::Timestamp;
use mainstay_http::negotiate::{self, EndpointForms, Form, Route};
use mainstay_http::response::{ApiResponse, encoded};
use mainstay_kinds::Kinds;
use mainstay_object::Status;
use serde_json::Value;
use sha2::{Digest, Sha512};
use std::fmt::Write;
use std::sync::OnceLock;

use legacy::group;
pub(crate) use legacy::{group_version, nothing_at, root, version};
pub(crate) use openapi::{Others, document, has_document, index, swagger};

/// The media type of the aggregated form.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// An encoded answer and its entity tag.
type Tagged = (Bytes, String);

/// The large answers made from one snapshot, each made when first asked for.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    core: OnceLock<Tagged>,
    groups: OnceLock<Tagged>,
    openapi_index: OnceLock<Tagged>,
    /// Version 2, compressed.
    swagger: OnceLock<Bytes>,
    swagger_protobuf: OnceLock<Bytes>,
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

/// `/api` or `/apis`: aggregated if the client accepts it, else the plain list of groups.
pub(crate) fn roots(
    kinds: &Kinds,
    core: bool,
    asked: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    let route = if core { Route::Table } else { Route::Bare };
    match negotiate::choose(asked.accept, EndpointForms::Discovery, route)? {
        Form::Discovery(_) => {}
        _ if core => return Ok(legacy::core_versions(asked)),
        _ => return Ok(legacy::groups(kinds)),
    }
    let answers = kinds.derived.get_or_init(Answers::default);
    let slot = if core { &answers.core } else { &answers.groups };
    let (bytes, etag) = if let Some(made) = slot.get() {
        made
    } else {
        let bytes = encoded(&aggregated::list(kinds, core)).map_err(Status::internal)?;
        let etag = format!("\"{}\"", digest(&bytes));
        slot.get_or_init(|| (bytes, etag))
    };
    let mut answer =
        unless_known(bytes, etag, asked).header(CACHE_CONTROL, HeaderValue::from_static("public"));
    if answer.code == StatusCode::OK {
        answer.content_type = AGGREGATED;
    }
    Ok(answer)
}

/// `/apis`: our own groups, and those that others serve among them.
pub(crate) fn groups(
    kinds: &Kinds,
    aggregation: &Aggregation,
    asked: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    if aggregation.is_empty() {
        return roots(kinds, false, asked);
    }
    // Made anew each time: what others serve changes without a change here.
    if !matches!(
        negotiate::choose(asked.accept, EndpointForms::Discovery, Route::Bare)?,
        Form::Discovery(_)
    ) {
        let mut list = legacy::groups_value(kinds);
        aggregation.merge_plain(&mut list);
        return Ok(ApiResponse::of(&list));
    }
    let list = serde_json::to_value(aggregated::list(kinds, false));
    let mut list = list.map_err(Status::internal)?;
    aggregation.merge_aggregated(&mut list);
    let bytes = encoded(&list).map_err(Status::internal)?;
    let etag = format!("\"{}\"", digest(&bytes));
    let mut answer = unless_known(&bytes, &etag, asked)
        .header(CACHE_CONTROL, HeaderValue::from_static("public"));
    if answer.code == StatusCode::OK {
        answer.content_type = AGGREGATED;
    }
    Ok(answer)
}

/// `/apis/{group}`, of a group that we have, that others have, or both.
pub(crate) fn any_group(
    kinds: &Kinds,
    aggregation: &Aggregation,
    name: &str,
    asked: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    if !aggregation.is_empty() {
        let own = kinds.group(name).map(legacy::group_value_of);
        if let Some(group) = aggregation.plain_group(name, own) {
            negotiate::choose(asked.accept, EndpointForms::Nothing, Route::Bare)?;
            return Ok(ApiResponse::of(&group));
        }
    }
    group(kinds, name, asked)
}

fn tagged(value: &Value) -> Tagged {
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
fn unless_known(bytes: &Bytes, etag: &str, asked: DiscoveryRequest<'_>) -> ApiResponse {
    let same = asked.known.is_some_and(|known| known.split(',').any(|one| one.trim() == etag));
    let mut answer = if same {
        ApiResponse::empty(StatusCode::NOT_MODIFIED)
    } else {
        ApiResponse::bytes(StatusCode::OK, bytes.clone())
    };
    answer.etag = Some(etag.to_owned());
    answer
}
