//! Carries out what was decided about the Subscriptions of a namespace.
//!
//! A namespace is looked at as a whole: one resolution, one plan. Making a plan takes three writes
//! (the plan, its steps, the reference on the Subscriptions); each look first finds what an
//! interrupted one left behind and goes on from there.

use super::conditions::{resolved, unresolved};
use super::plan::{self, Plans};
use super::resolution::{self, Input, Resolved, Visible};
use super::standing::{self, VisibleCatalog, World};
use super::unpack::{self, Waiting};
use crate::catalog::State;
use crate::catalog::source::{content, is_healthy};
use crate::context::Context;
use crate::csv::observe::server_version;
use crate::error::{Doing, Error, settle};
use crate::facts;
use crate::patch;
use mainstay_api::{
    CatalogSource, CsvPhase, InstallPlan, InstallPlanPhase, InstallPlanStatus, ObjectReference,
    OperatorGroup, Subscription, SubscriptionReason, SubscriptionStatus, Time, UpgradeStrategy,
    resources,
};
use mainstay_client::{Action, DeleteOptions, EventType, Patch, Reconciler};
use mainstay_object::{NamespacedName, Object, known};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

const PLAN: &mainstay_object::Resource = &resources::INSTALL_PLAN;
/// How many names are tried for a plan when others have them.
const ATTEMPTS: u8 = 8;

/// Reconciles namespaces with Subscriptions. Keys are names of namespaces.
pub(crate) struct Controller {
    context: Arc<Context>,
    /// What each namespace was last resolved from, and what came of it: it is not resolved again
    /// before something of that changes.
    last: Mutex<HashMap<NamespacedName, (String, Arc<Resolved>)>>,
    /// What was told on versions without Subscription, by namespace.
    told: Mutex<HashMap<NamespacedName, BTreeSet<(String, String)>>>,
}

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        settle(self.look(key).await)
    }
}

