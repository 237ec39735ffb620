//! What a client can ask this server for.
//!
//! Everything is made from one snapshot of the kinds, and the large answers are kept with that
//! snapshot: a definition that adds kinds makes a new snapshot, so no answer can be stale and every
//! `ETag` and hash changes exactly with the content.

mod aggregated;
pub(crate) mod answers;
mod legacy;
pub(crate) mod openapi;

use self::answers::{Answers, DiscoveryRequest, digest, unless_known};
use self::legacy::group;
use crate::aggregation::Aggregation;
use http::StatusCode;
use http::header::{CACHE_CONTROL, HeaderValue};
use mainstay_http::negotiate::{self, EndpointRepresentations, Representation, RouteKind};
use mainstay_http::response::{ApiResponse, encode_json};
use mainstay_kinds::Kinds;
use mainstay_object::Status;

pub(crate) use legacy::{group_version, nothing_at, root, version};
pub(crate) use openapi::{document, index, swagger};

/// The media type of the aggregated form.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// `/api` or `/apis`: aggregated if the client accepts it, else the plain list of groups.
pub(crate) fn roots(
    kinds: &Kinds,
    core: bool,
    asked: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    let route = if core { RouteKind::Table } else { RouteKind::Unrouted };
    match negotiate::choose(asked.accept, EndpointRepresentations::Discovery, route)? {
        Representation::Discovery(_) => {}
        _ if core => return Ok(legacy::core_versions(asked)),
        _ => return Ok(legacy::groups(kinds)),
    }
    let answers = kinds.derived.get_or_init(Answers::default);
    let slot = if core { &answers.core } else { &answers.groups };
    let (bytes, etag) = if let Some(made) = slot.get() {
        made
    } else {
        let bytes = encode_json(&aggregated::list(kinds, core)).map_err(Status::internal)?;
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
        negotiate::choose(asked.accept, EndpointRepresentations::Discovery, RouteKind::Unrouted)?,
        Representation::Discovery(_)
    ) {
        let mut list = legacy::groups_value(kinds);
        aggregation.merge_plain(&mut list);
        return Ok(ApiResponse::of(&list));
    }
    let list = serde_json::to_value(aggregated::list(kinds, false));
    let mut list = list.map_err(Status::internal)?;
    aggregation.merge_aggregated(&mut list);
    let bytes = encode_json(&list).map_err(Status::internal)?;
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
            negotiate::choose(asked.accept, EndpointRepresentations::None, RouteKind::Unrouted)?;
            return Ok(ApiResponse::of(&group));
        }
    }
    group(kinds, name, asked)
}
