//! Writes onto `CatalogSources` what the store knows, and tells news as events.

use super::source;
use crate::context::Context;
use crate::error::{Doing, Error, settle};
use crate::patch;
use mainstay_api::{Time, resources};
use mainstay_client::{Action, Reconciler};
use mainstay_object::NamespacedName;
use std::sync::Arc;

/// Reconciles `CatalogSources`.
pub(crate) struct Controller(pub(crate) Arc<Context>);

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        settle(self.look(key).await)
    }
}

impl Controller {
    async fn look(&self, key: &NamespacedName) -> Result<Action, Error> {
        let context = &*self.0;
        let Some(source) = context.caches.sources.get(key) else {
            context.store.leave(key);
            return Ok(Action::Done);
        };
        context.store.attend(&source);
        let state = context.store.state(key);
        let status = source::status(&source, state.as_ref(), Time::new(context.clock.now()));
        if let Some(patch) = patch::of_view(&source, &status)? {
            context
                .cluster
                .patch_status(&resources::CATALOG_SOURCE, key.namespace(), &key.name, &patch)
                .await
                .doing("writing the status of a CatalogSource")?;
            let failure = state.as_ref().and_then(|it| it.failure.as_deref());
            if let Some((kind, reason, message)) = source::event(&source.status, &status, failure) {
                context.recorder.publish(&source.to_object()?, kind, reason, message);
            }
        }
        Ok(Action::Done)
    }
}
