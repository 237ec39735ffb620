//! The controller of ClusterCatalogs.

use super::content::{CatalogContent, Documents};
use super::decide::{self, Attempt, Outcome, Step};
use super::load;
use super::metrics::LoadResult;
use crate::context::Context;
use crate::error::Error;
use mainstay_api::names::olm_v1::{CATALOG_FINALIZER, CATALOG_NAME_LABEL};
use mainstay_api::{ClusterCatalog, ClusterCatalogStatus, Time, resources};
use mainstay_client::{Action, EventType, Patch, Reconciler};
use mainstay_controller::{Controllers, Enqueuer, WithOperation as _, decision, patch};
use mainstay_image::digest::Digest;
use mainstay_object::NamespacedName;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How many catalogs are loaded at a time. Most of the time they wait for registries; content is created
/// one after the other.
const WORKERS: usize = 16;

struct Controller {
    context: Arc<Context>,
    attempts: Mutex<BTreeMap<NamespacedName, Attempt>>,
    /// Removes content of catalogs that were deleted while no process ran, before anything is loaded.
    cleaned: tokio::sync::OnceCell<()>,
}

/// Registers the controller. `retry` has the first and the longest pause before another attempt.
pub(crate) fn register(controllers: &mut Controllers<Context>, retry: (Duration, Duration)) {
    let context = controllers.context();
    controllers
        .add("cluster_catalog")
        .workers(WORKERS)
        .retry(retry.0, retry.1)
        .watch(&context.catalogs, |context, queue, change| {
            context.catalog_changes.send_modify(|changes| *changes = changes.wrapping_add(1));
            queue.add(change.key.clone());
        })
        .watch_source(|enqueuer| watch_folders(&context, &enqueuer))
        .reconcile(Controller {
            context: Arc::clone(&context),
            attempts: Mutex::default(),
            cleaned: tokio::sync::OnceCell::new(),
        });
}

/// Enqueues a catalog with each change of the catalog folder behind it.
pub(super) fn watch_folders(context: &Context, enqueuer: &Enqueuer<Context>) {
    for (name, folder) in &context.folders {
        let (mut changes, enqueuer) = (folder.changes(), enqueuer.clone());
        let key = NamespacedName::cluster(name.as_str());
        tokio::spawn(async move {
            // Ends when the folder is not followed any more.
            while changes.changed().await.is_ok() {
                enqueuer.with(|_, queue| queue.add(key.clone()));
            }
        });
    }
}

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        self.cleaned.get_or_init(|| remove_unused_content(&self.context)).await;
        let context = &self.context;
        let Some(catalog) = context.catalogs.get(key) else {
            self.forget(key).await;
            return Ok(Action::Done);
        };
        let attempt = self.attempts.lock().get(key).cloned();
        match decide::step(&catalog, attempt.as_ref(), context.clock.now()) {
            Step::Rest => {
                self.forget(key).await;
                Ok(Action::Done)
            }
            Step::Withdraw => self.withdraw(key, &catalog).await,
            Step::Prepare => self.prepare(key, &catalog).await,
            Step::Load => self.load(key, &catalog).await,
            Step::Report(_) if self.has_newer_folder(&catalog) => self.load(key, &catalog).await,
            Step::Report(due) => {
                if let Some(attempt) = attempt {
                    self.report(key, &catalog, &attempt.outcome, None).await?;
                }
                Ok(due.map_or(Action::Done, |due| Action::At(context.clock, due)))
            }
        }
    }
}

impl Controller {
    /// Whether the folder behind a catalog has other content than what is served.
    fn has_newer_folder(&self, catalog: &ClusterCatalog) -> bool {
        let Some(index) = load::folder(&self.context, catalog).and_then(|folder| folder.index())
        else {
            return false;
        };
        let current = self.context.contents.current(&catalog.metadata.name);
        current.is_none_or(|current| current.digest.to_string() != index.catalog().digest())
    }

    /// Stops serving a catalog, and forgets its last attempt.
    async fn forget(&self, key: &NamespacedName) {
        self.attempts.lock().remove(key);
        withdraw(&self.context, &key.name).await;
    }

    async fn withdraw(
        &self,
        key: &NamespacedName,
        catalog: &ClusterCatalog,
    ) -> Result<Action, Error> {
        self.forget(key).await;
        let status = decide::withdrawn(catalog, Time::new(self.context.clock.now()));
        if self.write_status(key, catalog, &status, "withdrawn", "", None).await? {
            // The watch event of this write comes back for the finalizer.
            return Ok(Action::Done);
        }
        if decide::has_finalizer(catalog) {
            let finalizers: Vec<_> = catalog
                .metadata
                .finalizers
                .iter()
                .filter(|name| *name != CATALOG_FINALIZER)
                .collect();
            let patch = json!({"metadata": {
                "resourceVersion": catalog.metadata.resource_version,
                "finalizers": finalizers,
            }});
            self.patch(key, patch, "removing the finalizer of a ClusterCatalog").await?;
        }
        Ok(Action::Done)
    }

