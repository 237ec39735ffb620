//! The controller of ClusterExtensions.

use super::account;
use super::apply::{self, ObjectKey, Operation, ReleaseMarks, WantedObject};
use super::bundle;
use super::failure::Failure;
use super::finalizers;
use super::memory::{Memory, Next, Retry};
use super::preflight;
use super::readiness;
use super::releases::{self, History, ReleasePlan};
use super::renewals;
use super::resolve::{self, CatalogInput, Resolution};
use super::status::{self, Deprecations, Installed, InstalledBundle, Outcome, Progress, Report};
use crate::account_client::AccountClient;
use crate::context::Context;
use crate::error::Error;
use mainstay_api::names::olm_v1::OWNER_NAME_LABEL;
use jiff::Timestamp;
use mainstay_api::{ClusterExtension, Time, resources};
use mainstay_client::{Action, Backoff, Reconciler};
use mainstay_controller::{
    Controllers, KeyQueue, WithOperation as _, api_message, decision, patch,
};
use mainstay_object::{NamespacedName, Object};
use mainstay_permissions::ExtensionApplier;
use mainstay_resolver::extension::{ExtensionChoice, InstalledExtensionBundle};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
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
    controllers
        .add("cluster_extension")
        .workers(WORKERS)
        .watch(&context.extensions, |_, queue, change| queue.add(change.key.clone()))
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
        let memory = memory.filter(|memory| memory.input == input);
        if let Some(memory) = &memory
            && let Some(action) = self.unchanged_action(key, &extension, &memory.next)
        {
            self.report(&extension, &memory.outcome).await?;
            return Ok(action);
        }
        let _turn = context.turns.of(package).await;
        if !is_current(context.extensions.get(key).as_deref(), &extension) {
            // The event of the change enqueued it meanwhile.
            return Ok(Action::After(Duration::ZERO));
        }
        let attempt = Attempt { context, extension: &extension, input: &catalogs };
        let (outcome, result) = Box::pin(attempt.run()).await;
        let retry = || {
            let last = memory.and_then(|memory| memory.next.retry());
            let failures = last.map_or(0, |retry| retry.failures);
            let due = context.clock.elapsed().saturating_add(self.retry.wait_after(failures));
            Retry { due, failures: failures.saturating_add(1) }
        };
        let next = match result {
            Ok(AppliedObjects { keys, is_stale, renew_at }) => Next::Unchanged {
                objects: Arc::new(keys),
                releases: self.release_fingerprint(key),
                retry: is_stale.then(retry),
                renew_at,
            },
            Err(failure) if failure.is_retried() => Next::Retry(retry()),
            Err(_) => Next::Blocked,
        };
        let action = next.action(context.clock);
        let memory = Memory { input, outcome, next };
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
    hasher.finish()
}

impl Controller {
    /// What to do without another attempt; none if one is needed. The input is that of the last one.
    fn unchanged_action(
        &self,
        key: &NamespacedName,
        extension: &ClusterExtension,
        next: &Next,
    ) -> Option<Action> {
        if next.is_due(self.context.clock) {
            return None;
        }
        if let Next::Unchanged { objects, releases, .. } = next {
            let account = account::name(&self.context, extension);
            let is_same = *releases == self.release_fingerprint(key)
                && self.context.managed.are_untouched(&account, objects);
            if !is_same {
                return None;
            }
        }
        Some(next.action(self.context.clock))
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
        match context.cluster.patch_status(resource, None, name, &patch).await {
            Err(error) if error.is_not_found() => return Ok(()),
            written => written.map(drop).during("writing the status of a ClusterExtension")?,
        }
        if readiness::is_only_change(&extension.status, &status) {
            if let Some((decision, why)) = readiness::report(&status) {
                decision::log("ClusterExtension", name, decision, why);
            }
            return Ok(());
        }
        let Some(Report { decision, event, why }) = status::report(outcome) else { return Ok(()) };
        decision::log("ClusterExtension", name, decision, &why);
        if status::differs(&extension.status, &status) {
            context.recorder.publish(&extension.to_object()?, event.0, event.1, why);
        }
        Ok(())
    }
}

/// One reconciliation of an extension.
pub(super) struct Attempt<'a> {
    pub(super) context: &'a Arc<Context>,
    pub(super) extension: &'a ClusterExtension,
    pub(super) input: &'a CatalogInput,
}

/// The objects of an extension, or why they are not as its spec says.
pub(super) type Applied = Result<AppliedObjects, Failure>;

/// The objects of an extension.
#[derive(Debug, Default)]
pub(super) struct AppliedObjects {
    pub(super) keys: BTreeSet<ObjectKey>,
    /// Whether the content of the bundle could not be pulled, so that these are the objects of the release
    /// that is there, and a change of the configuration may be missing.
    pub(super) is_stale: bool,
    /// When the certificates in them are due for renewal.
    pub(super) renew_at: Option<Timestamp>,
}

