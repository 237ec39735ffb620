//! Startup: builds the shared context and registers all controllers.

use crate::context::{CATALOG_OPERATOR, Caches, Context, OPERATOR};
use crate::default_sources::DefaultSources;
use crate::image::bundles::Bundles;
use crate::metrics;
use crate::proxy::{Proxies, ProxySettings};
use crate::trusted_ca::TrustedCaCertificates;
use futures::future::BoxFuture;
use mainstay_catalogsources::{
    CatalogContents, CatalogMode, CatalogPods, CatalogStore, FolderCatalog, RegistryEndpoints,
    StoreOptions,
};
use mainstay_client::{CacheSet, Cluster, Recorder};
use mainstay_clock::Clock;
use mainstay_controller::{
    ControllerMonitor, Controllers, Monitor, RunningControllers, Subsystem, SubsystemInfo,
};
use mainstay_exposition::Page;
use mainstay_images::{ImageSources, Puller};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The component that reports Events.
const COMPONENT: &str = "operator-lifecycle-manager";

/// The options of classic.
#[derive(Clone)]
pub struct Options {
    /// The clock for timestamps on objects.
    pub clock: Clock,
    /// The namespace whose catalogs every namespace sees.
    pub global_namespace: String,
    /// Catalogs in folders. The caller creates their CatalogSources, with
    /// [`crate::FOLDER_ADDRESS`].
    pub catalogs: Vec<FolderCatalog>,
    /// The folder with copies of the last good catalogs, for a restart; none keeps them in memory
    /// only.
    pub cache: Option<PathBuf>,
    /// The images of catalogs and bundles; without them, catalogs and bundles by image report an
    /// error.
    pub images: Option<ImageSources>,
    /// The server for catalogs by image, if other clients read them.
    pub serve: Option<Arc<dyn RegistryEndpoints>>,
    /// The network settings for operators.
    pub surroundings: NetworkSettings,
    /// Timeouts and delays.
    pub timeouts: Timeouts,
    /// The namespaces that have copied CSVs of global operators even where the OLMConfig disables
    /// them.
    pub protected: BTreeSet<String>,
    /// The default catalogs of the cluster, which its OperatorHub can disable. With none, the
    /// CustomResourceDefinition of OperatorHub is not needed.
    pub defaults: Option<DefaultSources>,
}

/// Timeouts and delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// How long failing steps of an InstallPlan are retried before it fails. Time with missing
    /// permissions does not count.
    pub plan: Duration,
    /// How long unpacking a bundle may take if its OperatorGroup sets no timeout.
    pub unpack: Duration,
    /// How long a CSV may wait for its Deployments before it fails.
    pub install: Duration,
    /// How long the controller waits before it retries what the API refused. With none, the pauses
    /// grow up to a minute.
    pub retry: Option<Duration>,
    /// How long a namespace with a new Subscription waits for others to resolve together with it.
    pub debounce_window: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            plan: Duration::from_mins(1),
            unpack: Duration::from_mins(10),
            install: Duration::from_mins(5),
            retry: None,
            debounce_window: Duration::from_millis(30),
        }
    }
}

/// The network around the cluster, and the network settings for operators.
#[derive(Clone, Debug, Default)]
pub struct NetworkSettings {
    /// The proxies for requests to image registries.
    pub registries: mainstay_image::registry::Proxies,
    /// The proxies that Deployments of operators get as environment variables. On a cluster with a
    /// `Proxy` of `config.openshift.io`, that one counts instead.
    pub proxy: ProxySettings,
    /// The trusted CA certificates for ConfigMaps with the label
    /// `config.openshift.io/inject-trusted-cabundle: "true"`; none leaves these ConfigMaps alone.
    pub trusted: Option<TrustedCaCertificates>,
}

impl Options {
    /// The options without catalogs, folder of copies, images and other optional parts.
    pub fn new(clock: Clock, global_namespace: impl Into<String>) -> Self {
        Self {
            clock,
            global_namespace: global_namespace.into(),
            catalogs: Vec::new(),
            cache: None,
            images: None,
            serve: None,
            surroundings: NetworkSettings::default(),
            timeouts: Timeouts::default(),
            protected: BTreeSet::new(),
            defaults: None,
        }
    }
}

/// The running controllers. Dropping this does not stop them; [`Classic::shutdown`] does.
pub struct Classic {
    context: Arc<Context>,
    controllers: RunningControllers,
    stop: CancellationToken,
}

