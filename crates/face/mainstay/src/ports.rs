//! The ports on which catalogs are served to other programs.
//!
//! A client of the registry API names a server and no catalog, so each catalog has a port of its
//! own. The HTTP catalog API names the catalog in its paths: every port answers for all of them.
//! Only programs on this machine are served.

use crate::catalogs::Folders;
use crate::embedded::io;
use mainstay_api::resources::CATALOG_SOURCE;
use mainstay_cause::Cause;
use mainstay_classic::ServedAt;
use mainstay_client::Cluster;
use mainstay_registry::http::Api;
use mainstay_registry::server::{Limits, serve};
use mainstay_registry::{Shelf, grpc};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The catalogs and their ports.
pub(crate) struct Ports {
    shelf: Arc<Shelf>,
    addresses: BTreeMap<String, SocketAddr>,
    tasks: Vec<JoinHandle<()>>,
}

impl Ports {
    /// Listens for each catalog until `stop`: on the port it had before, as its CatalogSource
    /// remembers it, or on a free one. Content comes later.
    pub(crate) async fn open(
        cluster: &Cluster,
        namespace: &str,
        catalogs: &Folders,
        stop: &CancellationToken,
    ) -> Result<Self, Cause> {
        let shelf = Arc::new(Shelf::default());
        let api = Api::new(Arc::clone(&shelf));
        let limits = Limits { grace: Duration::from_millis(300), ..Limits::default() };
        let (mut addresses, mut tasks) = (BTreeMap::new(), Vec::new());
        for name in catalogs.keys() {
            let listener = listen(before(cluster, namespace, name).await).await;
            let opened = listener.and_then(|it| it.local_addr().map(|address| (it, address)));
            let (listener, address) = opened.map_err(|error| {
                Cause::new(format!("no port can be had for the catalog `{name}`"))
                    .because(io(&error))
            })?;
            let grpc = grpc::service_until(shelf.add(name), stop.clone());
            let serving = serve(listener, api.clone(), grpc, limits, None, stop.clone());
            tasks.push(tokio::spawn(serving));
            addresses.insert(name.clone(), address);
        }
        Ok(Self { shelf, addresses, tasks })
    }

    /// Where a catalog is served.
    pub(crate) fn address(&self, name: &str) -> Option<SocketAddr> {
        self.addresses.get(name).copied()
    }

    /// The place for its content.
    pub(crate) fn served(&self, name: &str) -> Option<ServedAt> {
        let address = self.address(name)?.to_string().into();
        Some(ServedAt { content: self.shelf.add(name), address })
    }

    /// Returns when all ports are closed, which they are after `stop`.
    pub(crate) async fn ended(self) {
        for task in self.tasks {
            // A port that panicked has ended as well; the panic is in the log.
            let _ = task.await;
        }
    }
}

/// Where the catalog was served the last time.
async fn before(cluster: &Cluster, namespace: &str, name: &str) -> Option<SocketAddr> {
    let source = cluster.find(&CATALOG_SOURCE, Some(namespace), name).await.ok()??;
    let address: SocketAddr =
        source.str(&["status", "connectionState", "address"])?.parse().ok()?;
    address.ip().is_loopback().then_some(address)
}

async fn listen(wanted: Option<SocketAddr>) -> std::io::Result<TcpListener> {
    if let Some(wanted) = wanted
        && let Ok(listener) = TcpListener::bind(wanted).await
    {
        return Ok(listener);
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_is_had_again_unless_somebody_else_has_it() {
        let first = listen(None).await.unwrap();
        let address = first.local_addr().unwrap();
        let other = listen(Some(address)).await.unwrap();
        assert_ne!(other.local_addr().unwrap(), address);
        drop(first);
        let again = listen(Some(address)).await.unwrap();
        assert_eq!(again.local_addr().unwrap(), address);
    }
}
