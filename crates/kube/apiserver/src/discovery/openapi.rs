//! OpenAPI: an index of documents with their hashes, and a document for each group-version.

use super::cache::{DiscoveryCache, DiscoveryRequest, conditional_response, digest, tagged};
use bytes::Bytes;
use http::StatusCode;
use http::header::{CACHE_CONTROL, EXPIRES, HeaderValue, LOCATION, VARY};
use jiff::Timestamp;
use mainstay_http::negotiate;
use mainstay_http::response::{ApiResponse, JSON, gzip_document};
use mainstay_kinds::{GroupVersion, Kinds};
use mainstay_object::Status;
use mainstay_schema::{crd, openapi};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// `/openapi/v3`, together with documents of aggregated servers. Hashes are computed without making
/// the documents.
pub(crate) fn index(kinds: &Kinds, aggregated: &BTreeMap<String, String>) -> ApiResponse {
    let cache = kinds.derived.get_or_init(DiscoveryCache::default);
    let (bytes, _) = cache.openapi_index.get_or_init(|| {
        let entry = |path: &str, hash: &str| {
            (path.to_owned(), json!({"serverRelativeURL": url(path, hash)}))
        };
        let mut paths: Map<String, Value> =
            openapi::pages().iter().map(|path| entry(path, &page_hash(path))).collect();
        for version in kinds.groups.iter().flat_map(|group| &group.versions) {
            let (path, value) = entry(&path_of(version), &hash(version));
            paths.insert(path, value);
        }
        tagged(&json!({"paths": paths}))
    });
    let mut bytes = bytes.clone();
    if !aggregated.is_empty()
        && let Ok(mut index) = serde_json::from_slice::<Value>(&bytes)
        && let Some(paths) = index["paths"].as_object_mut()
    {
        for (path, url) in aggregated {
            paths.entry(path).or_insert_with(|| json!({"serverRelativeURL": url}));
        }
        bytes = index.to_string().into();
    }
    // Behind kube-apiserver's aggregator the index has no entity tag.
    let mut response = ApiResponse::bytes(StatusCode::OK, bytes).unindented();
    response.content_type = INDEX_TYPE;
    response
}

/// kube-apiserver serves the index with the detected type of its content, which is text.
const INDEX_TYPE: &str = "text/plain; charset=utf-8";

/// `/openapi/v3/{path}`.
///
/// A document takes tens of milliseconds to make, once, on a blocking thread. A client that names
/// the hash may cache the response for ever; an outdated hash redirects to the current one.
pub(crate) async fn document(
    kinds: &Kinds,
    path: &str,
    request: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    // No known client requests the protobuf form of version 3, so it is not offered.
    if accepts_protobuf(request.accept, "").is_none() {
        return Ok(ApiResponse::empty(StatusCode::NOT_ACCEPTABLE).header(VARY, ACCEPT_TEXT));
    }
    let version = kinds
        .groups
        .iter()
        .flat_map(|group| &group.versions)
        .find(|candidate| path_of(candidate) == path);
    let hash = match version {
        Some(version) => hash(version),
        None if openapi::pages().iter().any(|page| page == path) => page_hash(path),
        None => return Ok(ApiResponse::empty(StatusCode::NOT_FOUND)),
    };
    let etag = format!("\"{hash}\"");
    if let Some(client_hash) = request.hash
        && client_hash != hash
    {
        let mut response = ApiResponse::empty(StatusCode::MOVED_PERMANENTLY);
        response.content_type = JSON;
        response.etag = Some(etag);
        let url = HeaderValue::try_from(url(path, &hash)).map_err(Status::internal)?;
        return Ok(response.header(LOCATION, url));
    }
    let is_cached = request.if_none_match.is_some_and(|etags| etags.contains(&etag));
    let bytes = match version {
        _ if is_cached => Bytes::new(),
        Some(version) => document_bytes(version).await?,
        // These documents are small and rarely requested.
        None => {
            gzip_document(openapi::document(path, &[]).unwrap_or_default().to_string().as_bytes())
        }
    };
    let mut response = if is_cached {
        ApiResponse::empty(StatusCode::NOT_MODIFIED)
    } else {
        ApiResponse::from_gzip(StatusCode::OK, bytes)
    };
    response.etag = Some(etag);
    if request.hash.is_some() {
        let cache = HeaderValue::from_static("public, immutable");
        response = response.header(CACHE_CONTROL, cache).header(EXPIRES, expires(request.now)?);
    }
    Ok(response)
}

/// The document of a group-version, after its first request.
#[derive(Default)]
struct Document(OnceLock<Bytes>);

/// The document, from the cache or made now.
async fn document_bytes(version: &Arc<GroupVersion>) -> Result<Bytes, Status> {
    let document = version.derived.get_or_init(Document::default);
    if let Some(bytes) = document.0.get() {
        return Ok(bytes.clone());
    }
    let version = version.clone();
    let render = move || document.0.get_or_init(|| render_document(&version)).clone();
    tokio::task::spawn_blocking(render).await.map_err(Status::internal)
}

/// Whether the first accepted form is protobuf; none if no form is accepted.
fn accepts_protobuf(accept: Option<&str>, protobuf: &str) -> Option<bool> {
    let accept = accept.filter(|accept| !accept.trim().is_empty()).unwrap_or("*/*");
    negotiate::media_types(accept).into_iter().find_map(|media| match media {
        "application/json" | "application/*" | "*/*" | "*/json" => Some(false),
        // Clients send an `@` before the last dot, which is no valid media type.
        media if media == protobuf || media.replace('@', ".") == protobuf => Some(true),
        _ => None,
    })
}

