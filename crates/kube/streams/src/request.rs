//! Stream requests: a request for a stream, and the parts of the server that its handler needs.

use crate::InProcessPods;
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

/// A request for a log, a stream or a proxy, after authorization and admission.
#[derive(Clone, Copy, Debug)]
pub struct StreamRequest<'a> {
    /// The store of pods, Services and endpoints.
    pub store: &'a Store,
    /// The clock.
    pub clock: Clock,
    /// Calls to Services.
    pub outbound: &'a Outbound,
    /// The in-process pods.
    pub in_process_pods: &'a InProcessPods,
    /// The token that is cancelled when the server stops, and with it all streams.
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
    /// The connection, if it can be upgraded to another protocol.
    pub on_upgrade: Option<&'a OnUpgrade>,
}

impl StreamRequest<'_> {
    /// The key of the object in the path.
    pub(crate) fn key(&self) -> Key {
        Key::new(&*self.row.storage, &*self.path.namespace, &*self.path.name)
    }

    /// Status 404 for the object in the path.
    pub(crate) fn not_found(&self) -> Status {
        Status::not_found(&self.row.group, &self.row.plural, &self.path.name)
    }
}