impl Classic {
    /// Starts every controller. Call it inside a tokio runtime. The CustomResourceDefinitions
    /// should be established, as the caches do not sync before.
    pub fn start(cluster: &Cluster, options: Options) -> Self {
        Self::start_with(cluster, options, CatalogPods::default())
    }

    /// As [`Classic::start`], with catalogs that may run as pods.
    pub fn start_with(cluster: &Cluster, options: Options, pods: CatalogPods) -> Self {
        let stop = CancellationToken::new();
        let Options {
            clock,
            global_namespace,
            catalogs,
            cache,
            images,
            serve,
            surroundings,
            timeouts,
            protected,
            defaults,
        } = options;
        let asks = cluster.clone().with_user_agent(CATALOG_OPERATOR);
        let puller = images.map(|images| Puller::new(images, asks));
        let mode = pods.mode;
        let store_options = StoreOptions {
            puller: puller.clone(),
            serve,
            cluster: Some(cluster.clone().with_user_agent(CATALOG_OPERATOR)),
            pods,
            proxies: surroundings.registries,
            stop: stop.clone(),
        };
        let bundles = Bundles::new(puller, clock, stop.clone());
        if mode == CatalogMode::Pods {
            bundles.unpack_by_jobs(
                &cluster.clone().with_user_agent(CATALOG_OPERATOR),
                &store_options.pods,
            );
        }
        let store = CatalogStore::new(&catalogs, cache, clock, store_options);
        let mut caches = CacheSet::new(cluster.clone(), stop.clone());
        let context = Arc::new(Context {
            cluster: cluster.clone().with_user_agent(OPERATOR),
            clock,
            recorder: Recorder::start(cluster, COMPONENT, clock, stop.clone()),
            store: store.clone(),
            bundles,
            global_namespace: global_namespace.into(),
            caches: Arc::new(Caches::start(&mut caches, mode)),
            proxies: Arc::new(Proxies::new(surroundings.proxy, cluster.clone(), stop.clone())),
            timeouts,
            metrics: Arc::default(),
            missing_permissions: Arc::default(),
        });
        let mut controllers = Controllers::new(Arc::clone(&context), caches, stop.clone());
        // One line for each module with controllers.
        crate::catalog_sources::register(&mut controllers);
        crate::subscription::register(&mut controllers);
        crate::install_plan::register(&mut controllers);
        crate::csv::register(&mut controllers);
        crate::operator_group::register(&mut controllers);
        crate::operator_condition::register(&mut controllers);
        crate::copied_csvs::register(&mut controllers, protected);
        crate::operator::register(&mut controllers);
        crate::trusted_ca::register(&mut controllers, surroundings.trusted);
        crate::operator_hub::register(&mut controllers, defaults, &catalogs);
        for catalog in &catalogs {
            store.follow_folder(catalog, stop.clone());
        }
        Self { context, controllers: controllers.start(), stop }
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

    /// The contents of the catalogs, for example for [`mainstay_packages`].
    pub fn catalogs(&self) -> CatalogContents {
        let Context { store, caches, .. } = &*self.context;
        CatalogContents::new(store.clone(), caches.catalogs.sources.clone())
    }
}

/// All verbs on all resources: an InstallPlan grants the permissions of a bundle, and only a
/// subject that has permissions may grant them.
fn permissions() -> Vec<Value> {
    vec![
        json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}),
        json!({"nonResourceURLs": ["*"], "verbs": ["*"]}),
    ]
}

/// The description of classic as a subsystem.
pub static SUBSYSTEM: SubsystemInfo = SubsystemInfo {
    name: "classic",
    summary: "Operator Lifecycle Manager: Subscriptions, InstallPlans and ClusterServiceVersions",
    definitions: mainstay_api::crds,
    cluster_roles: mainstay_api::cluster_roles,
    permissions,
};

impl Subsystem for Classic {
    fn info(&self) -> &'static SubsystemInfo {
        &SUBSYSTEM
    }

    fn synced(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::synced(self))
    }

    fn monitor(&self) -> Arc<dyn Monitor> {
        let controllers = self.controllers.monitors();
        Arc::new(ClassicMonitor { context: Arc::clone(&self.context), controllers })
    }

    fn shutdown(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(Self::shutdown(*self))
    }
}

/// The metrics and controllers of classic.
struct ClassicMonitor {
    context: Arc<Context>,
    controllers: Vec<ControllerMonitor>,
}

impl Monitor for ClassicMonitor {
    fn write_metrics(&self, page: &mut Page) {
        metrics::write(page, &self.context);
    }

    fn controllers(&self) -> &[ControllerMonitor] {
        &self.controllers
    }
}
