//! Contents of all catalogs, for PackageManifests.

use crate::store::CatalogStore;
use mainstay_api::CatalogSource;
use mainstay_catalog::Catalog;
use mainstay_client::Cache;
use mainstay_packages::PackageSource;
use std::sync::Arc;

/// The CatalogSources of the cluster with their current content. An unreadable catalog has its last
/// good content. Cheap to clone.
#[derive(Clone)]
pub struct CatalogContents {
    store: CatalogStore,
    sources: Cache<CatalogSource>,
}

impl CatalogContents {
    /// The contents in `store` of these CatalogSources.
    pub const fn new(store: CatalogStore, sources: Cache<CatalogSource>) -> Self {
        Self { store, sources }
    }
}

impl mainstay_packages::PackageSources for CatalogContents {
    fn now(&self) -> Vec<PackageSource> {
        let content = |key: &_| -> Option<Arc<Catalog>> {
            let content = self.store.state(key)?.content?;
            Some(Arc::clone(content.index.catalog()))
        };
        let all = self.sources.list(None).into_iter();
        all.map(|(key, source)| PackageSource {
            content: content(&key),
            key,
            display_name: source.spec.display_name.clone(),
            publisher: source.spec.publisher.clone(),
            labels: source.metadata.labels.clone(),
            created: source.metadata.creation_timestamp.as_ref().map(ToString::to_string),
            priority: source.spec.priority,
        })
        .collect()
    }

    fn subscribe(&self, on_change: Box<dyn Fn() + Send + Sync>) {
        let on_change = Arc::new(on_change);
        let on_store_change = Arc::clone(&on_change);
        self.store.subscribe(move |_| on_store_change());
        self.sources.subscribe(move |_| on_change());
    }
}
