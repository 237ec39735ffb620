//! CatalogSource controller: writes what the store knows onto the status, publishes Events, and creates
//! the pods of catalogs that run as pods.

use crate::context::{CatalogContext, OwnedObject, SharedCaches};
use crate::error::Error;
use crate::pods::{self, CatalogPod};
use crate::{status, template};
use mainstay_api::{CatalogSource, CatalogSourceReason, CatalogSourceStatus, Time, resources};
use mainstay_client::{Action, DeleteOptions, Patch, Reconciler};
use mainstay_controller::{
    Controllers, KeyQueue, ReconcileError as _, WithOperation as _, decision, either_side, patch,
};
use mainstay_object::{NamespacedName, OwnerReference, builtin};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How often the controller requests the version of the cluster for image templates.
const SERVER_VERSION_INTERVAL: Duration = Duration::from_mins(5);

/// Reconciles `CatalogSources`.
pub(crate) struct Controller {
    context: CatalogContext,
    /// The last failure of each registry that cannot be reached.
    last_failures: Mutex<HashMap<NamespacedName, String>>,
}

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        self.reconcile_catalog_source(key).await
    }
}

impl Controller {
    pub(crate) fn new(context: CatalogContext) -> Self {
        Self { context, last_failures: Mutex::default() }
    }

    async fn reconcile_catalog_source(&self, key: &NamespacedName) -> Result<Action, Error> {
        let context = &self.context;
        let Some(source) = context.caches.sources.get(key) else {
            context.store.stop_following(key);
            self.last_failures.lock().remove(key);
            return Ok(Action::Done);
        };
        if source.metadata.deletion_timestamp.is_some() {
            return Ok(Action::Done);
        }
        let now = Time::new(context.clock.now());
        let version = match template::template(&source) {
            Some(_) => context.cluster.server_version().await,
            None => None,
        };
        let (image, conditions) = template::apply(&source, version.as_deref(), now);
        if let Some(image) = image {
            let patch = Patch::Merge(json!({
                "metadata": {"resourceVersion": source.metadata.resource_version},
                "spec": {"image": image},
            }));
            context
                .cluster
                .patch(&resources::CATALOG_SOURCE, key.namespace(), &key.name, &patch)
                .await
                .during("writing the image of a CatalogSource")?;
            // The watch event of this write reconciles the CatalogSource with the new image.
            return Ok(Action::Done);
        }
        context.store.follow_source(&source);
        let refused = self.ensure_pod(key, &source).await;
        let state = context.store.state(key);
        let mut status = status::status(&source, state.as_ref(), now);
        status.conditions = conditions;
        if let Err(error) = &refused
            && !error.is_conflict()
        {
            status.reason = CatalogSourceReason::RegistryServer;
            let said = error.message();
            status.message = format!("couldn't ensure registry server - {error}: {said}");
        }
        let failure = state.as_ref().and_then(|state| state.failure.as_deref());
        self.write_status(key, &source, &status, failure).await?;
        self.report_new_failure(key, &source, &status, failure)?;
        refused.map(|()| match version {
            // No watch reports a new version of the cluster.
            Some(_) => Action::After(SERVER_VERSION_INTERVAL),
            None => Action::Done,
        })
    }

    async fn write_status(
        &self,
        key: &NamespacedName,
        source: &CatalogSource,
        status: &CatalogSourceStatus,
        failure: Option<&str>,
    ) -> Result<(), Error> {
        let context = &self.context;
        let Some(patch) = patch::of_view(source, status)? else { return Ok(()) };
        context
            .cluster
            .patch_status(&resources::CATALOG_SOURCE, key.namespace(), &key.name, &patch)
            .await
            .during("writing the status of a CatalogSource")?;
        let state = |status: &CatalogSourceStatus| {
            let state = status
                .connection_state
                .as_ref()
                .map(|connection| connection.last_observed_state.to_string());
            (state.unwrap_or_default(), status.message.clone())
        };
        let (before, after) = (state(&source.status), state(status));
        if before != after {
            let why = failure.unwrap_or(&after.1);
            decision::log("CatalogSource", key, &after.0, why);
        }
        if let Some((kind, reason, message)) = status::status_event(&source.status, status, failure)
        {
            context.recorder.publish(&source.to_object()?, kind, reason, message);
        }
        Ok(())
    }

    /// Publishes an Event if a registry that cannot be reached has a new failure: the status has no
    /// field for it.
    fn report_new_failure(
        &self,
        key: &NamespacedName,
        source: &CatalogSource,
        status: &CatalogSourceStatus,
        failure: Option<&str>,
    ) -> Result<(), Error> {
        let why = failure.filter(|_| {
            status::is_unreachable(status) && !status::is_content_failure(&status.reason)
        });
        let mut last_failures = self.last_failures.lock();
        let last = match why {
            Some(why) => last_failures.insert(key.clone(), why.to_owned()),
            None => last_failures.remove(key),
        };
        drop(last_failures);
        let Some((why, last)) = why.zip(last).filter(|_| status::is_unreachable(&source.status))
        else {
            return Ok(());
        };
        if *why != *last {
            let (kind, reason, message) = status::unreadable_event(why);
            self.context.recorder.publish(&source.to_object()?, kind, reason, message);
        }
        Ok(())
    }

