//! Last observed state of remote group-versions: their discovery and their OpenAPI documents.

use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The discovery of a group-version.
#[derive(Clone, Debug)]
pub(super) struct ObservedDiscovery {
    /// An `APIVersionDiscovery`; null if no check succeeded yet.
    pub(super) version: Value,
    /// Whether the last check failed.
    pub(super) stale: bool,
}

/// The OpenAPI documents of a server.
#[derive(Clone, Debug, Default)]
pub(super) struct ObservedDocuments {
    /// The URLs of version 3 documents, by path.
    pub(super) index: BTreeMap<String, String>,
    /// Its part of the version 2 document.
    pub(super) part: Option<SwaggerPart>,
}

/// A server's part of the version 2 document.
#[derive(Clone, Debug)]
pub(super) struct SwaggerPart {
    pub(super) etag: String,
    pub(super) digest: String,
    pub(super) content: Arc<Value>,
}

/// A cached version 2 document that contains the parts of aggregated servers.
#[derive(Debug)]
pub(super) struct CachedSwagger {
    pub(super) tag: String,
    pub(super) document: Bytes,
}
