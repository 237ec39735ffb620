//! Documents (`OpenAPI`) of remote groups: what their servers have in the index of version 3, whose
//! documents are asked of them when they are asked of us, and their part of the document of version 2.
//!
//! Each server is asked by a task of its own, a minute after it was asked last, and what it said
//! stays until it says something else.

use super::Aggregation;
use super::error::SendError;
use super::found::{Part, Swagger};
use super::proxy::{forwarded, unavailable};
use super::remote::{Remote, STORAGE};
use super::wire::{self, Whole};
use crate::discovery::answers::digest;
use crate::discovery::openapi::{Others, has_document};
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

/// How often a server is asked.
const AGAIN: Duration = Duration::from_mins(1);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of an index, at most.
const INDEX: usize = 1024 * 1024;
/// Bytes of a document of version 2, at most.
const DOCUMENT: usize = 16 * 1024 * 1024;
/// Where documents of version 3 are.
const V3: &str = "/openapi/v3/";

/// Asks a server for its documents for as long as its `APIService` is there.
pub(super) async fn keep(server: Weak<ApiServer>, name: Arc<str>, bell: Arc<Notify>) {
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
            () = bell.notified() => {}
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}

async fn refresh(server: &ApiServer, remote: &Remote) {
    let known = server.aggregation.documents.lock().get(&remote.name).cloned().unwrap_or_default();
    let mut now = known.clone();
    let root = V3.trim_end_matches('/');
    if let Ok(answer) = ask(server, remote, root, "", INDEX).await {
        match answer.code {
            200 => now.index = index_of(remote, &answer.body),
            404 => now.index.clear(),
            _ => {}
        }
    }
    let etag = known.part.as_ref().map_or("", |part| part.etag.as_str());
    if let Ok(answer) = ask(server, remote, "/openapi/v2", etag, DOCUMENT).await {
        match answer.code {
            200 => {
                let prefix = format!("{}/", remote.path());
                // It may be long.
                let read = tokio::task::spawn_blocking(move || part_of(&prefix, &answer));
                if let Ok(Some(part)) = read.await {
                    now.part = Some(part);
                }
            }
            404 => now.part = None,
            _ => {}
        }
    }
    let current = server.aggregation.current.load();
    // It may have gone meanwhile.
    if current.remotes.iter().any(|one| one.name == remote.name) {
        server.aggregation.documents.lock().insert(remote.name.clone(), now);
    }
}

async fn ask(
    server: &ApiServer,
    remote: &Remote,
    path: &str,
    etag: &str,
    limit: usize,
) -> Result<Whole, SendError> {
    let identity = Identity::new("system:aggregator", []);
    let mut request = Request::get(path).header(ACCEPT, "application/json");
    if !etag.is_empty() {
        request = request.header(IF_NONE_MATCH, etag);
    }
    let request = request.body(Bytes::new())?;
    let asked = async { wire::send(server, remote, &identity, request).await?.whole(limit).await };
    tokio::time::timeout(PATIENCE, asked).await.unwrap_or(Err(SendError::Timeout))
}

/// What an index says of the documents that are about the group-version.
fn index_of(remote: &Remote, bytes: &[u8]) -> BTreeMap<String, String> {
    let index: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let paths = index["paths"].as_object();
    let own = remote.path();
    let own = own.trim_start_matches('/');
    let group = format!("apis/{}", remote.group);
    let of_ours = paths.into_iter().flatten().filter(|(path, _)| *path == own || **path == group);
    let with_url = of_ours.filter_map(|(path, value)| {
        let url = value.get("serverRelativeURL")?.as_str()?;
        url.starts_with(V3).then(|| (path.clone(), url.to_owned()))
    });
    with_url.collect()
}

fn part_of(prefix: &str, answer: &Whole) -> Option<Part> {
    let whole: Value = serde_json::from_slice(&answer.body).ok()?;
    let digest = digest(&answer.body);
    let content = Arc::new(merge::part(whole, prefix));
    Some(Part { etag: answer.etag.clone(), digest, content })
}

/// Where documents of version 3 of remote groups are, by their paths.
pub(crate) fn index(aggregation: &Aggregation) -> BTreeMap<String, String> {
    if aggregation.is_empty() {
        return BTreeMap::new();
    }
    let all = aggregation.documents.lock();
    all.values().rev().flat_map(|documents| documents.index.clone()).collect()
}

/// A document of version 3 of a remote group, asked of its server in the client's name; none if none
/// has it, or this server does. `path` is that of the request.
pub(crate) async fn document(
    server: &ApiServer,
    identity: &Identity,
    parts: &Parts,
    path: &str,
) -> Option<Response<Body>> {
    let path = path.strip_prefix(V3)?;
    if parts.method != Method::GET || has_document(&server.registry.kinds(), path) {
        return None;
    }
    let services = server.aggregation.current.load_full();
    let has = |remote: &Remote| {
        let all = server.aggregation.documents.lock();
        all.get(&remote.name).is_some_and(|documents| documents.index.contains_key(path))
    };
    let remote = services.remotes.iter().find(|remote| has(remote))?;
    if !remote.available {
        return Some(unavailable("service unavailable"));
    }
    let answered = forwarded(server, remote, identity, parts, Bytes::new()).await;
    Some(
        answered
            .unwrap_or_else(|why| unavailable(&format!("error trying to reach service: {why}"))),
    )
}

/// What remote groups have in the document of version 2.
#[derive(Debug)]
pub(crate) struct Remotes(pub(crate) Arc<ApiServer>);

impl Remotes {
    /// In the order of the priorities of their groups.
    fn parts(&self) -> Vec<Part> {
        let aggregation = &self.0.aggregation;
        let services = aggregation.current.load();
        let all = aggregation.documents.lock();
        let documents = services.remotes.iter().filter_map(|remote| all.get(&remote.name));
        documents.filter_map(|documents| documents.part.clone()).collect()
    }
}

impl Others for Remotes {
    fn tag(&self) -> String {
        self.parts().into_iter().map(|part| part.digest).collect()
    }

    fn add(&self, document: &mut Value) {
        for part in self.parts() {
            merge::add(document, (*part.content).clone());
        }
    }

    fn kept(&self, tag: &str) -> Option<Bytes> {
        let kept = self.0.aggregation.swagger.lock();
        kept.iter().find(|kept| kept.tag == tag).map(|kept| kept.document.clone())
    }

    fn keep(&self, tag: &str, document: Bytes) {
        let swagger = Swagger { tag: tag.to_owned(), document };
        let mut kept = self.0.aggregation.swagger.lock();
        kept.insert(0, swagger);
        // One in each form.
        kept.truncate(2);
    }
}
