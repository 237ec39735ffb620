//! Addresses of other CatalogSources: an address that names a catalog which this process reads.
//!
//! A CatalogSource has a Service in `status.registryService`, as in upstream. For a catalog that is
//! read in the process that Service does not exist, so no server listens at its address. A
//! CatalogSource with such an address shares the content of the named CatalogSource while that has
//! content.

use crate::pods::PORT;
use crate::store::CatalogStore;
use mainstay_object::NamespacedName;
use mainstay_registry::client::Address;
use std::sync::Arc;

impl CatalogStore {
    /// The CatalogSource whose `status.registryService` has this address, if this process reads its
    /// catalog.
    pub(crate) fn catalog_source_at(
        &self,
        key: &NamespacedName,
        address: &Address,
    ) -> Option<NamespacedName> {
        let service = crate::simulated::service_of_host(address.host())?;
        let state = self.state(&service).filter(|_| address.port() == PORT && service != *key)?;
        // A catalog that came over a connection is read from its server.
        (state.content.is_some() && state.observed.is_none()).then_some(service)
    }

    /// Updates a catalog with the content of another CatalogSource on every change; returns when
    /// that has no content any more.
    pub(crate) async fn follow_catalog_source(
        &self,
        key: &NamespacedName,
        address: &str,
        sibling: &NamespacedName,
    ) {
        let mut changes = self.changes();
        let mut digest = None;
        while let Some(content) = self.state(sibling).and_then(|state| state.content) {
            let catalog = content.index.catalog();
            if digest.as_deref() != Some(catalog.digest()) {
                digest = Some(catalog.digest().to_owned());
                self.update_content(key, address, Arc::clone(catalog), None).await;
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}
