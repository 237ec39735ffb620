//! Keeps default catalogs as the `OperatorHub` wants them.

use super::DefaultSources;
use super::decide::{self, Deed};
use crate::context::Context;
use crate::error::{Doing, Error, settle};
use crate::patch;
use crate::told;
use mainstay_api::{CatalogSource, OperatorHub, OperatorHubSpec, View, names, resources};
use mainstay_client::{
    Action, Cache, ControllerHandle, DeleteOptions, Patch, Reconciler, Selection,
};
use mainstay_object::{NamespacedName, Resource};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const SOURCE: &Resource = &resources::CATALOG_SOURCE;
const HUB: &Resource = &resources::OPERATOR_HUB;

/// Reconciles all default catalogs; the only key is that of the `OperatorHub`.
struct Controller {
    context: Arc<Context>,
    defaults: Vec<CatalogSource>,
    hubs: Cache<OperatorHub>,
}

/// Starts to keep these catalogs. The definition of `OperatorHub` should be established.
pub(crate) fn start(
    context: &Arc<Context>,
    defaults: DefaultSources,
    stop: &CancellationToken,
) -> ControllerHandle<NamespacedName> {
    let defaults = defaults.within(&context.global);
    let hubs = Cache::start(
        &context.cluster,
        Selection::all(HUB.clone()).fields(format!("metadata.name={}", names::OPERATOR_HUB)),
        |it| OperatorHub::from_object(it).ok(),
        stop.clone(),
    );
    let controller = mainstay_client::Controller::new("operator_hub")
        .reads(&hubs)
        .reads(&context.caches.sources);
    let key = || NamespacedName::cluster(names::OPERATOR_HUB);
    let queue = controller.queue();
    // Where there is no OperatorHub, all defaults are wanted.
    queue.add(key());
    hubs.subscribe(move |_| queue.add(key()));
    let queue = controller.queue();
    let watched: Vec<NamespacedName> = defaults.iter().map(View::key).collect();
    context.caches.sources.subscribe(move |change| {
        if watched.contains(change.key) {
            queue.add(key());
        }
    });
    let reconciler = Controller { context: Arc::clone(context), defaults, hubs };
    controller.start(reconciler, stop.clone())
}

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        settle(self.look(key).await)
    }
}

impl Controller {
    async fn look(&self, key: &NamespacedName) -> Result<Action, Error> {
        let hub = self.hubs.get(key);
        let all = OperatorHubSpec::default();
        let spec = hub.as_ref().map_or(&all, |it| &it.spec);
        let disabled = decide::disabled(&self.defaults, spec);
        let mut failed = BTreeMap::new();
        let mut last = None;
        for default in &self.defaults {
            let name = &default.metadata.name;
            let present = self.context.caches.sources.get(&default.key());
            let disabled = disabled.get(name).copied().unwrap_or_default();
            let deed = decide::deed(default, disabled, present.as_deref());
            match self.apply(deed, default, present.as_deref()).await {
                Err(error) if !error.is_conflict() => {
                    failed.insert(name.clone(), error.said());
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
                written.doing("writing the status of the OperatorHub")?;
            }
        }
        last.map_or(Ok(Action::Done), Err)
    }

    async fn apply(
        &self,
        deed: Deed,
        default: &CatalogSource,
        present: Option<&CatalogSource>,
    ) -> Result<(), Error> {
        let cluster = &self.context.cluster;
        let (namespace, name) = (&*default.metadata.namespace, &*default.metadata.name);
        match (deed, present) {
            (Deed::Make(wanted), _) => {
                match cluster.create(SOURCE, &wanted.to_object()?).await {
                    // Made a moment ago; once it is seen, it is decided again.
                    Err(error) if error.is_already_exists() => Ok(()),
                    made => {
                        made.doing("making a default catalog")?;
                        told::decided(&SOURCE.kind, default.key(), "made", "it is a default");
                        Ok(())
                    }
                }
            }
            (Deed::Restore(wanted), Some(present)) => {
                let (old, new) = (serde_json::to_value(present)?, serde_json::to_value(&wanted)?);
                let Some(mut patch) = patch::between(&old, &new) else { return Ok(()) };
                patch["metadata"]["resourceVersion"] = json!(present.metadata.resource_version);
                let patch = Patch::Merge(patch);
                let restored = cluster.patch(SOURCE, Some(namespace), name, &patch).await;
                restored.doing("restoring a default catalog")?;
                let why = "it is a default, and somebody changed it";
                told::decided(&SOURCE.kind, default.key(), "restored", why);
                Ok(())
            }
            (Deed::Remove, Some(present)) => {
                let options = DeleteOptions::uid(&present.metadata.uid);
                let gone = cluster.ensure_deleted(SOURCE, Some(namespace), name, &options).await;
                gone.doing("removing a default catalog")?;
                let why = "the OperatorHub disables it";
                told::decided(&SOURCE.kind, default.key(), "removed", why);
                Ok(())
            }
            (Deed::Leave | Deed::Restore(_) | Deed::Remove, _) => Ok(()),
        }
    }
}
