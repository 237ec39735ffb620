//! What the catalogs offer, for who shows it.

use crate::context::Context;
use mainstay_catalog::Catalog;
use mainstay_packages::Source;
use std::sync::Arc;

/// The catalogs of the cluster with their content, as they are now. Content is shared, and one that
/// cannot be read any more stays what it was last. Cheap to clone.
#[derive(Clone)]
pub struct Offered(Arc<Context>);

impl Offered {
    pub(crate) const fn new(context: Arc<Context>) -> Self {
        Self(context)
    }
}

impl mainstay_packages::Catalogs for Offered {
    fn now(&self) -> Vec<Source> {
        let content = |key: &_| -> Option<Arc<Catalog>> {
            let content = self.0.store.state(key)?.content?;
            Some(Arc::clone(content.index.catalog()))
        };
        let all = self.0.caches.sources.list(None).into_iter();
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
        self.0.store.subscribe(move |_| heard());
        self.0.caches.sources.subscribe(move |_| hear());
    }
}
