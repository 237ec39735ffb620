//! The contents of all catalogs, for PackageManifests.

use crate::store::CatalogStore;
use mainstay_api::CatalogSource;
use mainstay_catalog::Catalog;
use mainstay_client::Cache;
use mainstay_packages::Source;
use std::sync::Arc;

/// The catalogs of the cluster with their content, as they are now. Content is shared, and one that
/// cannot be read any more stays what it was last. Cheap to clone.
#[derive(Clone)]
pub struct CatalogContents {
    store: CatalogStore,
    sources: Cache<CatalogSource>,
}

impl CatalogContents {
    /// The content that `store` has of these CatalogSources.
    pub const fn new(store: CatalogStore, sources: Cache<CatalogSource>) -> Self {
        Self { store, sources }
    }
}

impl mainstay_packages::Catalogs for CatalogContents {
    fn now(&self) -> Vec<Source> {
        let content = |key: &_| -> Option<Arc<Catalog>> {
            let content = self.store.state(key)?.content?;
            Some(Arc::clone(content.index.catalog()))
        };
        let all = self.sources.list(None).into_iter();
        all.map(|(key, source)| Source {
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

    fn subscribe(&self, hear: Box<dyn Fn() + Send + Sync>) {
        let hear = Arc::new(hear);
        let heard = Arc::clone(&hear);
        self.store.subscribe(move |_| heard());
        self.sources.subscribe(move |_| hear());
    }
}
