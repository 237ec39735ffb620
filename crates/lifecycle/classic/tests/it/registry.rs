//! Registry server at an address, which tests stop and restart.

use crate::olm_cluster::catalog;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_registry::http::CatalogHttpApi;
use mainstay_registry::server::{Limits, serve};
use mainstay_registry::{RegistryIndex, ServedCatalog, ServedCatalogs, grpc};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) struct Registry {
    served: Arc<ServedCatalog>,
    pub(crate) address: SocketAddr,
    running: Option<(CancellationToken, JoinHandle<()>)>,
}

impl Registry {
    /// Starts a server with these versions of `anvil`.
    pub(crate) async fn start(versions: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut registry =
            Self { served: Arc::new(ServedCatalog::new("far")), address, running: None };
        registry.publish(versions);
        registry.run(listener);
        registry
    }

    /// Replaces the content while the server runs.
    pub(crate) fn publish(&self, versions: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        // A registry sends the manifests only of bundles without an image.
        let text = catalog(versions, |_, bundle| {
            bundle.as_object_mut().unwrap().remove("image");
        });
        std::fs::write(folder.path().join("catalog.json"), text).unwrap();
        let catalog = Catalog::load(folder.path(), &LoadOptions::default()).unwrap();
        self.served.put(Arc::new(RegistryIndex::new(catalog, SystemTime::UNIX_EPOCH)));
    }

    fn run(&mut self, listener: TcpListener) {
        let stop = CancellationToken::new();
        let answers = grpc::service_until(Arc::clone(&self.served), stop.clone());
        let limits = Limits { grace: Duration::from_millis(50), ..Limits::default() };
        let http = CatalogHttpApi::new(Arc::new(ServedCatalogs::default()));
        let serving = tokio::spawn(serve(listener, http, answers, limits, None, stop.clone()));
        self.running = Some((stop, serving));
    }

    /// Stops the server.
    pub(crate) async fn stop(&mut self) {
        let (stop, serving) = self.running.take().unwrap();
        stop.cancel();
        serving.await.unwrap();
    }

    /// Restarts the server at the same address.
    pub(crate) async fn resume(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.run(listener);
    }
}
