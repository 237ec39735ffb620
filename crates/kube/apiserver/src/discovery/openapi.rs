//! `OpenAPI`: an index of documents with their hashes, and a document for each group-version.

use super::{Asked, digest, tagged, unless_known};
use crate::http::answer::Answer;
use crate::registry::{GroupVersion, Kinds};
use bytes::Bytes;
use mainstay_object::{Reason, Status};
use mainstay_schema::{crd, openapi};
use serde_json::{Map, Value, json};

/// `/openapi/v3`. Hashes are computed without making the documents.
pub(crate) fn index(kinds: &Kinds, asked: Asked<'_>) -> Answer {
    let (bytes, etag) = kinds.answers.openapi_index.get_or_init(|| {
        let paths: Map<String, Value> = kinds
            .groups
            .iter()
            .flat_map(|group| &group.versions)
            .map(|version| {
                let path = path_of(version);
                let url = format!("/openapi/v3/{path}?hash={}", hash(version));
                (path, json!({"serverRelativeURL": url}))
            })
            .collect();
        tagged(&json!({"paths": paths}))
    });
    unless_known(bytes, etag, asked)
}

/// `/openapi/v3/{path}`.
///
/// A document takes tens of milliseconds to make, once: that is done off the async threads.
pub(crate) async fn document(
    kinds: &Kinds,
    path: &str,
    asked: Asked<'_>,
) -> Result<Answer, Status> {
    let version = kinds
        .groups
        .iter()
        .flat_map(|group| &group.versions)
        .find(|version| path_of(version) == path)
        .ok_or_else(Status::no_such_path)?;
    let etag = format!("\"{}\"", hash(version));
    if asked.known.is_some_and(|known| known.contains(&etag)) {
        return Ok(unless_known(&Bytes::new(), &etag, asked));
    }
    let bytes = if let Some(bytes) = version.document.get() {
        bytes.clone()
    } else {
        let version = version.clone();
        let made = move || version.document.get_or_init(|| make(&version)).clone();
        tokio::task::spawn_blocking(made).await.map_err(Status::internal)?
    };
    Ok(unless_known(&bytes, &etag, asked))
}

fn make(version: &GroupVersion) -> Bytes {
    openapi::document(&version.group, &version.version, &definitions(version))
        .unwrap_or_default()
        .to_string()
        .into()
}

/// `/openapi/v2`: only that the server has one. Clients that need types read version 3; kubectl
/// asks for the protobuf form and lives with a refusal.
pub(crate) fn swagger(accept: Option<&str>, git_version: &str) -> Result<Answer, Status> {
    let accept = accept.unwrap_or_default();
    let json = |clause: &str| {
        let media = clause.split(';').next().unwrap_or_default().trim();
        matches!(media, "application/json" | "*/*" | "application/*")
    };
    if !accept.trim().is_empty() && !accept.split(',').any(json) {
        return Err(Status::new(
            Reason::NotAcceptable,
            "only the following media types are accepted: application/json",
        ));
    }
    Ok(Answer::ok(&json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": git_version},
        "paths": {},
        "definitions": {},
    })))
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
