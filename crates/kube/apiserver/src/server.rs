//! The server: what it is made of. How it answers is in [`crate::chain`].

use crate::aggregation::{self, Aggregation};
use crate::flow::{self, Flow};
use crate::handlers;
use crate::handlers::compute::ComputePool;
use crate::messages::Messages;
use crate::metrics::Metrics;
use crate::service::{ApiService, PortService};
use crate::version::VersionInfo;
use crate::{Readiness, audit, serve};
use mainstay_admission::Admission;
use mainstay_auth::Identity;
use mainstay_auth::authn::Authenticator;
use mainstay_auth::authz::Authorizer;
use mainstay_clock::Clock;
use mainstay_exposition::Page;
use mainstay_kinds::Registry;
use mainstay_kinds::allocator::Allocator;
use mainstay_object::Status;
use mainstay_outbound::Outbound;
use mainstay_store::Store;
use mainstay_streams::NativePods;
use std::sync::{Arc, OnceLock};
use tokio::net::TcpListener;
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

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A namespace that every cluster has could not be made.
    #[error("creating the namespace {name}: {status}")]
    CreateNamespace {
        /// Name of the namespace.
        name: String,
        /// The refusal.
        status: Status,
    },
    /// A flow schema or priority level that every cluster has could not be made.
    #[error("creating flow schemas and priority levels: {0}")]
    Flow(Status),
    /// The range of addresses of Services could not be made.
    #[error("creating the ServiceCIDR kubernetes: {0}")]
    ServiceRange(Status),
    /// An `APIService` of a group that is built in could not be made.
    #[error("creating APIServices: {0}")]
    Groups(Status),
    /// A role or binding that every cluster has could not be made.
    #[error("creating the {kind} {name}: {status}")]
    CreateRole {
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        name: String,
        /// The refusal.
        status: Status,
    },
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
    pub(crate) storage_check: handlers::health::StorageCheck,
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
    pub(crate) native_pods: NativePods,
    /// When old events were last looked for.
    pub(crate) last_sweep: handlers::events::LastSweep,
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
    /// Starts a server on a store: serves the kinds of the definitions that the store has, finishes
    /// deletions of definitions that were under way, and makes the namespaces, roles and bindings that
    /// every cluster has.
    pub async fn start(config: Config) -> Result<Arc<Self>, StartError> {
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
        let server = Arc::new(Self {
            admission,
            allocator: Allocator::new(store.clone(), clock),
            authorizer,
            outbound,
            store,
            clock,
            authenticator,
            registry,
            readiness: Readiness::default(),
            storage_check: handlers::health::StorageCheck::default(),
            version,
            stop,
            definitions: tokio::sync::Mutex::default(),
            native_pods: NativePods::default(),
            last_sweep: handlers::events::LastSweep::default(),
            flow: Flow::default(),
            messages: Arc::default(),
            metrics: Metrics::default(),
            audit: OnceLock::new(),
            compute: ComputePool::default(),
            aggregation: Aggregation::default(),
            started: clock.now(),
        });
        handlers::definitions::restore(&server);
        handlers::bootstrap::namespaces(&server).await?;
        handlers::bootstrap::service_range(&server).await.map_err(StartError::ServiceRange)?;
        handlers::roles::settle(&server).await?;
        flow::start(&server).await.map_err(StartError::Flow)?;
        crate::policy_status::keep(&server);
        aggregation::seed(&server).await.map_err(StartError::Groups)?;
        aggregation::start(&server).map_err(StartError::Groups)?;
        Ok(server)
    }

    /// The service as one identity uses it.
    pub fn service(self: &Arc<Self>, identity: Identity) -> ApiService {
        ApiService::new(self.clone(), identity)
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

    /// The service as whoever connects uses it.
    pub fn port_service(self: &Arc<Self>) -> PortService {
        PortService::new(self.clone())
    }

    /// Serves a TLS port until `shutdown` is cancelled and its connections have ended, and keeps the
    /// Service `default/kubernetes` that names it. Watches of in-process clients go on until the
    /// server's own end.
    pub async fn serve(
        self: &Arc<Self>,
        listener: TcpListener,
        tls: Arc<rustls::ServerConfig>,
        shutdown: CancellationToken,
    ) {
        let service = self.port_service();
        let address = match listener.local_addr() {
            Ok(address) => Some(address),
            Err(error) => {
                tracing::warn!(%error, "the port has no address");
                None
            }
        };
        let keeping = async {
            if let Some(address) = address {
                handlers::bootstrap::keep_service(self, address).await;
            }
            std::future::pending::<()>().await;
        };
        if let Some(address) = address {
            handlers::bootstrap::service(self, address).await;
        }
        let port = serve::serve(listener, tls, serve::Limits::default(), shutdown, service);
        tokio::select! {
            () = port => {}
            () = keeping => {}
        }
    }
}
