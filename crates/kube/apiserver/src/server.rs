//! The server: what it is made of. How it starts and serves is in [`crate::start`], how it answers in
//! [`crate::chain`].

use crate::Readiness;
use crate::aggregation::Aggregation;
use crate::audit;
use crate::flow::Flow;
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
use mainstay_kinds::Registry;
use mainstay_kinds::allocator::Allocator;
use mainstay_outbound::Outbound;
use mainstay_store::Store;
use mainstay_streams::InProcessPods;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// What a server is made of.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where objects live.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// Issues and reads the tokens of service accounts.
    pub authenticator: Arc<Authenticator>,
    /// What `/version` says.
    pub version: VersionInfo,
    /// Ends watches and background work.
    pub stop: CancellationToken,
}

/// A Kubernetes API server.
#[derive(Debug)]
pub struct ApiServer {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) readiness: Readiness,
    /// Asks whether changes are saved.
    pub(crate) storage_check: StorageCheck,
    pub(crate) version: VersionInfo,
    pub(crate) stop: CancellationToken,
    /// Definitions change one at a time: whether names are free depends on all of them.
    pub(crate) definitions: tokio::sync::Mutex<()>,
    /// Which addresses and ports Services have.
    pub(crate) allocator: Arc<Allocator>,
    /// Changes and refuses writes.
    pub(crate) admission: Admission,
    /// Calls webhooks and other backends.
    pub(crate) outbound: Arc<Outbound>,
    /// Pods that something in this process stands for.
    pub(crate) in_process_pods: InProcessPods,
    /// When old events were last looked for.
    pub(crate) last_sweep: LastSweep,
    /// Which requests wait for which others.
    pub(crate) flow: Flow,
    /// What is counted.
    pub(crate) metrics: Metrics,
    /// Where requests are written down.
    pub(crate) audit: OnceLock<audit::Log>,
    /// Where requests run whose work takes long.
    pub(crate) compute: ComputePool,
    /// Groups that others serve.
    pub(crate) aggregation: Aggregation,
    /// Objects as clients written in Go read them.
    pub(crate) messages: Arc<Messages>,
    /// When the server started.
    pub(crate) started: jiff::Timestamp,
}

impl ApiServer {
    /// A server that does not serve yet: [`Self::start`] makes what every cluster has.
    pub(crate) fn new(config: Config) -> Self {
        let Config { store, clock, authenticator, version, stop } = config;
        let registry = Arc::new(Registry::new(mainstay_validation::for_kind));
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
            definitions: tokio::sync::Mutex::default(),
            in_process_pods: InProcessPods::default(),
            last_sweep: LastSweep::default(),
            flow: Flow::default(),
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
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Where objects live.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// The time.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Issues and reads the tokens of service accounts.
    pub fn authenticator(&self) -> &Authenticator {
        &self.authenticator
    }

    /// Cancelled when the server is to end.
    pub const fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Decides who may do what.
    pub fn authorizer(&self) -> &Authorizer {
        &self.authorizer
    }

    /// Has what runs beside the server write its counts onto the page of `/metrics`. Only the first
    /// one that is given counts.
    pub fn also_measures(&self, write: impl Fn(&mut Page) + Send + Sync + 'static) {
        self.metrics.others.set(write);
    }

    /// Writes every request from now on down in a log. Only the first one that is given counts.
    pub fn write_down(&self, log: audit::Log) {
        // A second one was a mistake of the program; the first goes on.
        let _ = self.audit.set(log);
    }
}
