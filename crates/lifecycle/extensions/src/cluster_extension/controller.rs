//! The controller of ClusterExtensions.

use super::account;
use super::attempt::{AppliedObjects, Attempt};
use super::dependencies;
use super::finalizers;
use super::memory::{Memory, Next, Retry};
use super::readiness;
use super::resolve::{self, CatalogInput};
use super::status::{self, Outcome, Report};
use crate::context::Context;
use crate::error::Error;
use mainstay_api::names::olm_v1::OWNER_NAME_LABEL;
use mainstay_api::{ClusterExtension, Time, resources};
use mainstay_client::{Action, Backoff, EventType, Reconciler};
use mainstay_controller::{Controllers, KeyQueue, WithOperation as _, decision, patch};
use mainstay_object::NamespacedName;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

/// How many extensions are reconciled at a time.
const WORKERS: usize = 8;
/// How long after its start the process waits for catalogs that it served before, so that no status says for
/// a moment that they are not there.
const LOADING_TIME: Duration = Duration::from_secs(30);

struct Controller {
    context: Arc<Context>,
    memories: Mutex<HashMap<NamespacedName, Memory>>,
    retry: Backoff,
}

/// Registers the controller. `retry` has the first and the longest pause before another attempt.
pub(crate) fn register(controllers: &mut Controllers<Context>, retry: (Duration, Duration)) {
    let context = controllers.context();
    let controller = controllers.add("cluster_extension").workers(WORKERS);
    let controller = match &context.approved_accounts {
        Some(accounts) => accounts.watch_with(controller),
        None => controller,
    };
    controller
        .watch(&context.extensions, |context, queue, change| {
            queue.add(change.key.clone());
            dependencies::enqueue_dependents(context, queue, change);
        })
        .watch(&context.releases, |_, queue, change| {
            for release in mainstay_controller::either_side(change) {
                queue.add(NamespacedName::cluster(&*release.extension));
            }
        })
        .watch(&context.deployments, |_, queue, change| {
            for deployment in mainstay_controller::either_side(change) {
                queue.add(NamespacedName::cluster(&*deployment.extension));
            }
        })
        .watch_if_there(context.object_sets.as_ref(), |_, queue, change| {
            for set in mainstay_controller::either_side(change) {
                if let Some(extension) = set.metadata.labels.get(OWNER_NAME_LABEL) {
                    queue.add(NamespacedName::cluster(&**extension));
                }
            }
        })
        .watch(&context.catalogs, |context, queue, _| enqueue_all(context, queue))
        .watch_source(|enqueuer| {
            context.managed.notify(enqueuer.clone());
            context.established_crds.notify(enqueuer.clone());
            let mut served = context.served_changes.subscribe();
            tokio::spawn(async move {
                // Ends with the subsystem.
                while served.changed().await.is_ok() {
                    enqueuer.with(enqueue_all);
                }
            });
        })
        .reconcile(Controller {
            context: Arc::clone(&context),
            memories: Mutex::default(),
            retry: Backoff::new(retry.0, retry.1),
        });
}

/// A change of a catalog concerns each extension that may choose from it. Those whose package did not
/// change cost no request.
fn enqueue_all(context: &Context, queue: &KeyQueue) {
    for (key, _) in context.extensions.list(None) {
        queue.add(key);
    }
}

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        let context = &self.context;
        let Some(extension) = context.extensions.get(key) else {
            self.memories.lock().remove(key);
            return Ok(Action::Done);
        };
        if extension.metadata.deletion_timestamp.is_some() {
            self.memories.lock().remove(key);
            finalizers::remove(context, &extension).await?;
            return Ok(Action::Done);
        }
        if finalizers::add(context, &extension).await? {
            // The watch event of this write goes on.
            return Ok(Action::Done);
        }
        let package = extension.spec.source.catalog.as_ref();
        let package = package.map(|filter| &*filter.package_name).unwrap_or_default();
        let catalogs = resolve::read_catalogs(context, package).await;
        if catalogs.is_loading() {
            let since = context.clock.elapsed().saturating_sub(context.started);
            let wait = LOADING_TIME.saturating_sub(since);
            if !wait.is_zero() {
                // The catalog enqueues the extension once it is there.
                return Ok(Action::After(wait));
            }
        }
        let input = fingerprint(context, &extension, &catalogs);
        let memory = self.memories.lock().get(key).cloned();
        let memory = memory.filter(|memory| {
            let checked = memory.dependencies.as_ref();
            memory.input == input
                && checked.is_none_or(|checked| checked.is_current(context, &extension))
        });
        if let Some(memory) = &memory
            && let Some(action) = self.unchanged_action(key, &extension, memory)
        {
            self.report(&extension, &memory.outcome).await?;
            return Ok(action);
        }
        let _turn = context.turns.of(package).await;
        if !is_current(context.extensions.get(key).as_deref(), &extension) {
            // The event of the change enqueued it meanwhile.
            return Ok(Action::After(Duration::ZERO));
        }
        let attempt = Attempt::new(context, &extension, &catalogs);
        let (outcome, result) = Box::pin(attempt.run()).await;
        let retry = || {
            let last = memory.and_then(|memory| memory.next.retry());
            let failures = last.map_or(0, |retry| retry.failures);
            let due = context.clock.elapsed().saturating_add(self.retry.wait_after(failures));
            Retry { due, failures: failures.saturating_add(1) }
        };
        let next = match result {
            Ok(AppliedObjects { keys, is_stale, renew_at, .. }) => Next::Unchanged {
                objects: Arc::new(keys),
                releases: self.release_fingerprint(key),
                retry: is_stale.then(retry),
                renew_at,
            },
            Err(failure) if failure.is_retried() => Next::Retry(retry()),
            Err(_) => Next::Blocked { renew_at: attempt.next_renewal().await },
        };
        let action = next.action(context.clock);
        let dependencies = attempt.dependencies.into_inner();
        let account = attempt.account.into_inner();
        let memory = Memory { input, dependencies, account, outcome, next };
        // Before the report: a conflict there does not undo the attempt.
        self.memories.lock().insert(key.clone(), memory.clone());
        self.report(&extension, &memory.outcome).await?;
        Ok(action)
    }
}