/// The `Expires` header of a document that never changes: one year from now.
fn expires(now: Timestamp) -> Result<HeaderValue, Status> {
    let then = now.to_zoned(jiff::tz::TimeZone::UTC).saturating_add(jiff::Span::new().years(1));
    let text = then.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string();
    HeaderValue::try_from(text).map_err(Status::internal)
}

fn url(path: &str, hash: &str) -> String {
    format!("/openapi/v3/{path}?hash={hash}")
}

fn render_document(version: &GroupVersion) -> Bytes {
    let document = openapi::document(&path_of(version), &definitions(version)).unwrap_or_default();
    gzip_document(document.to_string().as_bytes())
}

const ACCEPT_TEXT: HeaderValue = HeaderValue::from_static("Accept");
/// Media type of the protobuf form of version 2.
const SWAGGER_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Whether this server has an OpenAPI document at a path.
pub(crate) fn has_document(kinds: &Kinds, path: &str) -> bool {
    let mut versions = kinds.groups.iter().flat_map(|group| &group.versions);
    versions.any(|candidate| path_of(candidate) == path)
        || openapi::pages().iter().any(|page| page == path)
}

/// The parts of aggregated API servers in the OpenAPI v2 document.
pub(crate) trait AggregatedDocuments: Send + Sync + 'static {
    /// A text that changes with these parts; empty if there are none.
    fn tag(&self) -> String;
    /// Merges these parts into the document.
    fn merge_into(&self, document: &mut Value);
    /// The document that was stored with [`AggregatedDocuments::store`] under this tag.
    fn cached(&self, tag: &str) -> Option<Bytes>;
    /// Stores a document; it may replace the previous one.
    fn store(&self, tag: &str, document: Bytes);
}

/// `/openapi/v2`, in JSON or protobuf. The entity tag is known without making the document.
pub(crate) async fn swagger(
    kinds: &Arc<Kinds>,
    aggregated: Arc<dyn AggregatedDocuments>,
    request: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    let vary = HeaderValue::from_static("Accept-Encoding, Accept");
    let Some(protobuf) = accepts_protobuf(request.accept, SWAGGER_PROTOBUF) else {
        return Ok(ApiResponse::empty(StatusCode::NOT_ACCEPTABLE).header(VARY, vary));
    };
    let mut hashes = String::new();
    for path in openapi::pages().iter().filter(|path| openapi::is_discovery(path)) {
        hashes.push_str(&page_hash(path));
    }
    for version in kinds.groups.iter().flat_map(|group| &group.versions) {
        hashes.push_str(&hash(version));
    }
    let aggregated_tag = aggregated.tag();
    hashes.push_str(&aggregated_tag);
    let etag = format!("\"{}\"", digest(hashes.as_bytes()));
    let mut response = conditional_response(&Bytes::new(), &etag, request);
    if response.code == StatusCode::OK {
        let cache = kinds.derived.get_or_init(DiscoveryCache::default);
        let cell = if protobuf { &cache.swagger_protobuf } else { &cache.swagger };
        let tag = format!("{protobuf} {etag}");
        let cached =
            if aggregated_tag.is_empty() { cell.get().cloned() } else { aggregated.cached(&tag) };
        let bytes = if let Some(bytes) = cached {
            bytes
        } else {
            let kinds = kinds.clone();
            let render = move || {
                if aggregated_tag.is_empty() {
                    render_swagger(&kinds, protobuf)
                } else {
                    render_with_aggregated(&kinds, &*aggregated, &tag, protobuf)
                }
            };
            tokio::task::spawn_blocking(render).await.map_err(Status::internal)?
        };
        response = ApiResponse::from_gzip(StatusCode::OK, bytes);
        response.etag = Some(etag);
        if protobuf {
            response.content_type = SWAGGER_PROTOBUF;
        }
    }
    Ok(response.header(VARY, vary))
}

fn render_swagger(kinds: &Kinds, protobuf: bool) -> Bytes {
    let cache = kinds.derived.get_or_init(DiscoveryCache::default);
    let cell = if protobuf { &cache.swagger_protobuf } else { &cache.swagger };
    cell.get_or_init(|| encode(&document_of(kinds), protobuf)).clone()
}

fn render_with_aggregated(
    kinds: &Kinds,
    aggregated: &dyn AggregatedDocuments,
    tag: &str,
    protobuf: bool,
) -> Bytes {
    let mut document = document_of(kinds);
    aggregated.merge_into(&mut document);
    let bytes = encode(&document, protobuf);
    aggregated.store(tag, bytes.clone());
    bytes
}

fn document_of(kinds: &Kinds) -> Value {
    let mut found: Vec<&crd::CustomResourceDefinition> = Vec::new();
    for custom in kinds.rows().filter_map(|row| row.custom()) {
        if !found.iter().any(|candidate| candidate.name == custom.definition.name) {
            found.push(&custom.definition);
        }
    }
    openapi::swagger(&found)
}

fn encode(document: &Value, protobuf: bool) -> Bytes {
    if protobuf {
        gzip_document(&openapi::swagger_protobuf(document))
    } else {
        gzip_document(document.to_string().as_bytes())
    }
}

fn path_of(version: &GroupVersion) -> String {
    openapi::page(&version.group, &version.version)
}

fn hash(version: &GroupVersion) -> String {
    openapi::hash(&path_of(version), &definitions(version))
}

fn page_hash(path: &str) -> String {
    openapi::hash(path, &[])
}

fn definitions(version: &GroupVersion) -> Vec<&crd::CustomResourceDefinition> {
    version
        .rows
        .iter()
        .filter_map(|row| row.custom())
        .map(|candidate| &*candidate.definition)
        .collect()
}
