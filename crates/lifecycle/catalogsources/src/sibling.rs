//! Catalogs at the address of another CatalogSource that this process reads.
//!
//! Such a CatalogSource names a Service in `status.registryService` as the original's does, but where
//! catalogs are no pods there is none behind the name, and nobody listens at it. Who asks for a catalog at
//! that address gets what the named one has, as long as it has it.

use crate::pods::PORT;
use crate::store::CatalogStore;
use mainstay_object::NamespacedName;
use mainstay_registry::client::Address;
use std::sync::Arc;

impl CatalogStore {
    /// The CatalogSource that an address belongs to.
    pub(crate) fn sibling(
        &self,
        key: &NamespacedName,
        address: &Address,
    ) -> Option<NamespacedName> {
        let service = crate::simulated::service(address.host())?;
        let state = self.state(&service).filter(|_| address.port() == PORT && service != *key)?;
        // Content that came over a connection is that of a server, which is where its address says.
        (state.content.is_some() && state.observed.is_none()).then_some(service)
    }

    /// Gives a catalog what another one has, whenever that changes; returns when that one has nothing any more.
    pub(crate) async fn follow_sibling(
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
                self.read(key, address, Arc::clone(catalog), None).await;
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}