    /// Adds the label with the name and the finalizer. The watch event of this write goes on.
    async fn prepare(
        &self,
        key: &NamespacedName,
        catalog: &ClusterCatalog,
    ) -> Result<Action, Error> {
        let metadata = &catalog.metadata;
        let mut patch = json!({"metadata": {
            "resourceVersion": metadata.resource_version,
            "labels": {CATALOG_NAME_LABEL: metadata.name},
        }});
        let switched_off =
            catalog.spec.availability_mode == mainstay_api::AvailabilityMode::Unavailable;
        if !switched_off && !decide::has_finalizer(catalog) {
            let mut finalizers = metadata.finalizers.clone();
            finalizers.push(CATALOG_FINALIZER.to_owned());
            patch["metadata"]["finalizers"] = json!(finalizers);
        }
        self.patch(key, patch, "writing the label and finalizer of a ClusterCatalog").await?;
        Ok(Action::Done)
    }

    async fn load(&self, key: &NamespacedName, catalog: &ClusterCatalog) -> Result<Action, Error> {
        let context = &self.context;
        if load::is_being_read(context, catalog) {
            return Ok(Action::Done);
        }
        self.serve_stored(key, catalog).await;
        let started = context.clock.elapsed();
        let loaded = tokio::select! {
            loaded = load::load(context, catalog) => loaded,
            // The spec that is being loaded is not wanted any more.
            () = self.superseded(key, catalog) => return Ok(Action::After(Duration::ZERO)),
        };
        let before = context.contents.current(&key.name);
        let (result, outcome, explanation) = match &loaded {
            Ok(loaded) => {
                let same = before.is_some_and(|before| before.digest == loaded.content.digest);
                let result = if same { LoadResult::Unchanged } else { LoadResult::Loaded };
                let unpacked = jiff::Timestamp::try_from(loaded.content.modified());
                let unpacked = Time::new(unpacked.unwrap_or_else(|_| context.clock.now()));
                let resolved = loaded.resolved.clone();
                (result, Outcome::Loaded { resolved, unpacked }, None)
            }
            Err(failure) => {
                let message = failure.to_string();
                let outcome = if failure.is_terminal() {
                    Outcome::Blocked { message }
                } else {
                    Outcome::Retrying { message }
                };
                (LoadResult::Failed, outcome, failure.explanation())
            }
        };
        let took = context.clock.elapsed().saturating_sub(started);
        context.load_counters.count(result, took);
        if let Ok(loaded) = &loaded
            && result == LoadResult::Loaded
        {
            serve(context, &key.name, loaded.content.clone()).await;
        }
        let attempt = Attempt {
            uid: catalog.metadata.uid.clone(),
            generation: catalog.metadata.generation,
            time: context.clock.now(),
            outcome: outcome.clone(),
        };
        self.attempts.lock().insert(key.clone(), attempt.clone());
        self.report(key, catalog, &outcome, explanation).await?;
        match loaded {
            Err(failure) if !failure.is_terminal() => Err(Error::Content(failure.to_string())),
            _ => match decide::step(catalog, Some(&attempt), context.clock.now()) {
                Step::Report(Some(due)) => Ok(Action::At(context.clock, due)),
                _ => Ok(Action::Done),
            },
        }
    }

    /// Serves the stored content that the status names, before the registry is asked: after a restart,
    /// readers do not wait for it.
    async fn serve_stored(&self, key: &NamespacedName, catalog: &ClusterCatalog) {
        if self.context.contents.current(&key.name).is_some() {
            return;
        }
        let resolved = catalog.status.resolved_source.as_ref();
        let digest = resolved.and_then(|source| source.image.reference.split_once('@'));
        let Some(digest) = digest.and_then(|(_, digest)| digest.parse::<Digest>().ok()) else {
            return;
        };
        if let Some(stored) = load::open(&self.context, &digest).await {
            let content = CatalogContent { digest, documents: Documents::Stored(stored) };
            serve(&self.context, &key.name, content).await;
        }
    }

