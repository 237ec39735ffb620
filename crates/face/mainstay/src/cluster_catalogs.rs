//! The server of ClusterCatalogs: their HTTP API over TLS, and the catalog folders behind it.

use crate::embedded::io;
use mainstay_api::resources::CLUSTER_CATALOG;
use mainstay_cause::Cause;
use mainstay_classic::{CatalogStore, FolderCatalog, StoreOptions};
use mainstay_client::{Cluster, ObjectList};
use mainstay_clock::Clock;
use mainstay_object::Object;
use mainstay_registry::http::CatalogHttpApi;
use mainstay_registry::server::{DOWNLOAD_LIMITS, Limits, serve_https};
use mainstay_registry::{ServedCatalog, ServedCatalogs};
use rustls::ServerConfig;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The name of the Service in front of the server, as upstream.
pub(crate) const SERVICE: &str = "catalogd-service";
/// The ConfigMap with the CA of the serving certificate, and its key.
const CA_CONFIG_MAP: &str = "catalogd-ca";
const CA_KEY: &str = "ca.crt";
/// How long downloads may take on shutdown.
const GRACE: Duration = Duration::from_millis(300);

/// An open listener of the server. It serves until its token is cancelled.
pub(crate) struct CatalogServer {
    /// Its address.
    pub(crate) address: SocketAddr,
    served: Arc<ServedCatalogs>,
    task: JoinHandle<()>,
}

impl CatalogServer {
    /// Opens a listener at the first address that is free, and serves on a task of its own.
    pub(crate) async fn open(
        addresses: &[SocketAddr],
        tls: &Arc<ServerConfig>,
        stop: &CancellationToken,
    ) -> Result<Self, Cause> {
        let (listener, address) = listen(addresses).await.map_err(|error| {
            let tried: Vec<_> = addresses.iter().map(ToString::to_string).collect();
            Cause::new(format!("ClusterCatalogs cannot be served at {}", tried.join(" or ")))
                .because(io(&error))
        })?;
        let mut tls = ServerConfig::clone(tls);
        // As upstream, whose clients know no other version.
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let served: Arc<ServedCatalogs> = Arc::default();
        let api = CatalogHttpApi::new(Arc::clone(&served));
        let limits = Limits { grace: GRACE, ..DOWNLOAD_LIMITS };
        let serving = serve_https(listener, Arc::new(tls), api, limits, None, stop.clone());
        Ok(Self { address, served, task: tokio::spawn(serving) })
    }

    /// The catalogs that it serves.
    pub(crate) fn served(&self) -> Arc<ServedCatalogs> {
        Arc::clone(&self.served)
    }

    /// Waits until the listener is closed, which follows its token.
    pub(crate) async fn wait_until_closed(self) {
        // A server task that panicked has ended as well; the panic is in the log.
        let _ = self.task.await;
    }
}

/// The content of catalog folders, by name.
pub(crate) fn contents_of(catalogs: &[FolderCatalog]) -> BTreeMap<String, Arc<ServedCatalog>> {
    let served = |catalog: &FolderCatalog| Some((catalog.name.clone(), catalog.served.clone()?));
    catalogs.iter().filter_map(served).collect()
}

/// Loads and follows catalog folders until `stop`, where the classic subsystem does not. The last good
/// content of each is copied into the folder `copies`.
pub(crate) fn follow_folders(
    catalogs: &[FolderCatalog],
    copies: Option<PathBuf>,
    clock: Clock,
    stop: &CancellationToken,
) {
    let store = CatalogStore::new(catalogs, copies, clock, StoreOptions::folders(stop.clone()));
    for catalog in catalogs {
        store.follow_folder(catalog, stop.clone());
    }
}

/// The ConfigMap with the CA, with which clients verify the server.
pub(crate) fn ca_config_map(namespace: &str, authority: &str) -> Object {
    let value = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": CA_CONFIG_MAP, "namespace": namespace},
        "data": {CA_KEY: authority},
    });
    Object::from_value(value).unwrap_or_default()
}

async fn listen(addresses: &[SocketAddr]) -> std::io::Result<(TcpListener, SocketAddr)> {
    let mut failed = std::io::ErrorKind::AddrNotAvailable.into();
    for address in addresses {
        match TcpListener::bind(address).await {
            Ok(listener) => {
                let address = listener.local_addr()?;
                return Ok((listener, address));
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Addresses on loopback: the port that the catalogs had before, so that their URLs stay, else a free one.
pub(crate) async fn loopback_addresses(cluster: &Cluster) -> Vec<SocketAddr> {
    let first = ObjectList { limit: 20, ..ObjectList::default() };
    let list = cluster.list(&CLUSTER_CATALOG, None, &first).await;
    // Without the list any port will do.
    let catalogs = list.map(|list| list.items).unwrap_or_default();
    let previous = catalogs.iter().find_map(|catalog| {
        let base = catalog.str(&["status", "urls", "base"])?.strip_prefix("https://")?;
        let address: SocketAddr = base.split('/').next()?.parse().ok()?;
        address.ip().is_loopback().then_some(address)
    });
    let any = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    previous.into_iter().chain([any]).collect()
}
