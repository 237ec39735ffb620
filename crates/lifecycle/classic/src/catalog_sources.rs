//! CatalogSources: connects their controller ([`mainstay_catalogsources`]) to the context of
//! classic.

use crate::context::{CATALOG_OPERATOR, Context};
use crate::fields::{Binding, Role, ServiceAccount};
use mainstay_catalogsources::{CatalogContext, OwnedObject, SharedCaches};
use mainstay_controller::Controllers;
use mainstay_object::{NamespacedName, OwnerReference};
use std::sync::Arc;

/// Registers the controller.
pub(crate) fn register(controllers: &mut Controllers<Context>) {
    let context = controllers.context();
    let caches = &context.caches;
    let namespaces = caches.namespaces.clone();
    let catalog_context = CatalogContext {
        cluster: context.cluster.clone().with_user_agent(CATALOG_OPERATOR),
        clock: context.clock,
        recorder: context.recorder.clone(),
        store: context.store.clone(),
        caches: caches.catalogs.clone(),
        namespace_labels: Arc::new(move |namespace| {
            let namespace = namespaces.get(&NamespacedName::cluster(namespace));
            namespace.map(|namespace| namespace.labels.clone()).unwrap_or_default()
        }),
    };
    let shared = SharedCaches {
        accounts: &caches.service_accounts,
        roles: &caches.roles,
        bindings: &caches.role_bindings,
    };
    mainstay_catalogsources::register(controllers, catalog_context, &shared);
}

impl OwnedObject for ServiceAccount {
    fn owners(&self) -> &[OwnerReference] {
        &self.owners
    }
}

impl OwnedObject for Role {
    fn owners(&self) -> &[OwnerReference] {
        &self.owners
    }
}

impl OwnedObject for Binding {
    fn owners(&self) -> &[OwnerReference] {
        &self.owners
    }
}