    /// Returns once the object has another spec, is another object, is being deleted, or is gone.
    async fn superseded(&self, key: &NamespacedName, catalog: &ClusterCatalog) {
        let wanted = &catalog.metadata;
        let mut changes = self.context.catalog_changes.subscribe();
        loop {
            let current = self.context.catalogs.get(key);
            let same = current.is_some_and(|current| {
                let metadata = &current.metadata;
                metadata.uid == wanted.uid
                    && metadata.generation == wanted.generation
                    && metadata.deletion_timestamp.is_none()
            });
            if !same || changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Writes the status after an attempt.
    async fn report(
        &self,
        key: &NamespacedName,
        catalog: &ClusterCatalog,
        outcome: &Outcome,
        explanation: Option<String>,
    ) -> Result<(), Error> {
        let context = &self.context;
        let now = Time::new(context.clock.now());
        let status = decide::reported(catalog, outcome, &context.external_address, now);
        let (decision, why) = match outcome {
            Outcome::Loaded { resolved, .. } => ("serving", resolved),
            Outcome::Retrying { message } => ("retrying", message),
            Outcome::Blocked { message } => ("blocked", message),
        };
        let event = match outcome {
            Outcome::Loaded { resolved, .. } => {
                let text = format!("the content of {resolved} is served");
                (EventType::Normal, "Serving", text)
            }
            Outcome::Retrying { message } => (EventType::Warning, "Retrying", message.clone()),
            Outcome::Blocked { message } => (EventType::Warning, "Blocked", message.clone()),
        };
        let event = match explanation {
            Some(more) if !event.2.contains(&more) => {
                (event.0, event.1, format!("{}: {more}", event.2))
            }
            _ => event,
        };
        self.write_status(key, catalog, &status, decision, why, Some(event)).await?;
        Ok(())
    }

    /// Writes a status if it differs, and returns whether it did. An Event says what changed.
    async fn write_status(
        &self,
        key: &NamespacedName,
        catalog: &ClusterCatalog,
        status: &ClusterCatalogStatus,
        decision: &str,
        why: &str,
        event: Option<(EventType, &'static str, String)>,
    ) -> Result<bool, Error> {
        let Some(patch) = patch::of_view(catalog, status)? else { return Ok(false) };
        let context = &self.context;
        let resource = &resources::CLUSTER_CATALOG;
        let written = context.cluster.patch_status(resource, None, &key.name, &patch).await;
        written.during("writing the status of a ClusterCatalog")?;
        decision::log("ClusterCatalog", &key.name, decision, why);
        let reported = |status: &ClusterCatalogStatus| {
            let summary = |condition: &mainstay_api::Condition| {
                (condition.kind.clone(), condition.status.clone(), condition.message.clone())
            };
            let conditions: Vec<_> = status.conditions.iter().map(summary).collect();
            (conditions, status.resolved_source.clone())
        };
        if let Some((kind, reason, message)) = event
            && reported(&catalog.status) != reported(status)
        {
            context.recorder.publish(&catalog.to_object()?, kind, reason, message);
        }
        Ok(true)
    }

    async fn patch(
        &self,
        key: &NamespacedName,
        patch: serde_json::Value,
        operation: &'static str,
    ) -> Result<(), Error> {
        let resource = &resources::CLUSTER_CATALOG;
        let patch = Patch::Merge(patch);
        match self.context.cluster.patch(resource, None, &key.name, &patch).await {
            // The object went meanwhile, with all of its finalizers.
            Err(error) if error.is_not_found() => Ok(()),
            written => Ok(written.map(drop).during(operation)?),
        }
    }
}

/// Serves content for a catalog in place of what it served before.
pub(super) async fn serve(context: &Arc<Context>, name: &Arc<str>, content: CatalogContent) {
    let (shared, name) = (Arc::clone(context), Arc::clone(name));
    // It ends unexpectedly only when the process does.
    let _ = tokio::task::spawn_blocking(move || shared.contents.serve(&name, content)).await;
    context.served_changes.send_modify(|changes| *changes = changes.wrapping_add(1));
}

/// Stops serving a catalog.
pub(super) async fn withdraw(context: &Arc<Context>, name: &Arc<str>) {
    if context.contents.is_announced(name) {
        let (context, name) = (Arc::clone(context), Arc::clone(name));
        // It ends unexpectedly only when the process does.
        let _ = tokio::task::spawn_blocking(move || context.contents.withdraw(&name)).await;
    }
}

/// Removes the content of catalogs that do not exist any more.
pub(super) async fn remove_unused_content(context: &Arc<Context>) {
    for name in context.contents.announced() {
        if context.catalogs.get(&NamespacedName::cluster(&*name)).is_none() {
            withdraw(context, &name).await;
        }
    }
    let digests: BTreeSet<Digest> = context
        .catalogs
        .list(None)
        .iter()
        .filter_map(|(_, catalog)| {
            let resolved = catalog.status.resolved_source.as_ref()?;
            resolved.image.reference.split_once('@')?.1.parse().ok()
        })
        .collect();
    let context = Arc::clone(context);
    let remove = move || context.contents.remove_except(&digests);
    // It ends unexpectedly only when the process does.
    let _ = tokio::task::spawn_blocking(remove).await;
}
