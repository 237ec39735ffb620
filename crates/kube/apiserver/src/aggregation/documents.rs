//! OpenAPI documents of remote groups.
//!
//! The documents of version 3 are fetched from their server for each request; only its index is
//! cached. The server's part of the version 2 document is cached. A task for each server refreshes
//! both every minute; the last success stays valid until the next one.

use super::Aggregation;
use super::error::SendError;
use super::observed::{CachedSwagger, SwaggerPart};
use super::proxy::{forward, unavailable};
use super::remote::{Remote, STORAGE};
use super::transport::{self, BufferedResponse};
use crate::discovery::cache::digest;
use crate::discovery::openapi::{AggregatedDocuments, has_document};
use crate::server::ApiServer;
use bytes::Bytes;
use http::header::{ACCEPT, IF_NONE_MATCH};
use http::request::Parts;
use http::{Method, Request, Response};
use mainstay_auth::Identity;
use mainstay_http::Body;
use mainstay_schema::openapi::merge;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// Interval of refreshes.
const REFRESH_INTERVAL: Duration = Duration::from_mins(1);
/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum bytes of an index.
const MAX_INDEX_SIZE: usize = 1024 * 1024;
/// Maximum bytes of a version 2 document.
const MAX_DOCUMENT_SIZE: usize = 16 * 1024 * 1024;
/// Path prefix of version 3 documents.
const V3_PREFIX: &str = "/openapi/v3/";

/// Refreshes the documents of a server until its `APIService` is deleted.
pub(super) async fn refresh_periodically(
    server: Weak<ApiServer>,
    name: Arc<str>,
    trigger: Arc<Notify>,
) {
    loop {
        {
            let Some(server) = server.upgrade() else { return };
            let Some(stored) = server.store.find(STORAGE, "", &name) else { return };
            let Some(remote) = Remote::read(&stored.object()) else { return };
            if remote.available && !remote.group.is_empty() {
                refresh(&server, &remote).await;
            }
        }
        tokio::select! {
            () = trigger.notified() => {}
            () = tokio::time::sleep(REFRESH_INTERVAL) => {}
        }
    }
}

async fn refresh(server: &ApiServer, remote: &Remote) {
    let previous =
        server.aggregation.documents.lock().get(&remote.name).cloned().unwrap_or_default();
    let mut updated = previous.clone();
    let root = V3_PREFIX.trim_end_matches('/');
    if let Ok(response) = fetch(server, remote, root, "", MAX_INDEX_SIZE).await {
        match response.code {
            200 => updated.index = index_of(remote, &response.body),
            404 => updated.index.clear(),
            _ => {}
        }
    }
    let etag = previous.part.as_ref().map_or("", |part| part.etag.as_str());
    if let Ok(response) = fetch(server, remote, "/openapi/v2", etag, MAX_DOCUMENT_SIZE).await {
        match response.code {
            200 => {
                let prefix = format!("{}/", remote.path());
                // Parsing a long document takes time.
                let parsed = tokio::task::spawn_blocking(move || part_of(&prefix, &response));
                if let Ok(Some(part)) = parsed.await {
                    updated.part = Some(part);
                }
            }
            404 => updated.part = None,
            _ => {}
        }
    }
    let current = server.aggregation.current.load();
    // The `APIService` may be deleted meanwhile.
    if current.remotes.iter().any(|candidate| candidate.name == remote.name) {
        server.aggregation.documents.lock().insert(remote.name.clone(), updated);
    }
}

async fn fetch(
    server: &ApiServer,
    remote: &Remote,
    path: &str,
    etag: &str,
    limit: usize,
) -> Result<BufferedResponse, SendError> {
    let identity = Identity::new("system:aggregator", []);
    let mut request = Request::get(path).header(ACCEPT, "application/json");
    if !etag.is_empty() {
        request = request.header(IF_NONE_MATCH, etag);
    }
    let request = request.body(Bytes::new())?;
    let exchange =
        async { transport::send(server, remote, &identity, request).await?.buffer(limit).await };
    tokio::time::timeout(TIMEOUT, exchange).await.unwrap_or(Err(SendError::Timeout))
}

