//! Context of admission: the parts of the server that it uses, and the state of its plugins.

use crate::metrics::AdmissionMetrics;
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

/// Loopback client of the server: its requests pass the handler chain without a connection.
pub trait Loopback: Send + Sync {
    /// Sends a request as an identity.
    fn send(&self, identity: Identity, request: Request<Bytes>) -> BoxFuture<'_, Response<Body>>;
}

/// Admission control of one server.
pub struct Admission {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) registry: Arc<KindRegistry>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) outbound: Arc<Outbound>,
    /// Metrics of plugins and webhooks.
    pub(crate) metrics: AdmissionMetrics,
    /// The webhooks in force.
    pub(crate) webhooks: Webhooks,
    /// The policies in force.
    pub(crate) policies: Policies,
    /// Serializes charges to quotas, so that two writes never use the same remainder.
    pub(crate) quotas: tokio::sync::Mutex<()>,
}

impl Admission {
    /// Creates the admission control of a store.
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
            metrics: AdmissionMetrics::default(),
            webhooks: Webhooks::default(),
            policies: Policies::default(),
            quotas: tokio::sync::Mutex::default(),
        }
    }

    /// Metrics of plugins and webhooks.
    pub const fn metrics(&self) -> &AdmissionMetrics {
        &self.metrics
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "admission to {:?}", self.store)
    }
}
