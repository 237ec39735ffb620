//! `OpenAPI`: an index of documents with their hashes, and a document for each group-version.

use super::answers::{Answers, DiscoveryRequest, digest, tagged, unless_known};
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

/// `/openapi/v3`, with documents that others have. Hashes are computed without making the documents.
pub(crate) fn index(kinds: &Kinds, others: &BTreeMap<String, String>) -> ApiResponse {
    let answers = kinds.derived.get_or_init(Answers::default);
    let (bytes, _) = answers.openapi_index.get_or_init(|| {
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
    if !others.is_empty()
        && let Ok(mut index) = serde_json::from_slice::<Value>(&bytes)
        && let Some(paths) = index["paths"].as_object_mut()
    {
        for (path, url) in others {
            paths.entry(path).or_insert_with(|| json!({"serverRelativeURL": url}));
        }
        bytes = index.to_string().into();
    }
    // Behind the original's aggregator the index has no entity tag.
    let mut answer = ApiResponse::bytes(StatusCode::OK, bytes).unindented();
    answer.content_type = INDEX_TYPE;
    answer
}

/// The original serves the index as what its content looks like, which is text.
const INDEX_TYPE: &str = "text/plain; charset=utf-8";

/// `/openapi/v3/{path}`.
///
/// A document takes tens of milliseconds to make, once: that is done off the async threads. A client
/// that names the hash may keep the answer for ever; one that names an old hash is sent to the new.
pub(crate) async fn document(
    kinds: &Kinds,
    path: &str,
    asked: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    // Nobody is known to ask for the protobuf form of version 3, which is not offered.
    if form(asked.accept, "").is_none() {
        return Ok(ApiResponse::empty(StatusCode::NOT_ACCEPTABLE).header(VARY, ACCEPT_TEXT));
    }
    let found =
        kinds.groups.iter().flat_map(|group| &group.versions).find(|one| path_of(one) == path);
    let hash = match found {
        Some(version) => hash(version),
        None if openapi::pages().iter().any(|page| page == path) => page_hash(path),
        None => return Ok(ApiResponse::empty(StatusCode::NOT_FOUND)),
    };
    let etag = format!("\"{hash}\"");
    if let Some(asked_for) = asked.hash
        && asked_for != hash
    {
        let mut answer = ApiResponse::empty(StatusCode::MOVED_PERMANENTLY);
        answer.content_type = JSON;
        answer.etag = Some(etag);
        let url = HeaderValue::try_from(url(path, &hash)).map_err(Status::internal)?;
        return Ok(answer.header(LOCATION, url));
    }
    let known = asked.known.is_some_and(|known| known.contains(&etag));
    let bytes = match found {
        _ if known => Bytes::new(),
        Some(version) => made(version).await?,
        // Small ones, which nobody asks for twice.
        None => {
            gzip_document(openapi::document(path, &[]).unwrap_or_default().to_string().as_bytes())
        }
    };
    let mut answer = if known {
        ApiResponse::empty(StatusCode::NOT_MODIFIED)
    } else {
        ApiResponse::from_gzip(StatusCode::OK, bytes)
    };
    answer.etag = Some(etag);
    if asked.hash.is_some() {
        let cache = HeaderValue::from_static("public, immutable");
        answer = answer.header(CACHE_CONTROL, cache).header(EXPIRES, in_a_year(asked.now)?);
    }
    Ok(answer)
}

/// The document of a group-version, once a client has read it.
#[derive(Default)]
struct Document(OnceLock<Bytes>);

/// The document, from the cache or made now.
async fn made(version: &Arc<GroupVersion>) -> Result<Bytes, Status> {
    let document = version.derived.get_or_init(Document::default);
    if let Some(bytes) = document.0.get() {
        return Ok(bytes.clone());
    }
    let version = version.clone();
    let made = move || document.0.get_or_init(|| make(&version)).clone();
    tokio::task::spawn_blocking(made).await.map_err(Status::internal)
}

/// Whether the first accepted form is protobuf; none if neither form is accepted.
fn form(accept: Option<&str>, protobuf: &str) -> Option<bool> {
    let accept = accept.filter(|accept| !accept.trim().is_empty()).unwrap_or("*/*");
    negotiate::media_types(accept).into_iter().find_map(|media| match media {
        "application/json" | "application/*" | "*/*" | "*/json" => Some(false),
        // Clients ask with an `@` before the last dot, which is no valid media type.
        media if media == protobuf || media.replace('@', ".") == protobuf => Some(true),
        _ => None,
    })
}

/// When what never changes is old enough to be asked for again.
fn in_a_year(now: Timestamp) -> Result<HeaderValue, Status> {
    let then = now.to_zoned(jiff::tz::TimeZone::UTC).saturating_add(jiff::Span::new().years(1));
    let text = then.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string();
    HeaderValue::try_from(text).map_err(Status::internal)
}

fn url(path: &str, hash: &str) -> String {
    format!("/openapi/v3/{path}?hash={hash}")
}

fn make(version: &GroupVersion) -> Bytes {
    let document = openapi::document(&path_of(version), &definitions(version)).unwrap_or_default();
    gzip_document(document.to_string().as_bytes())
}

const ACCEPT_TEXT: HeaderValue = HeaderValue::from_static("Accept");
/// The protobuf form of version 2.
const SWAGGER_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Whether there is a document of ours at a path.
pub(crate) fn has_document(kinds: &Kinds, path: &str) -> bool {
    let mut versions = kinds.groups.iter().flat_map(|group| &group.versions);
    versions.any(|one| path_of(one) == path) || openapi::pages().iter().any(|page| page == path)
}

/// What servers of aggregated groups have in the document of version 2.
pub(crate) trait Others: Send + Sync + 'static {
    /// A text that changes when what they have does; empty if they have nothing.
    fn tag(&self) -> String;
    /// Adds what they have.
    fn add(&self, document: &mut Value);
    /// The document that was kept with [`Others::keep`] under this tag.
    fn kept(&self, tag: &str) -> Option<Bytes>;
    /// Keeps a document; the one before may go.
    fn keep(&self, tag: &str, document: Bytes);
}

/// `/openapi/v2`, in JSON or protobuf. Its entity tag is known without making it.
pub(crate) async fn swagger(
    kinds: &Arc<Kinds>,
    others: Arc<dyn Others>,
    asked: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    let vary = HeaderValue::from_static("Accept-Encoding, Accept");
    let Some(protobuf) = form(asked.accept, SWAGGER_PROTOBUF) else {
        return Ok(ApiResponse::empty(StatusCode::NOT_ACCEPTABLE).header(VARY, vary));
    };
    let mut hashes = String::new();
    for path in openapi::pages().iter().filter(|path| openapi::is_discovery(path)) {
        hashes.push_str(&page_hash(path));
    }
    for version in kinds.groups.iter().flat_map(|group| &group.versions) {
        hashes.push_str(&hash(version));
    }
    let more = others.tag();
    hashes.push_str(&more);
    let etag = format!("\"{}\"", digest(hashes.as_bytes()));
    let mut answer = unless_known(&Bytes::new(), &etag, asked);
    if answer.code == StatusCode::OK {
        let answers = kinds.derived.get_or_init(Answers::default);
        let slot = if protobuf { &answers.swagger_protobuf } else { &answers.swagger };
        let tag = format!("{protobuf} {etag}");
        let kept = if more.is_empty() { slot.get().cloned() } else { others.kept(&tag) };
        let bytes = if let Some(bytes) = kept {
            bytes
        } else {
            let kinds = kinds.clone();
            let made = move || {
                if more.is_empty() {
                    make_swagger(&kinds, protobuf)
                } else {
                    make_with_others(&kinds, &*others, &tag, protobuf)
                }
            };
            tokio::task::spawn_blocking(made).await.map_err(Status::internal)?
        };
        answer = ApiResponse::from_gzip(StatusCode::OK, bytes);
        answer.etag = Some(etag);
        if protobuf {
            answer.content_type = SWAGGER_PROTOBUF;
        }
    }
    Ok(answer.header(VARY, vary))
}

fn make_swagger(kinds: &Kinds, protobuf: bool) -> Bytes {
    let answers = kinds.derived.get_or_init(Answers::default);
    let slot = if protobuf { &answers.swagger_protobuf } else { &answers.swagger };
    slot.get_or_init(|| encode(&document_of(kinds), protobuf)).clone()
}

fn make_with_others(kinds: &Kinds, others: &dyn Others, tag: &str, protobuf: bool) -> Bytes {
    let mut document = document_of(kinds);
    others.add(&mut document);
    let bytes = encode(&document, protobuf);
    others.keep(tag, bytes.clone());
    bytes
}

fn document_of(kinds: &Kinds) -> Value {
    let mut found: Vec<&crd::Definition> = Vec::new();
    for custom in kinds.rows().filter_map(|row| row.custom()) {
        if !found.iter().any(|one| one.name == custom.definition.name) {
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

fn definitions(version: &GroupVersion) -> Vec<&crd::Definition> {
    version.rows.iter().filter_map(|row| row.custom()).map(|one| &*one.definition).collect()
}
