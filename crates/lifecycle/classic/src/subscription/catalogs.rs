//! The catalogs that the Subscriptions of a namespace see.

use super::status::VisibleCatalog;
use crate::context::Context;
use mainstay_api::{CatalogSource, ObjectReference, resources};
use mainstay_catalogsources::{SourceState, is_healthy};
use mainstay_object::NamespacedName;
use std::sync::Arc;

/// The CatalogSources that a namespace sees: its own and the global ones, by namespace and name.
pub(super) fn visible_sources(
    context: &Context,
    namespace: &str,
) -> Vec<(Arc<CatalogSource>, NamespacedName)> {
    let caches = &context.caches;
    let mut all = caches.catalogs.sources.list(Some(namespace));
    if *context.global_namespace != *namespace {
        all.extend(caches.catalogs.sources.list(Some(&context.global_namespace)));
    }
    all.sort_by_key(|(key, _)| format!("{}{}", key.namespace, key.name));
    for (_, source) in &all {
        // The store reads the catalog from now on, whichever controller sees it first.
        context.store.follow_source(source);
    }
    all.into_iter().map(|(key, source)| (source, key)).collect()
}

/// The state of the catalogs that a namespace sees.
pub(super) fn visible_catalogs(
    context: &Context,
    sources: &[(Arc<CatalogSource>, NamespacedName)],
) -> Vec<VisibleCatalog> {
    sources
        .iter()
        .map(|(source, key)| (source, key, context.store.state(key)))
        .map(|(source, key, state)| VisibleCatalog {
            reference: ObjectReference {
                api_version: resources::CATALOG_SOURCE.api_version(),
                kind: resources::CATALOG_SOURCE.kind.to_string(),
                namespace: key.namespace.to_string(),
                name: key.name.to_string(),
                uid: source.metadata.uid.clone(),
                resource_version: source.metadata.resource_version.clone(),
                ..ObjectReference::default()
            },
            // A folder that is still being read counts as healthy.
            healthy: state.as_ref().is_some_and(SourceState::is_loading)
                || is_healthy(source, state.as_ref()),
            stale: state.as_ref().is_some_and(SourceState::is_stale),
            content: state.and_then(|state| state.content),
        })
        .collect()
}

/// Whether some catalog is being read for the first time. A resolution without it would be
/// premature.
pub(super) fn any_catalog_is_loading(
    context: &Context,
    sources: &[(Arc<CatalogSource>, NamespacedName)],
) -> bool {
    sources.iter().any(|(_, key)| context.store.state(key).is_some_and(|state| state.is_loading()))
}