impl Controller {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context, last: Mutex::default(), told: Mutex::default() }
    }

    async fn look(&self, key: &NamespacedName) -> Result<Action, Error> {
        let context = &*self.context;
        let namespace = &*key.name;
        let plans = plans(context, namespace);
        let mut subscriptions: Vec<Subscription> = context
            .caches
            .subscriptions
            .list(Some(namespace))
            .into_iter()
            .map(|(_, it)| (*it).clone())
            .filter(|it| it.metadata.deletion_timestamp.is_none())
            .collect();
        self.sweep(namespace, &subscriptions, &plans).await?;
        if subscriptions.is_empty() {
            self.last.lock().remove(key);
            self.told.lock().remove(key);
            context.bundles.keep(key, &BTreeSet::new());
            return Ok(Action::Done);
        }
        // A namespace on its way out loses its groups first, which is nobody's fault.
        let place = context.caches.namespaces.get(&NamespacedName::cluster(namespace));
        if place.is_some_and(|it| it.deleting) {
            return Ok(Action::Done);
        }
        let groups = context.caches.groups_in(namespace);
        let sources = sources(context, namespace);
        let csvs = csvs(context, namespace);
        let now = Time::new(context.clock.now());
        let world = World {
            catalogs: &visible(context, &sources),
            plans: &plans,
            csvs: &csvs,
            fail_forward: matches!(
                groups.as_slice(),
                [one] if one.spec.upgrade_strategy == UpgradeStrategy::FailForward
            ),
            now,
        };
        let standing: Vec<SubscriptionStatus> =
            subscriptions.iter().map(|it| standing::status(it, &world)).collect();
        self.write_all(&mut subscriptions, standing).await?;
        if let Some(name) = plan::unassigned(&subscriptions, &plans) {
            return self.take_up(namespace, name, &mut subscriptions).await;
        }
        if subscriptions.iter().all(|it| standing::waits(&it.status))
            && !self.lost(namespace, &subscriptions, &plans).await?
        {
            return Ok(Action::Done);
        }
        let [group] = groups.as_slice() else {
            let message = format!("found {} operatorGroups, expected 1", groups.len());
            return self.refuse(namespace, &mut subscriptions, &message).await;
        };
        if upgrading(&csvs) || loading(context, &sources) {
            return Ok(Action::Done);
        }
        let version = server_version(context).await;
        let patience = unpack::patience(group);
        let (resolved, unpacking) = loop {
            let csvs = csvs.clone();
            let mut input = self.input(namespace, group, &sources, &subscriptions, &plans, csvs);
            input.server_version.clone_from(&version);
            input.unpacked = context.bundles.ready(key);
            let resolved = self.resolve(key, input).await?;
            let unpacking = unpack::ask(context, key, &resolved, patience);
            context.bundles.keep(key, &unpack::keys(&resolved));
            if !unpacking.again {
                break (resolved, unpacking);
            }
        };
        let (hold, after) = (unpacking.hold, unpacking.after);
        self.tell(namespace, &mut subscriptions, &resolved.failures, &unpacking.waiting).await?;
        self.tell_versions(namespace, &resolved.failures);
        if !hold && !resolved.steps.is_empty() {
            match self.plan(namespace, &mut subscriptions, &plans, &resolved).await {
                Err(error) if error.is_too_large() => {
                    return Ok(self.unplanned(key, &resolved, &error));
                }
                planned => planned?,
            }
            context.bundles.keep(key, &unpack::resting(&resolved));
        }
        Ok(after.map_or(Action::Done, Action::After))
    }

    /// Whether a version that a finished plan brought is gone, so that nobody brings it any more
    /// and waiting for the plan would never end.
    ///
    /// The plan may be seen before its version is, so the API is asked.
    async fn lost(
        &self,
        namespace: &str,
        subscriptions: &[Subscription],
        plans: &Plans,
    ) -> Result<bool, Error> {
        let version = &resources::CLUSTER_SERVICE_VERSION;
        for it in subscriptions.iter().filter(|it| standing::is_brought(&it.status, plans)) {
            let name = &it.status.current_csv;
            let found = self.context.cluster.find(version, Some(namespace), name).await;
            if found.doing("reading a version")?.is_none() {
                return Ok(self.lasting(namespace).await?.is_some());
            }
        }
        Ok(false)
    }

    /// The namespace, if it is there and stays. The API is asked: what goes with a namespace may be
    /// seen to go before it.
    async fn lasting(&self, namespace: &str) -> Result<Option<Object>, Error> {
        let found = self.context.cluster.find(&known::NAMESPACE, None, namespace).await;
        Ok(found.doing("reading a namespace")?.filter(|it| !it.is_terminating()))
    }

    /// Deletes plans that are too many, or were never finished and are past.
    async fn sweep(
        &self,
        namespace: &str,
        subscriptions: &[Subscription],
        plans: &Plans,
    ) -> Result<(), Error> {
        for name in plan::surplus(plans).into_iter().chain(plan::abandoned(subscriptions, plans)) {
            self.context
                .cluster
                .ensure_deleted(PLAN, Some(namespace), name, &DeleteOptions::default())
                .await
                .doing("deleting an old plan")?;
        }
        Ok(())
    }

    /// Writes every status that differs, and waits until the cache has them: the next decision is
    /// made from what was written.
    async fn write_all(
        &self,
        subscriptions: &mut [Subscription],
        statuses: Vec<SubscriptionStatus>,
    ) -> Result<(), Error> {
        let context = &*self.context;
        let mut last = None;
        for (subscription, status) in subscriptions.iter_mut().zip(statuses) {
            let Some(patch) = patch::of_view(subscription, &status)? else { continue };
            let metadata = &subscription.metadata;
            let written = context
                .cluster
                .patch_status(
                    &resources::SUBSCRIPTION,
                    Some(&metadata.namespace),
                    &metadata.name,
                    &patch,
                )
                .await
                .doing("writing the status of a Subscription")?;
            *subscription = Subscription::from_object(&written)?;
            last = Some(written.resource_version().to_owned());
        }
        if let Some(revision) = last {
            context.caches.subscriptions.seen(&revision).await;
        }
        Ok(())
    }

    /// Gives the Subscriptions the plan that was made for them before the process ended.
    async fn take_up(
        &self,
        namespace: &str,
        name: &str,
        subscriptions: &mut [Subscription],
    ) -> Result<Action, Error> {
        let live = self.context.cluster.get(PLAN, Some(namespace), name).await;
        let live = live.doing("reading a plan")?;
        let plan = InstallPlan::from_object(&live)?;
        let updates = plan::assignments(&plan, subscriptions);
        self.assign(subscriptions, &updates, &live, plan.spec.generation).await?;
        Ok(Action::Done)
    }

    async fn assign(
        &self,
        subscriptions: &mut [Subscription],
        updates: &BTreeMap<String, String>,
        plan: &Object,
        generation: i64,
    ) -> Result<(), Error> {
        let now = Time::new(self.context.clock.now());
        let statuses = subscriptions
            .iter()
            .map(|it| {
                let mut status = it.status.clone();
                // Others may wait for something else.
                if let Some(csv) = updates.get(&it.metadata.name) {
                    resolved(&mut status);
                    plan::assign(&mut status, plan, generation, csv, now);
                }
                status
            })
            .collect();
        self.write_all(subscriptions, statuses).await
    }

    /// Says on every Subscription why nothing can be resolved.
    async fn refuse(
        &self,
        namespace: &str,
        subscriptions: &mut [Subscription],
        message: &str,
    ) -> Result<Action, Error> {
        let all = subscriptions.iter().map(|it| it.metadata.name.clone()).collect();
        let failure = resolution::Failure {
            reason: SubscriptionReason::ErrorPreventedResolution,
            message: message.to_owned(),
            subscriptions: all,
            csvs: Vec::new(),
            explanation: None,
        };
        self.tell(namespace, subscriptions, &[failure], &BTreeMap::new()).await?;
        Ok(Action::Done)
    }

    /// Writes failures onto the Subscriptions that they concern, and forgets those that are over.
    ///
    /// News are also events: on the namespace as in the original, and on each Subscription, where
    /// people look first.
    async fn tell(
        &self,
        namespace: &str,
        subscriptions: &mut [Subscription],
        failures: &[resolution::Failure],
        waiting: &BTreeMap<String, Waiting>,
    ) -> Result<(), Error> {
        let now = Time::new(self.context.clock.now());
        let statuses: Vec<SubscriptionStatus> = subscriptions
            .iter()
            .map(|it| {
                let mut status = it.status.clone();
                let mine = failures
                    .iter()
                    .find(|failure| failure.subscriptions.contains(&it.metadata.name));
                match mine {
                    Some(failure) => {
                        unresolved(&mut status, failure.reason.clone(), &failure.message, now);
                    }
                    None => unpack::write(&mut status, waiting.get(&it.metadata.name), now),
                }
                if status != it.status {
                    status.last_updated = Some(now);
                }
                status
            })
            .collect();
        let news: Vec<Object> = subscriptions
            .iter()
            .zip(&statuses)
            .filter(|(it, status)| it.status != **status)
            .map(|(it, _)| it.to_object())
            .collect::<Result<_, _>>()?;
        let first = failures.iter().find(|it| !it.subscriptions.is_empty());
        let place = match first {
            Some(failure) if !news.is_empty() => {
                let Some(place) = self.lasting(namespace).await? else { return Ok(()) };
                Some((place, failure))
            }
            _ => None,
        };
        self.write_all(subscriptions, statuses).await?;
        for it in &news {
            if let Some(Waiting::Failed(message)) = waiting.get(it.name()) {
                let recorder = &self.context.recorder;
                recorder.publish(it, EventType::Warning, "BundleUnpackFailed", message);
            }
        }
        let Some((place, first)) = place else { return Ok(()) };
        self.announce(&place, &first.message);
        for it in &news {
            let mine = failures
                .iter()
                .find(|failure| failure.subscriptions.iter().any(|name| name == it.name()));
            if let Some(failure) = mine {
                self.announce(it, failure.explanation.as_ref().unwrap_or(&failure.message));
            }
        }
        Ok(())
    }

    /// Says on versions that no Subscription has what is wrong with them, once for as long as it
    /// stays so: they have no condition for it.
    fn tell_versions(&self, namespace: &str, failures: &[resolution::Failure]) {
        let key = NamespacedName::cluster(namespace);
        let mut now: BTreeSet<(String, String)> = BTreeSet::new();
        for failure in failures {
            let text = failure.explanation.as_ref().unwrap_or(&failure.message);
            now.extend(failure.csvs.iter().map(|it| (it.clone(), text.clone())));
        }
        let before = {
            let mut told = self.told.lock();
            if now.is_empty() { told.remove(&key) } else { told.insert(key, now.clone()) }
        };
        let before = before.unwrap_or_default();
        for (name, text) in now.difference(&before) {
            let found = self.context.caches.csvs.get(&NamespacedName::new(namespace, &**name));
            let Some(found) = found else { continue };
            let resource = &resources::CLUSTER_SERVICE_VERSION;
            let about = Object::from_value(json!({
                "apiVersion": resource.api_version(), "kind": resource.kind,
                "metadata": {"namespace": namespace, "name": name, "uid": found.uid},
            }));
            if let Ok(about) = about {
                self.announce(&about, text);
            }
        }
    }

    fn announce(&self, about: &Object, message: &str) {
        self.context.recorder.publish(about, EventType::Warning, "ResolutionFailed", message);
    }

    fn input(
        &self,
        namespace: &str,
        group: &Arc<OperatorGroup>,
        sources: &[(Arc<CatalogSource>, NamespacedName)],
        subscriptions: &[Subscription],
        plans: &Plans,
        csvs: BTreeMap<String, Arc<facts::Csv>>,
    ) -> Input {
        let context = &*self.context;
        let runs = |it: &&Subscription| {
            let plan = it.status.install_plan_ref.as_ref().and_then(|it| plans.get(&it.name));
            standing::waits(&it.status)
                && plan.is_some_and(|it| {
                    !matches!(it.phase, InstallPlanPhase::Complete | InstallPlanPhase::Failed)
                })
        };
        Input {
            namespace: namespace.to_owned(),
            global: context.global.to_string(),
            group: Arc::clone(group),
            catalogs: sources
                .iter()
                .map(|(source, key)| Visible {
                    key: key.clone(),
                    priority: source.spec.priority,
                    content: content(source, context.store.state(key)),
                })
                .collect(),
            in_flight: subscriptions
                .iter()
                .filter(runs)
                .map(|it| it.metadata.name.clone())
                .collect(),
            subscriptions: subscriptions.to_vec(),
            server_version: None,
            unpacked: BTreeMap::new(),
            csvs: csvs.into_iter().filter(|(_, it)| !it.is_copy()).collect(),
        }
    }

    async fn resolve(&self, key: &NamespacedName, input: Input) -> Result<Arc<Resolved>, Error> {
        let print = resolution::fingerprint(&input);
        if let Some((last, resolved)) = self.last.lock().get(key)
            && *last == print
        {
            return Ok(Arc::clone(resolved));
        }
        let resolved = tokio::task::spawn_blocking(move || resolution::run(&input)).await?;
        tracing::debug!(
            namespace = %key.name,
            steps = resolved.steps.len(),
            failures = ?resolved.failures,
            "resolved"
        );
        // Steps hold whole manifests and are used once: only outcomes without are remembered.
        let resolved = Arc::new(Resolved { print: print.clone(), ..resolved });
        if resolved.steps.is_empty() {
            self.last.lock().insert(key.clone(), (print, Arc::clone(&resolved)));
        }
        Ok(resolved)
    }

    /// Remembers that the steps of a resolution are more than a plan can hold, which the next look
    /// says: trying again would not help before something else comes of a resolution.
    fn unplanned(&self, key: &NamespacedName, resolved: &Resolved, error: &Error) -> Action {
        let message = format!("error ensuring InstallPlan: {}", error.said());
        let without = resolved.without_plan(&message);
        self.last.lock().insert(key.clone(), (resolved.print.clone(), Arc::new(without)));
        Action::After(Duration::ZERO)
    }

    /// Makes the plan for the steps of a resolution.
    async fn plan(
        &self,
        namespace: &str,
        subscriptions: &mut [Subscription],
        plans: &Plans,
        resolved: &Resolved,
    ) -> Result<(), Error> {
        let csvs = plan::versions(&resolved.steps);
        let manual = plan::is_manual(subscriptions);
        let live = match plan::empty(subscriptions, plans, &csvs, manual) {
            Some(name) => {
                let live = self.context.cluster.get(PLAN, Some(namespace), name).await;
                live.doing("reading a plan")?
            }
            None => self.create(namespace, subscriptions, plans, resolved).await?,
        };
        let generation = live.i64(&["spec", "generation"]).unwrap_or_default();
        let status = plan::status(manual, &resolved.steps, &resolved.lookups);
        let live = self.fill(&live, &status).await?;
        self.assign(subscriptions, &resolved.updates, &live, generation).await
    }

    async fn create(
        &self,
        namespace: &str,
        subscriptions: &[Subscription],
        plans: &Plans,
        resolved: &Resolved,
    ) -> Result<Object, Error> {
        let generation = plan::generation(subscriptions, plans);
        let draft = plan::draft(namespace, generation, subscriptions, &resolved.steps);
        let mut object = draft.to_object()?;
        object.remove(&["status"]);
        let csvs = &draft.spec.cluster_service_version_names;
        let cluster = &self.context.cluster;
        let mut attempt = 0;
        loop {
            let name = plan::name(subscriptions, csvs, attempt);
            object.set(&["metadata", "name"], name.as_str().into());
            let made = match cluster.create(PLAN, &object).await {
                Err(error) if error.is_already_exists() && attempt < ATTEMPTS => error,
                made => return made.doing("creating a plan"),
            };
            let found = cluster.find(PLAN, Some(namespace), &name).await;
            match found.doing("reading a plan")? {
                Some(found) if plan::is_same(&found, &object) => return Ok(found),
                Some(_) => attempt += 1,
                None => return Err(made).doing("creating a plan"),
            }
        }
    }

    /// Writes the steps of a plan, and waits until the cache has them: without that, the next look
    /// would find the plan missing and make another.
    async fn fill(&self, plan: &Object, status: &InstallPlanStatus) -> Result<Object, Error> {
        let body = plan::first_status(plan, status)?;
        let written = self
            .context
            .cluster
            .patch_status(PLAN, Some(plan.namespace()), plan.name(), &Patch::Merge(body))
            .await
            .doing("writing the steps of a plan")?;
        self.context.caches.plans.seen(written.resource_version()).await;
        Ok(written)
    }
}

