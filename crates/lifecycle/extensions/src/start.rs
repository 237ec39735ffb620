//! Startup: builds the shared context and registers all controllers.

use futures::future::BoxFuture;
use mainstay_client::{CacheSet, Cluster};
use mainstay_clock::Clock;
use mainstay_controller::{
    ControllerMonitor, Controllers, Monitor, RunningControllers, Subsystem, SubsystemInfo,
};
use mainstay_exposition::Page;
use mainstay_images::ImageSources;
use mainstay_registry::ServedCatalogs;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The options of the subsystem.
#[derive(Clone)]
pub struct Options {
    /// The clock for timestamps on objects and for polls.
    pub clock: Clock,
    /// The namespace with the pull secrets of catalogs: `olmv1-system` upstream.
    pub system_namespace: String,
    /// The host, and the port if it is not 443, under which clients reach the HTTP API:
    /// `status.urls.base` is `https://ADDRESS/catalogs/NAME`.
    pub external_address: String,
    /// The images of catalogs and bundles.
    pub images: ImageSources,
    /// The folder with the stored content of catalogs. It is only a cache: what is missing there is
    /// pulled again.
    pub content: PathBuf,
    /// The catalogs that the HTTP API serves.
    pub served: Arc<ServedCatalogs>,
    /// The pause after the first failed pull, which doubles up to the second value.
    pub retry: (Duration, Duration),
}

/// The running subsystem. Dropping this does not stop it; [`Extensions::shutdown`] does.
pub struct Extensions {
    controllers: RunningControllers,
    stop: CancellationToken,
}

struct Context;

impl Extensions {
    /// Starts every controller. Call it inside a tokio runtime. The CustomResourceDefinitions
    /// should be established, as the caches do not sync before.
    pub fn start(cluster: &Cluster, options: Options) -> Self {
        let stop = CancellationToken::new();
        let _ = options;
        let caches = CacheSet::new(cluster.clone(), stop.clone());
        let controllers = Controllers::new(Arc::new(Context), caches, stop.clone());
        Self { controllers: controllers.start(), stop }
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

/// The rules of the process's ClusterRole.
fn permissions() -> Vec<Value> {
    Vec::new()
}

/// The description of the subsystem.
pub static SUBSYSTEM: SubsystemInfo = SubsystemInfo {
    name: "extensions",
    summary: "Operator Lifecycle Manager v1: ClusterCatalogs",
    definitions: Vec::new,
    cluster_roles: Vec::new,
    permissions,
};

impl Subsystem for Extensions {
    fn info(&self) -> &'static SubsystemInfo {
        &SUBSYSTEM
    }

    fn synced(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::synced(self))
    }

    fn monitor(&self) -> Arc<dyn Monitor> {
        Arc::new(ExtensionsMonitor(self.controllers.monitors()))
    }

    fn shutdown(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(Self::shutdown(*self))
    }
}

/// The metrics and controllers of the subsystem.
struct ExtensionsMonitor(Vec<ControllerMonitor>);

impl Monitor for ExtensionsMonitor {
    fn write_metrics(&self, _: &mut Page) {}

    fn controllers(&self) -> &[ControllerMonitor] {
        &self.0
    }
}