impl AppliedObjects {
    fn of(wanted: &[WantedObject]) -> Self {
        Self { keys: wanted.iter().map(WantedObject::key).collect(), ..Self::default() }
    }
}

/// The chosen bundle, as the status names it.
pub(super) fn installed_bundle(context: &Context, choice: &ExtensionChoice) -> InstalledBundle {
    let explicit = context.features.explicit_releases;
    let release = choice.version.release().filter(|_| explicit);
    InstalledBundle {
        name: choice.bundle.to_string(),
        version: if explicit {
            choice.version.version().to_string()
        } else {
            choice.version.to_string()
        },
        release: release.map(ToString::to_string),
        image: choice.image.to_string(),
    }
}

impl Attempt<'_> {
    /// Reconciles the extension; returns what its status says, and its objects.
    async fn run(&self) -> (Outcome, Applied) {
        let unknown = |failure: Failure| {
            let outcome = Outcome {
                installed: Installed::Unknown(failure.message().to_owned()),
                progress: failure.progress(),
                deprecations: Deprecations::Unchanged,
                revisions: None,
            };
            (outcome, Err(failure))
        };
        let client = match account::client(self.context, self.extension).await {
            Ok(client) => client,
            Err(failure) => return unknown(failure),
        };
        if let Some(sets) = &self.context.object_sets {
            return Box::pin(self.run_with_object_sets(sets)).await;
        }
        let history = match releases::history(self.context, &self.extension.metadata.name).await {
            Ok(history) => history,
            Err(failure) => {
                let (mut outcome, applied) = unknown(failure);
                let why = "retrying to get installed bundle".to_owned();
                outcome.progress = Progress::Retrying(why);
                return (outcome, applied);
            }
        };
        let before = history.installed();
        let resolved = before.as_ref().map(|bundle| InstalledExtensionBundle {
            name: bundle.name.clone(),
            version: bundle.version.clone(),
            release: bundle.release.clone(),
        });
        let features = &self.context.features;
        let resolution = resolve::resolve(
            self.extension,
            features.explicit_releases,
            resolved.as_ref(),
            self.input,
        );
        let (installed, deprecations, applied) = match resolution {
            Resolution::Failed(failure) => {
                let renewed = Box::pin(self.renew(&client, history)).await;
                let failure = renewals::unresolved(failure.message, renewed);
                (before, Deprecations::Unknown, Err(failure))
            }
            Resolution::Kept => {
                let applied = Box::pin(self.keep(&client, history)).await;
                (before, Deprecations::Unknown, applied)
            }
            Resolution::Chosen(choice) => {
                let bundle = installed_bundle(self.context, &choice);
                let applied = Box::pin(self.install(&client, history, bundle)).await;
                let deprecations = Deprecations::Known(choice.deprecation.clone());
                match applied {
                    Ok((bundle, objects)) => (Some(bundle), deprecations, Ok(objects)),
                    Err(failure) => {
                        let text = format!(
                            "error for resolved bundle \"{}\" with version \"{}\"",
                            choice.bundle, choice.version
                        );
                        (before, deprecations, Err(failure.within(&text)))
                    }
                }
            }
        };
        let progress = match &applied {
            Ok(_) => Progress::Reached,
            Err(failure) => failure.progress(),
        };
        let installed = installed.map_or(Installed::Nothing, Installed::Bundle);
        (Outcome { installed, progress, deprecations, revisions: None }, applied)
    }

    fn marks(&self) -> ReleaseMarks<'_> {
        let ClusterExtension { metadata, spec, .. } = self.extension;
        ReleaseMarks { uid: &metadata.uid, name: &metadata.name, namespace: &spec.namespace }
    }

    /// Installs a bundle, upgrades to it, or repairs the objects of the installed one.
    pub(super) async fn install(
        &self,
        client: &AccountClient,
        history: History,
        bundle: InstalledBundle,
    ) -> Result<(InstalledBundle, AppliedObjects), Failure> {
        let rendered = match bundle::render(self.context, self.extension, &bundle.image).await {
            Ok(rendered) => rendered,
            // Meanwhile the installed bundle stays, as upstream.
            Err(failure) if failure.is_content_unavailable() => {
                let installed = history.installed();
                if installed.is_some_and(|installed| installed.name == bundle.name) {
                    let objects = self.repair(client, &history).await?;
                    return Ok((bundle, AppliedObjects { is_stale: true, ..objects }));
                }
                return Err(failure);
            }
            Err(failure) => return Err(failure),
        };
        let applier = &ExtensionApplier::Helm;
        preflight::check_permissions(self.context, self.extension, applier, &rendered.objects)
            .await?;
        let mut plan = ReleasePlan::new(self.extension, &bundle, &rendered);
        let renew_at = rendered.renew_at;
        if history.has(&plan) {
            let objects = self.repair(client, &history).await?;
            return Ok((bundle, AppliedObjects { renew_at, ..objects }));
        }
        let wanted = apply::with_resources(self.context, self.marked(plan.objects()?)).await?;
        // One at a time, so that of two extensions with the same objects one finds those of the other.
        let _installing = self.context.installing.lock().await;
        let operation =
            if history.last().is_some() { Operation::Upgrade } else { Operation::Install };
        let previous = history.base_objects()?;
        let (cluster, servers) = (&client.cluster, &rendered.issued_for);
        let existing = apply::find_existing(cluster, &wanted, servers, self.marks(), operation);
        let existing = existing.await.map_err(|failure| {
            failure.within("failed to get release state using server-side dry-run")
        })?;
        preflight::check_crds(self.extension, &wanted, &existing)?;
        let writer = releases::begin(self.context, self.extension, history, plan).await?;
        let written = match operation {
            Operation::Install => self.write_all(client, &wanted, &existing).await,
            Operation::Upgrade => self.upgrade(client, &wanted, &existing, &previous).await,
        };
        writer.finish(written.as_ref().err()).await?;
        written?;
        Ok((bundle, AppliedObjects { renew_at, ..AppliedObjects::of(&wanted) }))
    }

    /// The objects of a release with Helm's marks.
    fn marked(&self, mut objects: Vec<Object>) -> Vec<Object> {
        for object in &mut objects {
            self.marks().set_on(object);
        }
        objects
    }

    /// Writes all objects, also after one was refused.
    async fn write_all(
        &self,
        client: &AccountClient,
        wanted: &[WantedObject],
        existing: &[Option<Object>],
    ) -> Result<(), Failure> {
        let mut errors = Vec::new();
        for (wanted, existing) in wanted.iter().zip(existing) {
            match apply::write(&client.cluster, wanted, existing.as_ref()).await {
                Ok(stored) => self.note(client, wanted, &stored),
                Err(error) => errors.push(api_message(&error)),
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(apply::install_failure(&errors)) }
    }

    /// Writes the objects of a version, up to the first one that cannot be created; then deletes those
    /// that only earlier versions have.
    async fn upgrade(
        &self,
        client: &AccountClient,
        wanted: &[WantedObject],
        existing: &[Option<Object>],
        previous: &BTreeSet<ObjectKey>,
    ) -> Result<(), Failure> {
        self.write_changed(client, wanted.iter().zip(existing)).await?;
        let kept: BTreeSet<ObjectKey> = wanted.iter().map(WantedObject::key).collect();
        for key in previous.difference(&kept) {
            let failed = |error: mainstay_client::Error| Failure::retrying(api_message(&error));
            let found = self.context.resources.find(&self.context.cluster, &key.gvk).await;
            // A kind that is gone has no objects.
            let Some(resource) = found.map_err(failed)? else { continue };
            self.context.managed.forget(key);
            apply::delete(&client.cluster, &resource, &key.name).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Writes objects, up to the first one that cannot be created.
    async fn write_changed<'o>(
        &self,
        client: &AccountClient,
        objects: impl Iterator<Item = (&'o WantedObject, &'o Option<Object>)> + Send,
    ) -> Result<(), Failure> {
        let mut errors = Vec::new();
        for (wanted, existing) in objects {
            match apply::write(&client.cluster, wanted, existing.as_ref()).await {
                Ok(stored) => self.note(client, wanted, &stored),
                Err(error) if existing.is_none() => return Err(apply::creation_failure(&error)),
                Err(error) => errors.push(apply::change_error(wanted, &error)),
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(Failure::retrying(errors.join(" && "))) }
    }

    /// Makes the objects of the deployed release as they were.
    pub(super) async fn repair(&self, client: &AccountClient, history: &History) -> Applied {
        let Some(release) = history.deployed() else {
            return Err(Failure::retrying(
                "catalog content unavailable and no release installed".to_owned(),
            ));
        };
        let mut wanted = apply::with_resources(self.context, release.objects()?).await?;
        let existing =
            apply::find_existing(&client.cluster, &wanted, &[], self.marks(), Operation::Upgrade);
        let existing = existing.await?;
        let mut changed = Vec::new();
        for (at, (wanted, existing)) in wanted.iter_mut().zip(&existing).enumerate() {
            let Some(existing) = existing else {
                changed.push(at);
                continue;
            };
            // Upstream does not mark what it creates again, and leaves other marks as they are.
            if self.marks().are_on(existing) {
                self.marks().set_on(&mut wanted.object);
            }
            if apply::is_met(&wanted.object, existing) {
                self.note(client, wanted, existing);
            } else {
                changed.push(at);
            }
        }
        let objects = changed.iter().map(|&at| (&wanted[at], &existing[at]));
        self.write_changed(client, objects).await?;
        Ok(AppliedObjects::of(&wanted))
    }

    /// Notes an object as it was left, and watches its kind.
    fn note(&self, client: &AccountClient, wanted: &WantedObject, stored: &Object) {
        self.context.managed.note(stored);
        self.context.managed.watch(&wanted.resource, client);
    }
}
