//! What the servers of remote group-versions said last: of their kinds, and of their documents.

use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is known of a group-version's kinds.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// An `APIVersionDiscovery`; null if nothing was ever found.
    pub(super) version: Value,
    /// Whether the last look failed.
    pub(super) stale: bool,
}

/// What a server says of its documents.
#[derive(Clone, Debug, Default)]
pub(super) struct Documents {
    /// Where documents of version 3 are, by their paths.
    pub(super) index: BTreeMap<String, String>,
    /// Its part of version 2.
    pub(super) part: Option<Part>,
}

/// A server's part of the document of version 2.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) etag: String,
    pub(super) digest: String,
    pub(super) content: Arc<Value>,
}

/// A document of version 2 with what others have.
#[derive(Debug)]
pub(super) struct Swagger {
    pub(super) tag: String,
    pub(super) document: Bytes,
}
