//! What the catalog store is given: catalog folders, registry endpoints, and where other content comes from.

use crate::mode::CatalogPods;
use futures::future::BoxFuture;
use mainstay_client::Cluster;
use mainstay_image::registry::Proxies;
use mainstay_images::Puller;
use mainstay_object::NamespacedName;
use mainstay_registry::ServedCatalog;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A catalog in a folder or a database file, and its CatalogSource.
#[derive(Clone, Debug)]
pub struct FolderCatalog {
    /// Namespace of the CatalogSource.
    pub namespace: String,
    /// Name of the CatalogSource.
    pub name: String,
    /// The folder of the catalog, or its database file.
    pub folder: PathBuf,
    /// Gets the content of the catalog, if others serve it.
    pub served: Option<Arc<ServedCatalog>>,
    /// The address of the registry API with the content, for the status of the CatalogSource.
    pub address: Option<Arc<str>>,
}

/// The registry endpoint of a catalog in this process.
#[derive(Clone, Debug)]
pub struct ServedAt {
    /// The served content, which the store updates.
    pub content: Arc<ServedCatalog>,
    /// The address of the registry API, for the status of the CatalogSource.
    pub address: Arc<str>,
}

/// Opens registry endpoints for catalogs that this process reads from images and ConfigMaps.
pub trait RegistryEndpoints: Send + Sync {
    /// Opens an endpoint for a catalog, if possible at the address that it had `before`; none if no
    /// endpoint is available. A second call for the same catalog returns the same endpoint.
    fn open<'a>(
        &'a self,
        catalog: &'a NamespacedName,
        before: Option<&'a str>,
    ) -> BoxFuture<'a, Option<ServedAt>>;

    /// Closes the endpoint of a deleted catalog.
    fn close(&self, catalog: &NamespacedName);
}

/// Sources and endpoints of catalogs that are no folders.
pub struct StoreOptions {
    /// Pulls catalog images; without it, this process reads no image.
    pub puller: Option<Puller>,
    /// Opens the endpoints of catalogs that this process reads, if it serves them.
    pub serve: Option<Arc<dyn RegistryEndpoints>>,
    /// The cluster with the ConfigMaps and pods of catalogs; without it, none is read.
    pub cluster: Option<Cluster>,
    /// How catalogs run as pods.
    pub pods: CatalogPods,
    /// The proxies for registry servers at an address.
    pub proxies: Proxies,
    /// Ends all followers.
    pub stop: CancellationToken,
}

impl StoreOptions {
    /// The options of a store for catalog folders only.
    pub fn folders(stop: CancellationToken) -> Self {
        Self {
            puller: None,
            serve: None,
            cluster: None,
            pods: CatalogPods::default(),
            proxies: Proxies::default(),
            stop,
        }
    }
}
