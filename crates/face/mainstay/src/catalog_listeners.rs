//! Registry servers of the embedded cluster: one listener for each catalog.
//!
//! A request of the gRPC registry API does not name a catalog, so each catalog has a port of its own.
//! The HTTP catalog API names the catalog in its paths: every port serves all catalogs. The listeners
//! are on loopback only. Catalog folders have their listeners from the start; catalogs by image have
//! one while they exist.

use crate::catalogs::CatalogFolders;
use crate::embedded::io;
use futures::future::BoxFuture;
use mainstay_api::resources::CATALOG_SOURCE;
use mainstay_cause::Cause;
use mainstay_classic::{RegistryEndpoints, ServedAt};
use mainstay_client::Cluster;
use mainstay_object::NamespacedName;
use mainstay_registry::http::CatalogHttpApi;
use mainstay_registry::server::{Limits, serve};
use mainstay_registry::{ServedCatalog, ServedCatalogs, grpc};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The catalogs and their listeners. Clones share the state.
#[derive(Clone)]
pub(crate) struct CatalogListeners {
    inner: Arc<Inner>,
}

struct Inner {
    shelf: Arc<ServedCatalogs>,
    api: CatalogHttpApi,
    /// The namespace whose catalogs have their plain names in paths.
    global: String,
    listeners: Mutex<BTreeMap<NamespacedName, CatalogListener>>,
    stop: CancellationToken,
}

/// An open listener of a catalog.
struct CatalogListener {
    /// The catalog's name in paths.
    name: String,
    address: SocketAddr,
    content: Arc<ServedCatalog>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl CatalogListeners {
    /// Opens a listener for each catalog until `stop`: on its previous port, as its CatalogSource's
    /// status has it, or on a free one. The content follows later.
    pub(crate) async fn open(
        cluster: &Cluster,
        namespace: &str,
        catalogs: &CatalogFolders,
        stop: &CancellationToken,
    ) -> Result<Self, Cause> {
        let shelf = Arc::new(ServedCatalogs::default());
        let api = CatalogHttpApi::new(Arc::clone(&shelf));
        let (global, stop) = (namespace.to_owned(), stop.clone());
        let listeners = Self {
            inner: Arc::new(Inner { shelf, api, global, listeners: Mutex::default(), stop }),
        };
        for name in catalogs.keys() {
            let key = NamespacedName::new(namespace, name.as_str());
            let previous = previous_address(cluster, namespace, name).await;
            listeners.listen(&key, previous).await.map_err(|error| {
                Cause::new(format!("no port is available for the catalog `{name}`"))
                    .because(io(&error))
            })?;
        }
        Ok(listeners)
    }

    /// Opens the listener of a catalog.
    async fn listen(
        &self,
        key: &NamespacedName,
        previous: Option<SocketAddr>,
    ) -> std::io::Result<ServedAt> {
        let inner = &*self.inner;
        let listener = listen(previous).await?;
        let address = listener.local_addr()?;
        // Names of catalogs have no colon, so two never share a path.
        let name = if *key.namespace == *inner.global {
            key.name.to_string()
        } else {
            format!("{}:{}", key.namespace, key.name)
        };
        let content = inner.shelf.add(&name);
        let stop = inner.stop.child_token();
        let limits = Limits { grace: Duration::from_millis(300), ..Limits::default() };
        let grpc = grpc::service_until(Arc::clone(&content), stop.clone());
        let task =
            tokio::spawn(serve(listener, inner.api.clone(), grpc, limits, None, stop.clone()));
        let port = CatalogListener { name, address, content: Arc::clone(&content), stop, task };
        let old = inner.listeners.lock().insert(key.clone(), port);
        if let Some(old) = old {
            old.stop.cancel();
        }
        Ok(ServedAt { content, address: address.to_string().into() })
    }

    /// The address of a catalog's listener, and its name in paths.
    pub(crate) fn address(&self, key: &NamespacedName) -> Option<(SocketAddr, String)> {
        self.inner
            .listeners
            .lock()
            .get(key)
            .map(|listener| (listener.address, listener.name.clone()))
    }

    /// The address of a catalog's listener, and the handle that receives its content.
    pub(crate) fn served_at(&self, key: &NamespacedName) -> Option<ServedAt> {
        let listeners = self.inner.listeners.lock();
        let listener = listeners.get(key)?;
        let address = listener.address.to_string().into();
        Some(ServedAt { content: Arc::clone(&listener.content), address })
    }

    /// Waits until all listeners are closed, which follows `stop`.
    pub(crate) async fn wait_until_closed(self) {
        let listeners = std::mem::take(&mut *self.inner.listeners.lock());
        for listener in listeners.into_values() {
            // A server task that panicked has ended as well; the panic is in the log.
            let _ = listener.task.await;
        }
    }
}

impl RegistryEndpoints for CatalogListeners {
    fn open<'a>(
        &'a self,
        catalog: &'a NamespacedName,
        previous: Option<&'a str>,
    ) -> BoxFuture<'a, Option<ServedAt>> {
        Box::pin(async move {
            if let Some(served_at) = self.served_at(catalog) {
                return Some(served_at);
            }
            let previous = previous.and_then(|text| text.parse::<SocketAddr>().ok());
            let previous = previous.filter(|address| address.ip().is_loopback());
            self.listen(catalog, previous)
                .await
                .inspect_err(
                    |error| tracing::warn!(%catalog, %error, "the catalog is not served to other programs"),
                )
                .ok()
        })
    }

    fn close(&self, catalog: &NamespacedName) {
        if let Some(listener) = self.inner.listeners.lock().remove(catalog) {
            listener.stop.cancel();
            self.inner.shelf.remove(&listener.name);
        }
    }
}

/// The previous address of a catalog, from the status of its CatalogSource.
async fn previous_address(cluster: &Cluster, namespace: &str, name: &str) -> Option<SocketAddr> {
    let source = cluster.find(&CATALOG_SOURCE, Some(namespace), name).await.ok()??;
    let address: SocketAddr =
        source.str(&["status", "connectionState", "address"])?.parse().ok()?;
    address.ip().is_loopback().then_some(address)
}

async fn listen(preferred: Option<SocketAddr>) -> std::io::Result<TcpListener> {
    if let Some(preferred) = preferred
        && let Ok(listener) = TcpListener::bind(preferred).await
    {
        return Ok(listener);
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn catalog_keeps_its_port_unless_another_program_has_it() {
        let first = listen(None).await.unwrap();
        let address = first.local_addr().unwrap();
        let other = listen(Some(address)).await.unwrap();
        assert_ne!(other.local_addr().unwrap(), address);
        drop(first);
        let again = listen(Some(address)).await.unwrap();
        assert_eq!(again.local_addr().unwrap(), address);
    }
}