/// The entries of an index that belong to the group-version.
fn index_of(remote: &Remote, bytes: &[u8]) -> BTreeMap<String, String> {
    let index: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let paths = index["paths"].as_object();
    let own = remote.path();
    let own = own.trim_start_matches('/');
    let group = format!("apis/{}", remote.group);
    let own_entries =
        paths.into_iter().flatten().filter(|(path, _)| *path == own || **path == group);
    let urls = own_entries.filter_map(|(path, value)| {
        let url = value.get("serverRelativeURL")?.as_str()?;
        url.starts_with(V3_PREFIX).then(|| (path.clone(), url.to_owned()))
    });
    urls.collect()
}

fn part_of(prefix: &str, response: &BufferedResponse) -> Option<SwaggerPart> {
    let buffer: Value = serde_json::from_slice(&response.body).ok()?;
    let digest = digest(&response.body);
    let content = Arc::new(merge::part(buffer, prefix));
    Some(SwaggerPart { etag: response.etag.clone(), digest, content })
}

/// The URLs of version 3 documents of remote groups, by path.
pub(crate) fn index(aggregation: &Aggregation) -> BTreeMap<String, String> {
    if aggregation.is_empty() {
        return BTreeMap::new();
    }
    let all = aggregation.documents.lock();
    all.values().rev().flat_map(|documents| documents.index.clone()).collect()
}

/// Fetches a version 3 document of a remote group as the client; none if no server has it, or this
/// server does. `path` is that of the request.
pub(crate) async fn document(
    server: &ApiServer,
    identity: &Identity,
    parts: &Parts,
    path: &str,
) -> Option<Response<Body>> {
    let path = path.strip_prefix(V3_PREFIX)?;
    if parts.method != Method::GET || has_document(&server.registry.kinds(), path) {
        return None;
    }
    let services = server.aggregation.current.load_full();
    let has_document_at = |remote: &Remote| {
        let all = server.aggregation.documents.lock();
        all.get(&remote.name).is_some_and(|documents| documents.index.contains_key(path))
    };
    let remote = services.remotes.iter().find(|remote| has_document_at(remote))?;
    if !remote.available {
        return Some(unavailable("service unavailable"));
    }
    let response = forward(server, remote, identity, parts, Bytes::new()).await;
    Some(
        response
            .unwrap_or_else(|why| unavailable(&format!("error trying to reach service: {why}"))),
    )
}

/// The parts of remote groups in the version 2 document.
#[derive(Debug)]
pub(crate) struct Remotes(pub(crate) Arc<ApiServer>);

impl Remotes {
    /// The parts, in the order of the priorities of their groups.
    fn parts(&self) -> Vec<SwaggerPart> {
        let aggregation = &self.0.aggregation;
        let services = aggregation.current.load();
        let all = aggregation.documents.lock();
        let documents = services.remotes.iter().filter_map(|remote| all.get(&remote.name));
        documents.filter_map(|documents| documents.part.clone()).collect()
    }
}

impl AggregatedDocuments for Remotes {
    fn tag(&self) -> String {
        self.parts().into_iter().map(|part| part.digest).collect()
    }

    fn merge_into(&self, document: &mut Value) {
        for part in self.parts() {
            merge::add(document, (*part.content).clone());
        }
    }

    fn cached(&self, tag: &str) -> Option<Bytes> {
        let cached = self.0.aggregation.swagger.lock();
        cached.iter().find(|entry| entry.tag == tag).map(|entry| entry.document.clone())
    }

    fn store(&self, tag: &str, document: Bytes) {
        let swagger = CachedSwagger { tag: tag.to_owned(), document };
        let mut cached = self.0.aggregation.swagger.lock();
        cached.insert(0, swagger);
        // One for each form: JSON and protobuf.
        cached.truncate(2);
    }
}
