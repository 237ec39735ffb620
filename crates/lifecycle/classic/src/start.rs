//! Puts the controllers together.

use crate::context::{CATALOG_OPERATOR, Caches, Context, OPERATOR};
use crate::default_sources::DefaultSources;
use crate::image::bundles::Bundles;
use crate::metrics;
use crate::proxy::{Proxies, ProxySettings};
use crate::trusted_ca::Trusted;
use futures::future::BoxFuture;
use mainstay_catalogsources::{
    CatalogContents, CatalogMode, CatalogPods, CatalogStore, FolderCatalog, Serve, StoreOptions,
};
use mainstay_client::{CacheSet, Cluster, Recorder};
use mainstay_clock::Clock;
use mainstay_controller::{
    ControllerMonitor, Controllers, Monitor, RunningControllers, Subsystem, SubsystemInfo,
};
use mainstay_exposition::Page;
use mainstay_images::{Images, Puller};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Who reports events.
const COMPONENT: &str = "operator-lifecycle-manager";

/// How to run.
#[derive(Clone)]
pub struct Options {
    /// The time that is written onto objects.
    pub clock: Clock,
    /// The namespace whose catalogs are visible in every namespace.
    pub global_namespace: String,
    /// Catalogs in folders. Their `CatalogSources` are made by somebody else, with
    /// [`crate::FOLDER_ADDRESS`].
    pub catalogs: Vec<FolderCatalog>,
    /// Where copies of good catalogs are kept for a restart; none keeps them in memory only.
    pub cache: Option<PathBuf>,
    /// Where catalogs and bundles by image come from; without it, they say that they cannot be had.
    pub images: Option<Images>,
    /// Where catalogs by image are served to others, if they are.
    pub serve: Option<Arc<dyn Serve>>,
    /// What operators are told of the network around them.
    pub surroundings: Surroundings,
    /// How long some things may take.
    pub timeouts: Timeouts,
    /// The namespaces that have copies of versions for all namespaces also where an `OLMConfig`
    /// switches such copies off.
    pub protected: BTreeSet<String>,
    /// The catalogs that the cluster has by default, unless its `OperatorHub` says otherwise; none
    /// keeps no such, and needs no definition of `OperatorHub`.
    pub defaults: Option<DefaultSources>,
}

/// How long some things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For how long a plan whose steps fail is tried again before it counts as failed. Missing rights
    /// do not count.
    pub plan: Duration,
    /// How long unpacking a bundle may take where its `OperatorGroup` does not say.
    pub unpack: Duration,
    /// How long a version may wait for its Deployments before it counts as failed.
    pub install: Duration,
    /// How long what the API refused rests before it is tried again although nothing changed; none
    /// lets the pauses grow from a moment to a minute.
    pub retry: Option<Duration>,
    /// How long a namespace with a new Subscription waits for others, which are then resolved with it.
    pub together: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            plan: Duration::from_mins(1),
            unpack: Duration::from_mins(10),
            install: Duration::from_mins(5),
            retry: None,
            together: Duration::from_millis(30),
        }
    }
}

/// The network around the cluster, and what operators are told of it.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The proxies that lead to registry servers at an address.
    pub registries: mainstay_image::registry::Proxies,
    /// The proxies that Deployments of operators get as variables. A cluster with a `Proxy` of
    /// `config.openshift.io` tells them itself, and then those count.
    pub proxy: ProxySettings,
    /// The certificates that are put into `ConfigMaps` with the label
    /// `config.openshift.io/inject-trusted-cabundle: "true"`; none leaves these alone.
    pub trusted: Option<Trusted>,
}

impl Options {
    /// Without catalogs of its own, copies, images and anything else that can be left out.
    pub fn new(clock: Clock, global_namespace: impl Into<String>) -> Self {
        Self {
            clock,
            global_namespace: global_namespace.into(),
            catalogs: Vec::new(),
            cache: None,
            images: None,
            serve: None,
            surroundings: Surroundings::default(),
            timeouts: Timeouts::default(),
            protected: BTreeSet::new(),
            defaults: None,
        }
    }
}

/// The running controllers. Dropping this does not end them; [`Classic::shutdown`] does.
pub struct Classic {
    context: Arc<Context>,
    controllers: RunningControllers,
    stop: CancellationToken,
}

impl Classic {
    /// Starts every controller. Must be called inside a tokio runtime. The custom resource
    /// definitions should be established: until they are, nothing is in sync.
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
        let asks = cluster.clone().named(CATALOG_OPERATOR);
        let puller = images.map(|images| Puller::new(images, asks));
        let mode = pods.mode;
        let store_options = StoreOptions {
            puller: puller.clone(),
            serve,
            cluster: Some(cluster.clone().named(CATALOG_OPERATOR)),
            pods,
            proxies: surroundings.registries,
            stop: stop.clone(),
        };
        let bundles = Bundles::new(puller, clock, stop.clone());
        if mode == CatalogMode::Pods {
            bundles.unpack_by_jobs(&cluster.clone().named(CATALOG_OPERATOR), &store_options.pods);
        }
        let store = CatalogStore::new(&catalogs, cache, clock, store_options);
        let mut caches = CacheSet::new(cluster.clone(), stop.clone());
        let context = Arc::new(Context {
            cluster: cluster.clone().named(OPERATOR),
            clock,
            recorder: Recorder::start(cluster, COMPONENT, clock, stop.clone()),
            store: store.clone(),
            bundles,
            global: global_namespace.into(),
            caches: Arc::new(Caches::start(&mut caches, mode)),
            proxies: Arc::new(Proxies::new(surroundings.proxy, cluster.clone(), stop.clone())),
            timeouts,
            tallies: Arc::default(),
            missing_permissions: Arc::default(),
        });
        let mut controllers = Controllers::new(Arc::clone(&context), caches, stop.clone());
        // One line for each folder with controllers.
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

    /// Returns once every object that there is has been seen and every controller reconciles.
    pub async fn synced(&self) {
        self.controllers.synced().await;
    }

    /// Ends every controller and returns when they have ended. What was begun is finished by the
    /// next start.
    pub async fn shutdown(self) {
        self.stop.cancel();
        self.controllers.ended().await;
    }

    /// The catalogs and what they offer, to be shown to others ([`mainstay_packages`]).
    pub fn catalogs(&self) -> CatalogContents {
        let Context { store, caches, .. } = &*self.context;
        CatalogContents::new(store.clone(), caches.catalogs.sources.clone())
    }
}

/// Everything on every resource: an InstallPlan grants the permissions that a bundle asks for, and a
/// cluster lets only those grant permissions that have them.
fn permissions() -> Vec<Value> {
    vec![
        json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}),
        json!({"nonResourceURLs": ["*"], "verbs": ["*"]}),
    ]
}

/// Operator Lifecycle Manager, in the words of every subsystem.
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

/// What the controllers publish.
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
