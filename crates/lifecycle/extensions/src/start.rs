//! Startup: builds the shared context and registers all controllers.

use crate::cluster_catalog::{Contents, LoadCounters, write_metrics};
use crate::cluster_extension::{
    ApprovedAccounts, DeploymentState, EstablishedCrds, ManagedObjects, ReleaseHead, Turns,
};
use crate::context::Context;
use crate::features::{Features, TrustMode};
use crate::info::subsystem;
use crate::object_set::{ObjectWatches, object_set_cache};
use crate::resources::Resources;
use futures::future::BoxFuture;
use mainstay_api::{ClusterCatalog, ClusterExtension, resources};
use mainstay_client::{Cache, CacheSet, Cluster, Recorder, Selection};
use mainstay_clock::Clock;
use mainstay_controller::{
    ControllerMonitor, Controllers, Monitor, RunningControllers, Subsystem, SubsystemInfo,
};
use mainstay_exposition::Page;
use mainstay_images::{ImageSources, Puller, Requester};
use mainstay_registry::{ServedCatalog, ServedCatalogs};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The component that reports Events.
const COMPONENT: &str = "catalogd";
/// The user agent of the client.
const USER_AGENT: &str = "catalogd";
/// The ServiceAccount whose `imagePullSecrets` apply.
const SERVICE_ACCOUNT: &str = "catalogd-controller-manager";

/// The options of the subsystem.
#[derive(Clone)]
pub struct Options {
    /// The clock for timestamps on objects and for polls.
    pub clock: Clock,
    /// The namespace with the pull secrets of catalogs: `olmv1-system` upstream.
    pub system_namespace: String,
    /// The namespace with the releases of extensions and the Secrets of ClusterObjectSets: `olmv1-system`
    /// upstream, `openshift-operator-controller` on OpenShift.
    pub release_namespace: String,
    /// The names of pull secrets in that namespace; `pull-secret` upstream. Secrets that do not exist
    /// are left out.
    pub pull_secrets: Vec<String>,
    /// The host, and the port if it is not 443, under which clients reach the HTTP API:
    /// `status.urls.base` is `https://ADDRESS/catalogs/NAME`.
    pub external_address: String,
    /// The images of catalogs and bundles.
    pub images: ImageSources,
    /// The folder with the stored content of catalogs. It is only a cache: what is missing there is
    /// pulled again.
    pub content: PathBuf,
    /// Catalog folders by name, with their content: a ClusterCatalog with the reference
    /// [`crate::folder_reference`] serves it.
    pub folders: BTreeMap<String, Arc<ServedCatalog>>,
    /// The catalogs that the HTTP API serves.
    pub served: Arc<ServedCatalogs>,
    /// The pause after the first failed attempt, which doubles up to the second value.
    pub retry: (Duration, Duration),
    /// The features that the administrator chose.
    pub features: Features,
    /// Whether ClusterExtensions are reconciled; otherwise only ClusterCatalogs are.
    pub extensions: bool,
}

impl Options {
    /// The options with the names of upstream, without catalog folders. The catalogs are served by nobody
    /// until a server gets [`Options::served`].
    pub fn new(clock: Clock, images: ImageSources, content: PathBuf) -> Self {
        Self {
            clock,
            system_namespace: "olmv1-system".to_owned(),
            release_namespace: "olmv1-system".to_owned(),
            pull_secrets: vec!["pull-secret".to_owned()],
            external_address: "catalogd-service.olmv1-system.svc".to_owned(),
            images,
            content,
            folders: BTreeMap::new(),
            served: Arc::default(),
            retry: (Duration::from_millis(500), Duration::from_mins(2)),
            features: Features::default(),
            extensions: true,
        }
    }
}

/// What a process does.
#[derive(Clone, Copy)]
enum Role {
    /// It reconciles, and serves.
    Leader,
    /// It serves what the leader resolved.
    Replica,
}

/// The running subsystem. Dropping this does not stop it; [`Extensions::shutdown`] does.
pub struct Extensions {
    context: Arc<Context>,
    controllers: RunningControllers,
    stop: CancellationToken,
}

impl Extensions {
    /// Starts every controller. Call it inside a tokio runtime. The CustomResourceDefinitions
    /// should be established, as the caches do not sync before.
    pub fn start(cluster: &Cluster, options: Options) -> Self {
        Self::start_as(Role::Leader, cluster, options)
    }