fn plans(context: &Context, namespace: &str) -> Plans {
    let all = context.caches.plans.list(Some(namespace));
    all.into_iter().map(|(key, it)| (key.name.to_string(), it)).collect()
}

fn csvs(context: &Context, namespace: &str) -> BTreeMap<String, Arc<facts::Csv>> {
    let all = context.caches.csvs.list(Some(namespace));
    all.into_iter().map(|(key, it)| (key.name.to_string(), it)).collect()
}

/// The `CatalogSources` that a namespace sees: its own and the global ones, by namespace and name.
fn sources(context: &Context, namespace: &str) -> Vec<(Arc<CatalogSource>, NamespacedName)> {
    let caches = &context.caches;
    let mut all = caches.sources.list(Some(namespace));
    if *context.global != *namespace {
        all.extend(caches.sources.list(Some(&context.global)));
    }
    all.sort_by_key(|(key, _)| format!("{}{}", key.namespace, key.name));
    for (_, source) in &all {
        // Known to be read from now on, whoever sees it first.
        context.store.attend(source);
    }
    all.into_iter().map(|(key, it)| (it, key)).collect()
}

fn visible(
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
            // A folder that is still being read is expected to be good.
            healthy: state.as_ref().is_some_and(State::is_loading)
                || is_healthy(source, state.as_ref()),
            stale: state.as_ref().is_some_and(State::is_stale),
        })
        .collect()
}