    /// Ensures the objects of a catalog that runs as a pod, and the owner reference of its
    /// ConfigMap.
    async fn ensure_pod(&self, key: &NamespacedName, source: &CatalogSource) -> Result<(), Error> {
        let context = &self.context;
        let cluster = &context.cluster;
        let map = context.store.state(key).and_then(|state| state.config_map);
        if let Some(map) = &map
            && !(map.labelled && map.owners.contains(&source.metadata.uid))
        {
            let name = &source.spec.config_map;
            let found = cluster.find(&builtin::CONFIG_MAP, key.namespace(), name).await;
            let found = found.during("reading the ConfigMap of a catalog")?;
            if let Some(mut patch) =
                found.as_ref().and_then(|config_map| pods::ownership_patch(source, config_map))
            {
                let version =
                    found.as_ref().map(|config_map| config_map.resource_version().to_owned());
                patch["metadata"]["resourceVersion"] = json!(version);
                let patch = Patch::Merge(patch);
                cluster
                    .patch(&builtin::CONFIG_MAP, key.namespace(), name, &patch)
                    .await
                    .during("writing the owner of a ConfigMap")?;
            }
            // The watch event of this write reconciles the CatalogSource again.
            return Ok(());
        }
        if !context.store.runs_as_pod(source)
            || (map.is_none() && !source.spec.config_map.is_empty())
        {
            return Ok(());
        }
        let Some(cache) = &context.caches.pods else { return Ok(()) };
        let labels = (context.namespace_labels)(&key.namespace);
        let version = map.as_ref().map(|config_map| config_map.version.as_str());
        let Some(objects) = pods::catalog_objects(source, version, &labels, context.store.pods())
        else {
            return Ok(());
        };
        for (resource, object) in &objects.prerequisites {
            let what = "error ensuring what a catalog needs";
            let mut object = object.clone();
            if *resource == builtin::SERVICE_ACCOUNT {
                // Some clusters add pull secrets of their own.
                let found = cluster.find(resource, key.namespace(), object.name()).await;
                pods::merge_pull_secrets(&mut object, found.during(what)?.as_ref());
            }
            cluster.ensure(resource, &object).await.during(what)?;
        }
        let pods: Vec<(NamespacedName, CatalogPod)> = cache
            .list(key.namespace())
            .into_iter()
            .filter(|(_, pod)| *pod.catalog == *key.name)
            .map(|(key, pod)| (key, CatalogPod::clone(&pod)))
            .collect();
        let (outdated, create) = pods::select_pods(&objects.pod, &source.metadata.uid, &pods);
        for (pod, catalog_pod) in outdated {
            let mut options = DeleteOptions::uid(catalog_pod.uid.as_str());
            options.grace_period_seconds = Some(i64::from(!catalog_pod.ended));
            let deleted =
                cluster.ensure_deleted(&builtin::POD, key.namespace(), &pod.name, &options).await;
            deleted.during("error deleting old pod")?;
        }
        if create {
            let created = cluster.create(&builtin::POD, &objects.pod).await;
            let created = created.during("error creating new pod")?;
            // The next reconciliation must see the new Pod.
            cache.wait_for_revision(created.resource_version()).await;
        }
        let service = cluster.ensure(&builtin::SERVICE, &objects.service).await;
        service.during("error ensuring service")?;
        Ok(())
    }
}

/// Registers the controller with its watches: CatalogSources, the store, and the objects of catalog
/// pods.
pub fn register<C, Account, Role, Binding>(
    controllers: &mut Controllers<C>,
    context: CatalogContext,
    shared: &SharedCaches<'_, Account, Role, Binding>,
) where
    C: Send + Sync + 'static,
    Account: OwnedObject,
    Role: OwnedObject,
    Binding: OwnedObject,
{
    let caches = &context.caches;
    // Only catalog pods need these objects.
    let runs = caches.pods.is_some();
    controllers
        .add("catalog_source")
        .watch(&caches.sources, |_, queue, change| queue.add(change.key.clone()))
        .watch_source(|enqueuer| {
            let add = move |key: &NamespacedName| enqueuer.with(|_, queue| queue.add(key.clone()));
            context.store.subscribe(add);
        })
        .watch_if_there(caches.pods.as_ref(), |_, queue, change| {
            for pod in either_side(change) {
                let namespace = Arc::clone(&change.key.namespace);
                queue.add(NamespacedName::new(namespace, pod.catalog()));
            }
        })
        .watch_if_there(caches.services.as_ref(), |_, queue, change| {
            either_side(change)
                .for_each(|service| enqueue_owner(queue, change.key, &service.owners));
        })
        .watch_if_there(caches.policies.as_ref(), |_, queue, change| {
            either_side(change).for_each(|policy| enqueue_owner(queue, change.key, &policy.owners));
        })
        .watch_if_there(runs.then_some(shared.accounts), |_, queue, change| {
            either_side(change)
                .for_each(|account| enqueue_owner(queue, change.key, account.owners()));
        })
        .watch_if_there(runs.then_some(shared.roles), |_, queue, change| {
            either_side(change).for_each(|role| enqueue_owner(queue, change.key, role.owners()));
        })
        .watch_if_there(runs.then_some(shared.bindings), |_, queue, change| {
            either_side(change)
                .for_each(|binding| enqueue_owner(queue, change.key, binding.owners()));
        })
        .reconcile(Controller::new(context));
}

/// Enqueues the CatalogSource that owns an object.
fn enqueue_owner(queue: &KeyQueue, key: &NamespacedName, owners: &[OwnerReference]) {
    if let Some(name) = pods::owning_catalog(owners) {
        queue.add(NamespacedName::new(Arc::clone(&key.namespace), name));
    }
}
