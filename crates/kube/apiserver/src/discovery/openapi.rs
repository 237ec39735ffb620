//! `OpenAPI`: an index of documents with their hashes, and a document for each group-version.

use super::{Asked, digest, tagged, unless_known};
use crate::http::answer::{Answer, JSON};
use crate::http::negotiate;
use crate::registry::{GroupVersion, Kinds};
use bytes::Bytes;
use http::StatusCode;
use http::header::{CACHE_CONTROL, EXPIRES, HeaderValue, LOCATION, VARY};
use jiff::Timestamp;
use mainstay_object::{Reason, Status};
use mainstay_schema::{crd, openapi};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// `/openapi/v3`. Hashes are computed without making the documents.
pub(crate) fn index(kinds: &Kinds, asked: Asked<'_>) -> Answer {
    let (bytes, etag) = kinds.answers.openapi_index.get_or_init(|| {
        let paths: Map<String, Value> = kinds
            .groups
            .iter()
            .flat_map(|group| &group.versions)
            .map(|version| {
                let path = path_of(version);
                let url = url(&path, &hash(version));
                (path, json!({"serverRelativeURL": url}))
            })
            .collect();
        tagged(&json!({"paths": paths}))
    });
    let mut answer = unless_known(bytes, etag, asked);
    if answer.code == StatusCode::OK {
        answer.content_type = INDEX_TYPE;
    }
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
    asked: Asked<'_>,
) -> Result<Answer, Status> {
    // Nobody is known to ask for the protobuf form of version 3.
    let Some(protobuf) = form(asked.accept, V3_PROTOBUF).filter(|protobuf| !protobuf) else {
        return Ok(Answer::empty(StatusCode::NOT_ACCEPTABLE).header(VARY, ACCEPT_TEXT));
    };
    let found =
        kinds.groups.iter().flat_map(|group| &group.versions).find(|one| path_of(one) == path);
    let Some(version) = found else { return Ok(Answer::empty(StatusCode::NOT_FOUND)) };
    let hash = hash(version);
    let etag = format!("\"{hash}\"");
    if let Some(asked_for) = asked.hash
        && asked_for != hash
    {
        let mut answer = Answer::empty(StatusCode::MOVED_PERMANENTLY);
        answer.content_type = JSON;
        answer.etag = Some(etag);
        let url = HeaderValue::try_from(url(path, &hash)).map_err(Status::internal)?;
        return Ok(answer.header(LOCATION, url));
    }
    let known = asked.known.is_some_and(|known| known.contains(&etag));
    let bytes = if known { Bytes::new() } else { made(version, protobuf).await? };
    let mut answer = unless_known(&bytes, &etag, asked).unindented();
    if protobuf && !known {
        answer.content_type = V3_PROTOBUF;
    }
    if asked.hash.is_some() {
        let cache = HeaderValue::from_static("public, immutable");
        answer = answer.header(CACHE_CONTROL, cache).header(EXPIRES, in_a_year(asked.now)?);
    }
    Ok(answer)
}

/// The document, from the cache or made now.
async fn made(version: &Arc<GroupVersion>, _protobuf: bool) -> Result<Bytes, Status> {
    if let Some(bytes) = version.document.get() {
        return Ok(bytes.clone());
    }
    let version = version.clone();
    let made = move || version.document.get_or_init(|| make(&version)).clone();
    tokio::task::spawn_blocking(made).await.map_err(Status::internal)
}

/// Whether the first accepted form is protobuf; none if neither form is accepted.
fn form(accept: Option<&str>, protobuf: &str) -> Option<bool> {
    let accept = accept.filter(|accept| !accept.trim().is_empty()).unwrap_or("*/*");
    negotiate::media(accept).into_iter().find_map(|media| match media {
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
    openapi::document(&version.group, &version.version, &definitions(version))
        .unwrap_or_default()
        .to_string()
        .into()
}

/// The protobuf form of version 3.
const V3_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
const ACCEPT_TEXT: HeaderValue = HeaderValue::from_static("Accept");

/// What the original calls its protobuf form of version 2. Clients ask with an `@` before the last
/// dot, which is no valid media type; both are accepted.
const SWAGGER_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const SWAGGER_PROTOBUF_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// `/openapi/v2`: a document without paths. Clients that need types read version 3; kubectl falls
/// back to this one for kinds that version 3 does not have, and finds that it has none either.
pub(crate) fn swagger(accept: Option<&str>, git_version: &str) -> Result<Answer, Status> {
    let accept = accept.unwrap_or_default().trim();
    let media = |clause: &str| match clause.split(';').next().unwrap_or_default().trim() {
        "" | "application/json" | "*/*" | "application/*" => Some(false),
        SWAGGER_PROTOBUF | SWAGGER_PROTOBUF_ASKED => Some(true),
        _ => None,
    };
    let Some(protobuf) = accept.split(',').find_map(media) else {
        return Err(Status::new(
            Reason::NotAcceptable,
            format!(
                "only the following media types are accepted: application/json, {SWAGGER_PROTOBUF}"
            ),
        ));
    };
    if protobuf {
        let bytes = swagger_protobuf(TITLE, git_version).into();
        let mut answer = Answer::bytes(StatusCode::OK, bytes);
        answer.content_type = SWAGGER_PROTOBUF;
        return Ok(answer);
    }
    Ok(Answer::ok(&json!({
        "swagger": "2.0",
        "info": {"title": TITLE, "version": git_version},
        "paths": {},
        "definitions": {},
    })))
}

const TITLE: &str = "Kubernetes";

/// The same as message `openapi.v2.Document`: `swagger` is its field 1, `info` (title 1, version 2)
/// its field 2, `paths` its field 8.
fn swagger_protobuf(title: &str, version: &str) -> Vec<u8> {
    let mut info = Vec::new();
    protobuf_field(&mut info, 1, title.as_bytes());
    protobuf_field(&mut info, 2, version.as_bytes());
    let mut document = Vec::new();
    protobuf_field(&mut document, 1, b"2.0");
    protobuf_field(&mut document, 2, &info);
    protobuf_field(&mut document, 8, b"");
    document
}

/// Writes a length-delimited field: text or a message.
fn protobuf_field(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    const LENGTH_DELIMITED: u8 = 2;
    out.push(number << 3 | LENGTH_DELIMITED);
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length.to_le_bytes()[0] | 0x80);
        length >>= 7;
    }
    out.push(length.to_le_bytes()[0]);
    out.extend_from_slice(bytes);
}

fn path_of(version: &GroupVersion) -> String {
    let api_version = version.api_version();
    if version.group.is_empty() {
        format!("api/{api_version}")
    } else {
        format!("apis/{api_version}")
    }
}

fn hash(version: &GroupVersion) -> String {
    let text = openapi::hash(&version.group, &version.version, &definitions(version));
    // The length of the original's hashes, whatever the schema crate's look like.
    digest(text.as_bytes())
}

fn definitions(version: &GroupVersion) -> Vec<&crd::Definition> {
    version.rows.iter().filter_map(|row| row.custom()).map(|one| &*one.definition).collect()
}
