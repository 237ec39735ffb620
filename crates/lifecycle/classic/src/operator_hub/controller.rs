//! The OperatorHub controller: keeps the default CatalogSources as the OperatorHub says.

use super::decide::{self, CatalogAction};
use crate::context::Context;
use crate::default_sources::DefaultSources;
use crate::error::Error;
use mainstay_api::{CatalogSource, OperatorHub, OperatorHubSpec, TypedObject, names, resources};
use mainstay_catalogsources::FolderCatalog;
use mainstay_client::{Action, Cache, DeleteOptions, Patch, Reconciler, Selection};
use mainstay_controller::{Controllers, ReconcileError as _, WithOperation as _, decision, patch};
use mainstay_object::{NamespacedName, Resource};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

const SOURCE: &Resource = &resources::CATALOG_SOURCE;
const HUB: &Resource = &resources::OPERATOR_HUB;

/// Reconciles all default CatalogSources; the only key is that of the OperatorHub.
struct Controller {
    context: Arc<Context>,
    defaults: Vec<CatalogSource>,
    hubs: Cache<OperatorHub>,
}

/// Registers the controller, if there are default CatalogSources. A catalog in a folder replaces
/// the default of its name. The CustomResourceDefinition of OperatorHub must exist then, as the
/// controller does not reconcile before.
pub(crate) fn register(
    controllers: &mut Controllers<Context>,
    defaults: Option<DefaultSources>,
    folders: &[FolderCatalog],
) {
    let Some(defaults) = defaults else { return };
    let context = controllers.context();
    let defaults = defaults.within(&context.global_namespace, folders);
    let key = || NamespacedName::cluster(names::OPERATOR_HUB);
    let mut builder = controllers.add("operator_hub");
    let selection =
        Selection::all(HUB.clone()).fields(format!("metadata.name={}", names::OPERATOR_HUB));
    let hubs = builder.cache(Cache::builder(selection, |hub| OperatorHub::from_object(hub).ok()));
    let watched: Vec<NamespacedName> = defaults.iter().map(TypedObject::key).collect();
    builder
        // Without an OperatorHub, all default CatalogSources are enabled.
        .watch_source(|enqueuer| enqueuer.with(|_, queue| queue.add(key())))
        .watch(&hubs, move |_, queue, _| queue.add(key()))
        .watch(&context.caches.catalogs.sources, move |_, queue, change| {
            if watched.contains(change.key) {
                queue.add(key());
            }
        })
        .reconcile(Controller { context: Arc::clone(&context), defaults, hubs });
}

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        self.reconcile_default_catalogs(key).await
    }
}

impl Controller {
    async fn reconcile_default_catalogs(&self, key: &NamespacedName) -> Result<Action, Error> {
        let hub = self.hubs.get(key);
        let all = OperatorHubSpec::default();
        let spec = hub.as_ref().map_or(&all, |hub| &hub.spec);
        let disabled = decide::disabled(&self.defaults, spec);
        let mut failed = BTreeMap::new();
        let mut last = None;
        for default in &self.defaults {
            let name = &default.metadata.name;
            let present = self.context.caches.catalogs.sources.get(&default.key());
            let disabled = disabled.get(name).copied().unwrap_or_default();
            let action = decide::action(default, disabled, present.as_deref());
            match self.apply(action, default, present.as_deref()).await {
                Err(error) if !error.is_conflict() => {
                    failed.insert(name.clone(), error.message());
                    last = Some(error);
                }
                done => done?,
            }
        }
        if let Some(hub) = hub {
            let mut status = hub.status.clone();
            status.sources = decide::statuses(&self.defaults, &disabled, &failed);
            if let Some(patch) = patch::of_view(&hub, &status)? {
                let cluster = &self.context.cluster;
                let written = cluster.patch_status(HUB, None, &key.name, &patch).await;
                written.during("writing the status of the OperatorHub")?;
            }
        }
        last.map_or(Ok(Action::Done), Err)
    }

    async fn apply(
        &self,
        action: CatalogAction,
        default: &CatalogSource,
        present: Option<&CatalogSource>,
    ) -> Result<(), Error> {
        let cluster = &self.context.cluster;
        let (namespace, name) = (&*default.metadata.namespace, &*default.metadata.name);
        match (action, present) {
            (CatalogAction::Make(wanted), _) => {
                match cluster.create(SOURCE, &wanted.to_object()?).await {
                    // Created already; its arrival in the cache triggers another reconciliation.
                    Err(error) if error.is_already_exists() => Ok(()),
                    created => {
                        created.during("creating a default CatalogSource")?;
                        decision::log(&SOURCE.kind, default.key(), "made", "it is a default");
                        Ok(())
                    }
                }
            }
            (CatalogAction::Restore(wanted), Some(present)) => {
                let (old, new) = (serde_json::to_value(present)?, serde_json::to_value(&wanted)?);
                let Some(mut patch) = patch::between(&old, &new) else { return Ok(()) };
                patch["metadata"]["resourceVersion"] = json!(present.metadata.resource_version);
                let patch = Patch::Merge(patch);
                let restored = cluster.patch(SOURCE, Some(namespace), name, &patch).await;
                restored.during("restoring a default CatalogSource")?;
                let why = "it is a default, and somebody changed it";
                decision::log(&SOURCE.kind, default.key(), "restored", why);
                Ok(())
            }
            (CatalogAction::Remove, Some(present)) => {
                let options = DeleteOptions::uid(&present.metadata.uid);
                let gone = cluster.ensure_deleted(SOURCE, Some(namespace), name, &options).await;
                gone.during("deleting a default CatalogSource")?;
                let why = "the OperatorHub disables it";
                decision::log(&SOURCE.kind, default.key(), "removed", why);
                Ok(())
            }
            (CatalogAction::Leave | CatalogAction::Restore(_) | CatalogAction::Remove, _) => Ok(()),
        }
    }
}
