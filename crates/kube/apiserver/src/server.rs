//! The API server as an object: its parts. [`crate::start`] starts and serves it, [`crate::chain`]
//! answers requests.

use crate::Readiness;
use crate::aggregation::Aggregation;
use crate::audit;
use crate::flow::FlowControl;
use crate::handlers::compute::ComputePool;
use crate::handlers::events::last_sweep::LastSweep;
use crate::health::StorageCheck;
use crate::messages::Messages;
use crate::metrics::Metrics;
use crate::version::VersionInfo;
use mainstay_admission::Admission;
use mainstay_auth::authn::Authenticator;
use mainstay_auth::authz::Authorizer;
use mainstay_clock::Clock;
use mainstay_exposition::Page;
use mainstay_kinds::KindRegistry;
use mainstay_kinds::allocator::Allocator;
use mainstay_outbound::Outbound;
use mainstay_store::Store;
use mainstay_streams::InProcessPods;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// The parts that the caller of [`ApiServer::start`] provides.
#[derive(Clone, Debug)]
pub struct ApiServerConfig {
    /// The store of all objects.
    pub store: Store,
    /// The clock.
    pub clock: Clock,
    /// Issues and checks the tokens of ServiceAccounts.
    pub authenticator: Arc<Authenticator>,
    /// The content of `/version`.
    pub version: VersionInfo,
    /// Cancelled to end watches and background work.
    pub stop: CancellationToken,
}

/// A Kubernetes API server.
#[derive(Debug)]
pub struct ApiServer {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) registry: Arc<KindRegistry>,
    pub(crate) readiness: Readiness,
    /// Checks whether changes are saved.
    pub(crate) storage_check: StorageCheck,
    pub(crate) version: VersionInfo,
    pub(crate) stop: CancellationToken,
    /// Serializes changes of CRDs: whether a name is free depends on all of them.
    pub(crate) crd_lock: tokio::sync::Mutex<()>,
    /// Allocates the IP addresses and ports of Services.
    pub(crate) allocator: Arc<Allocator>,
    /// Admission: mutates and refuses writes.
    pub(crate) admission: Admission,
    /// Calls webhooks and other backends.
    pub(crate) outbound: Arc<Outbound>,
    /// In-process pods.
    pub(crate) in_process_pods: InProcessPods,
    /// The time of the last search for expired Events.
    pub(crate) last_sweep: LastSweep,
    /// API priority and fairness.
    pub(crate) flow: FlowControl,
    /// Metrics.
    pub(crate) metrics: Metrics,
    /// The audit log, if there is one.
    pub(crate) audit: OnceLock<audit::AuditLog>,
    /// Runs requests that need much CPU time.
    pub(crate) compute: ComputePool,
    /// Aggregated API groups.
    pub(crate) aggregation: Aggregation,
    /// Cached protobuf messages of objects.
    pub(crate) messages: Arc<Messages>,
    /// The time at which the server started.
    pub(crate) started: jiff::Timestamp,
}

impl ApiServer {
    /// Creates a server that does not serve yet. [`Self::start`] creates the objects that every
    /// cluster has.
    pub(crate) fn new(config: ApiServerConfig) -> Self {
        let ApiServerConfig { store, clock, authenticator, version, stop } = config;
        let registry = Arc::new(KindRegistry::new(mainstay_validation::for_kind));
        let authorizer = Arc::new(Authorizer::new(store.clone()));
        let outbound = Arc::new(Outbound::new(store.clone(), clock));
        let admission = Admission::new(
            store.clone(),
            clock,
            Arc::clone(&registry),
            Arc::clone(&authorizer),
            Arc::clone(&outbound),
        );
        Self {
            admission,
            allocator: Allocator::new(store.clone(), clock),
            authorizer,
            outbound,
            store,
            clock,
            authenticator,
            registry,
            readiness: Readiness::default(),
            storage_check: StorageCheck::default(),
            version,
            stop,
            crd_lock: tokio::sync::Mutex::default(),
            in_process_pods: InProcessPods::default(),
            last_sweep: LastSweep::default(),
            flow: FlowControl::default(),
            messages: Arc::default(),
            metrics: Metrics::default(),
            audit: OnceLock::new(),
            compute: ComputePool::default(),
            aggregation: Aggregation::default(),
            started: clock.now(),
        }
    }

    /// The gates of `/readyz`.
    pub const fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// The kinds that are served.
    pub fn registry(&self) -> &KindRegistry {
        &self.registry
    }

    /// The store of all objects.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// The clock.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Issues and checks the tokens of ServiceAccounts.
    pub fn authenticator(&self) -> &Authenticator {
        &self.authenticator
    }

    /// Cancelled when the server ends.
    pub const fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Decides which identity may do what.
    pub fn authorizer(&self) -> &Authorizer {
        &self.authorizer
    }

    /// Lets a component beside the server write its metrics to `/metrics`. Only the first call has
    /// an effect.
    pub fn add_metrics(&self, write: impl Fn(&mut Page) + Send + Sync + 'static) {
        self.metrics.external.set(write);
    }

    /// Writes each further request to an audit log. Only the first call has an effect.
    pub fn set_audit_log(&self, log: audit::AuditLog) {
        // A second call is a mistake of the program; the first log stays.
        let _ = self.audit.set(log);
    }
}