    /// Starts a replica: it serves the catalogs that the controllers of another process resolved, and
    /// writes nothing to the cluster. Call it inside a tokio runtime.
    pub fn start_replica(cluster: &Cluster, options: Options) -> Self {
        Self::start_as(Role::Replica, cluster, options)
    }

    fn start_as(role: Role, cluster: &Cluster, options: Options) -> Self {
        let stop = CancellationToken::new();
        let Options {
            clock,
            system_namespace,
            release_namespace,
            pull_secrets,
            external_address,
            images,
            content,
            folders,
            served,
            retry,
            features,
            extensions: has_extensions,
        } = options;
        let client = cluster.clone().with_user_agent(USER_AGENT);
        let mut caches = CacheSet::new(cluster.clone(), stop.clone());
        let catalogs = caches
            .start(Cache::builder(Selection::all(resources::CLUSTER_CATALOG), |object| {
                ClusterCatalog::from_object(object).ok()
            }));
        let extensions = caches
            .start(Cache::builder(Selection::all(resources::CLUSTER_EXTENSION), |object| {
                ClusterExtension::from_object(object).ok()
            }));
        let releases = caches.start(ReleaseHead::cache(&release_namespace));
        let deployments = caches.start(DeploymentState::cache());
        let uses_object_sets = features.object_sets && has_extensions;
        let object_sets = uses_object_sets.then(|| caches.start(object_set_cache()));
        let keeps_accounts = features.trust == TrustMode::Approved && has_extensions;
        let approved_accounts = keeps_accounts.then(|| ApprovedAccounts::start(&mut caches));
        let context = Arc::new(Context {
            puller: Puller::new(images, client.clone()),
            cluster: client,
            clock,
            recorder: Recorder::start(cluster, COMPONENT, clock, stop.clone()),
            requester: Requester {
                namespace: system_namespace,
                name: SERVICE_ACCOUNT.to_owned(),
                uid: String::new(),
                secrets: pull_secrets,
            },
            external_address,
            contents: Contents::new(content, served),
            folders,
            load_counters: LoadCounters::default(),
            catalogs,
            catalog_changes: watch::Sender::new(0),
            served_changes: watch::Sender::new(0),
            started: clock.elapsed(),
            features,
            release_namespace,
            extensions,
            releases,
            deployments,
            object_sets,
            approved_accounts,
            object_watches: ObjectWatches::new(stop.clone()),
            resources: Resources::default(),
            managed: ManagedObjects::new(stop.clone()),
            established_crds: EstablishedCrds::new(stop.clone()),
            turns: Turns::default(),
            installing: tokio::sync::Mutex::new(()),
        });
        let mut controllers = Controllers::new(Arc::clone(&context), caches, stop.clone());
        match role {
            // One line for each module with controllers.
            Role::Leader => {
                crate::cluster_catalog::register(&mut controllers, retry);
                if has_extensions {
                    crate::cluster_extension::register(&mut controllers, retry);
                    crate::object_set::register(&mut controllers, retry);
                }
            }
            Role::Replica => crate::cluster_catalog::register_replica(&mut controllers, retry),
        }
        Self { context, controllers: controllers.start(), stop }
    }

    /// Returns once every catalog that the leader serves is served by this replica, too.
    pub async fn caught_up(&self) {
        self.synced().await;
        crate::cluster_catalog::caught_up(&self.context).await;
    }

    /// Returns once all caches are in sync and every controller reconciles.
    pub async fn synced(&self) {
        self.controllers.synced().await;
    }

    /// Stops every controller, and returns when they have stopped. The next start completes
    /// interrupted work.
    pub async fn shutdown(self) {
        self.stop.cancel();
        self.controllers.ended().await;
    }
}

impl Subsystem for Extensions {
    fn info(&self) -> &'static SubsystemInfo {
        subsystem(self.context.features)
    }

    fn synced(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::synced(self))
    }

    fn monitor(&self) -> Arc<dyn Monitor> {
        let controllers = self.controllers.monitors();
        Arc::new(ExtensionsMonitor { context: Arc::clone(&self.context), controllers })
    }

    fn shutdown(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(Self::shutdown(*self))
    }
}

/// The metrics and controllers of the subsystem.
struct ExtensionsMonitor {
    context: Arc<Context>,
    controllers: Vec<ControllerMonitor>,
}

impl Monitor for ExtensionsMonitor {
    fn write_metrics(&self, page: &mut Page) {
        write_metrics(page, &self.context);
    }

    fn controllers(&self) -> &[ControllerMonitor] {
        &self.controllers
    }
}
