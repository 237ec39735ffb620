//! Discovery: which groups, versions and kinds the server offers.
//!
//! Each response is made from one snapshot of the kinds, and the large ones are cached with that
//! snapshot. A CRD that adds kinds makes a new snapshot. So no response is stale, and every `ETag`
//! and hash changes exactly with the content.

mod aggregated;
pub(crate) mod cache;
mod legacy;
pub(crate) mod openapi;

use self::cache::{DiscoveryCache, DiscoveryRequest, conditional_response, digest};
use self::legacy::group;
use crate::aggregation::Aggregation;
use http::StatusCode;
use http::header::{CACHE_CONTROL, HeaderValue};
use mainstay_http::negotiate::{self, EndpointRepresentations, Representation, RouteKind};
use mainstay_http::response::{ApiResponse, encode_json};
use mainstay_kinds::Kinds;
use mainstay_object::Status;

pub(crate) use legacy::{group_version, root, unknown_resource, version};
pub(crate) use openapi::{document, index, swagger};

/// The media type of aggregated discovery.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// `/api` or `/apis`: aggregated if the client accepts that form, else the plain list.
pub(crate) fn discovery_root(
    kinds: &Kinds,
    core: bool,
    request: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    let route = if core { RouteKind::Table } else { RouteKind::Unrouted };
    match negotiate::choose(request.accept, EndpointRepresentations::Discovery, route)? {
        Representation::Discovery(_) => {}
        _ if core => return Ok(legacy::core_versions(request)),
        _ => return Ok(legacy::groups(kinds)),
    }
    let cache = kinds.derived.get_or_init(DiscoveryCache::default);
    let cached = if core { &cache.core } else { &cache.groups };
    let (bytes, etag) = if let Some(cached_response) = cached.get() {
        cached_response
    } else {
        let bytes = encode_json(&aggregated::list(kinds, core)).map_err(Status::internal)?;
        let etag = format!("\"{}\"", digest(&bytes));
        cached.get_or_init(|| (bytes, etag))
    };
    let mut response = conditional_response(bytes, etag, request)
        .header(CACHE_CONTROL, HeaderValue::from_static("public"));
    if response.code == StatusCode::OK {
        response.content_type = AGGREGATED;
    }
    Ok(response)
}

/// `/apis`: our own groups together with aggregated ones.
pub(crate) fn groups(
    kinds: &Kinds,
    aggregation: &Aggregation,
    request: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    if aggregation.is_empty() {
        return discovery_root(kinds, false, request);
    }
    // Not cached: aggregated groups change without a new snapshot.
    if !matches!(
        negotiate::choose(request.accept, EndpointRepresentations::Discovery, RouteKind::Unrouted)?,
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
    let mut response = conditional_response(&bytes, &etag, request)
        .header(CACHE_CONTROL, HeaderValue::from_static("public"));
    if response.code == StatusCode::OK {
        response.content_type = AGGREGATED;
    }
    Ok(response)
}

/// `/apis/{group}` for a group that this server, aggregated servers, or both serve.
pub(crate) fn any_group(
    kinds: &Kinds,
    aggregation: &Aggregation,
    name: &str,
    request: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    if !aggregation.is_empty() {
        let own = kinds.group(name).map(legacy::group_value_of);
        if let Some(group) = aggregation.plain_group(name, own) {
            negotiate::choose(request.accept, EndpointRepresentations::None, RouteKind::Unrouted)?;
            return Ok(ApiResponse::of(&group));
        }
    }
    group(kinds, name, request)
}