/// Whether a catalog is being read for the first time: deciding without it would be premature.
fn loading(context: &Context, sources: &[(Arc<CatalogSource>, NamespacedName)]) -> bool {
    sources.iter().any(|(_, key)| context.store.state(key).is_some_and(|it| it.is_loading()))
}

/// Whether a version is on its way out: until it is gone, the namespace holds two versions of one
/// package, which no resolution can make sense of.
fn upgrading(csvs: &BTreeMap<String, Arc<facts::Csv>>) -> bool {
    csvs.iter().filter(|(_, it)| !it.is_copy()).any(|(name, it)| {
        it.deleting
            || matches!(it.phase, CsvPhase::Replacing | CsvPhase::Deleting)
            || csvs
                .iter()
                .any(|(other, peer)| peer.replaces == *name && other != name && !peer.is_copy())
    })
}

/// Namespaces whose Subscriptions see a catalog.
pub(crate) fn watchers(context: &Context, source: &NamespacedName) -> Vec<NamespacedName> {
    if *source.namespace != *context.global {
        return vec![NamespacedName::cluster(&*source.namespace)];
    }
    let mut all: Vec<NamespacedName> = context
        .caches
        .subscriptions
        .list(None)
        .into_iter()
        .map(|(key, _)| NamespacedName::cluster(&*key.namespace))
        .collect();
    all.dedup();
    all
}
