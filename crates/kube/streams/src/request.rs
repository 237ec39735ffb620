//! Request for a stream, and the parts of the server that answering it needs.

use crate::NativePods;
use bytes::Bytes;
use http::{HeaderMap, Uri};
use hyper::upgrade::OnUpgrade;
use mainstay_clock::Clock;
use mainstay_http::path::ResourcePath;
use mainstay_http::query::Query;
use mainstay_kinds::KindRow;
use mainstay_object::Status;
use mainstay_outbound::Outbound;
use mainstay_store::{Key, Store};
use tokio_util::sync::CancellationToken;

/// A request for a log, a stream or a proxy, which permission and admission have passed.
#[derive(Clone, Copy, Debug)]
pub struct StreamRequest<'a> {
    /// Where pods, Services and endpoints are.
    pub store: &'a Store,
    /// The time.
    pub clock: Clock,
    /// Calls to Services.
    pub outbound: &'a Outbound,
    /// The pods with handlers.
    pub native_pods: &'a NativePods,
    /// Cancelled when the server ends, and all streams with it.
    pub stop: &'a CancellationToken,
    /// The kind of the path: pods, Services or nodes.
    pub row: &'a KindRow,
    /// The path.
    pub path: &'a ResourcePath,
    /// The query.
    pub query: &'a Query,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The URI as sent.
    pub uri: &'a Uri,
    /// The body.
    pub body: &'a Bytes,
    /// The connection, if it may speak another protocol.
    pub on_upgrade: Option<&'a OnUpgrade>,
}

impl StreamRequest<'_> {
    /// Where the object of the path is stored.
    pub(crate) fn key(&self) -> Key {
        Key::new(&*self.row.storage, &*self.path.namespace, &*self.path.name)
    }

    /// 404 of the object of the path.
    pub(crate) fn not_found(&self) -> Status {
        Status::not_found(&self.row.group, &self.row.plural, &self.path.name)
    }
}