/// Whether an extension has still the spec that an attempt would be made for.
fn is_current(now: Option<&ClusterExtension>, read: &ClusterExtension) -> bool {
    now.is_some_and(|now| {
        let (now, read) = (&now.metadata, &read.metadata);
        (&now.uid, now.generation, now.deletion_timestamp)
            == (&read.uid, read.generation, read.deletion_timestamp)
    })
}

/// A fingerprint of all that a reconciliation depends on, but releases and objects.
fn fingerprint(context: &Context, extension: &ClusterExtension, catalogs: &CatalogInput) -> u64 {
    let mut hasher = DefaultHasher::new();
    let metadata = &extension.metadata;
    (&metadata.uid, metadata.generation).hash(&mut hasher);
    (&metadata.labels, &metadata.annotations).hash(&mut hasher);
    catalogs.fingerprint.hash(&mut hasher);
    if let Some(sets) = &context.object_sets {
        for (key, set) in sets.indexed(&metadata.name) {
            (key, &set.metadata.resource_version).hash(&mut hasher);
        }
    }
    if let Some(accounts) = &context.approved_accounts {
        accounts.hash(extension, &mut hasher);
    }
    hasher.finish()
}

impl Controller {
    /// What to do without another attempt; none if one is needed. The input is that of the last one.
    fn unchanged_action(
        &self,
        key: &NamespacedName,
        extension: &ClusterExtension,
        memory: &Memory,
    ) -> Option<Action> {
        let (context, next) = (&self.context, &memory.next);
        if next.is_due(context.clock) {
            return None;
        }
        let accounts = context.approved_accounts.as_ref().zip(memory.account.as_ref());
        let is_same_account =
            || accounts.is_none_or(|(accounts, state)| accounts.is_untouched(extension, state));
        let is_same = match next {
            Next::Unchanged { objects, releases, .. } => {
                *releases == self.release_fingerprint(key)
                    && context.managed.are_untouched(&account::name(context, extension), objects)
                    && is_same_account()
            }
            Next::Blocked { .. } => is_same_account(),
            // The next attempt looks at everything.
            Next::Retry(_) => true,
        };
        is_same.then(|| next.action(context.clock))
    }

    /// A fingerprint of the releases of an extension.
    fn release_fingerprint(&self, key: &NamespacedName) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (_, release) in self.context.releases.indexed(&key.name) {
            release.hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Writes the status if it differs.
    async fn report(&self, extension: &ClusterExtension, outcome: &Outcome) -> Result<(), Error> {
        let context = &self.context;
        let now = Time::new(context.clock.now());
        let mut status = status::after(extension, outcome, now);
        let deployments = context.deployments.indexed(&extension.metadata.name);
        let deployments = deployments.iter().map(|(_, deployment)| &**deployment);
        readiness::set_ready(&mut status, extension.metadata.generation, deployments, now);
        let Some(patch) = patch::of_view(extension, &status)? else { return Ok(()) };
        let (resource, name) = (&resources::CLUSTER_EXTENSION, &*extension.metadata.name);
        let written = match context.cluster.patch_status(resource, None, name, &patch).await {
            Err(error) if error.is_not_found() => return Ok(()),
            written => written.during("writing the status of a ClusterExtension")?,
        };
        // A Deployment that is available meanwhile causes the next reconciliation, which would write on top of the
        // status before this one, and conflict.
        context.extensions.wait_for_revision(written.resource_version()).await;
        if readiness::is_only_change(&extension.status, &status) {
            if let Some((decision, why)) = readiness::report(&status) {
                decision::log("ClusterExtension", name, decision, why);
            }
            return Ok(());
        }
        let differs = status::differs(&extension.status, &status);
        if let Some(why) = account::ignored(context, extension).filter(|_| differs) {
            let event = (EventType::Warning, "ServiceAccountIgnored");
            context.recorder.publish(&extension.to_object()?, event.0, event.1, why);
        }
        let Some(Report { decision, event, why }) = status::report(outcome) else { return Ok(()) };
        decision::log("ClusterExtension", name, decision, &why);
        if differs {
            context.recorder.publish(&extension.to_object()?, event.0, event.1, why);
        }
        Ok(())
    }
}
