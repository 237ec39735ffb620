//! Parts of the server that admission uses, and the state that its plugins keep.

use crate::metrics::Metrics;
use crate::policies::Policies;
use crate::webhooks::Webhooks;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use mainstay_auth::Identity;
use mainstay_auth::authz::Authorizer;
use mainstay_clock::Clock;
use mainstay_http::Body;
use mainstay_kinds::KindRegistry;
use mainstay_outbound::Outbound;
use mainstay_store::Store;
use std::fmt;
use std::sync::Arc;

/// Client of the server itself: requests that pass all of its rules, without a connection.
pub trait Loopback: Send + Sync {
    /// Sends a request of an identity.
    fn send(&self, identity: Identity, request: Request<Bytes>) -> BoxFuture<'_, Response<Body>>;
}

/// Admission of one server.
pub struct Admission {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) registry: Arc<KindRegistry>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) outbound: Arc<Outbound>,
    /// Counts of plugins and webhooks.
    pub(crate) metrics: Metrics,
    /// The webhooks in force.
    pub(crate) webhooks: Webhooks,
    /// The policies that writes are held against.
    pub(crate) policies: Policies,
    /// Writes are charged to quotas one at a time, so that two never take the same room.
    pub(crate) quotas: tokio::sync::Mutex<()>,
}

impl Admission {
    /// Admission of writes to a store.
    pub fn new(
        store: Store,
        clock: Clock,
        registry: Arc<KindRegistry>,
        authorizer: Arc<Authorizer>,
        outbound: Arc<Outbound>,
    ) -> Self {
        Self {
            store,
            clock,
            registry,
            authorizer,
            outbound,
            metrics: Metrics::default(),
            webhooks: Webhooks::default(),
            policies: Policies::default(),
            quotas: tokio::sync::Mutex::default(),
        }
    }

    /// Counts of plugins and webhooks.
    pub const fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "admission to {:?}", self.store)
    }
}
