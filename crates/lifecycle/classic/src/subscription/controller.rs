//! The Subscription controller: resolves the Subscriptions of a namespace and creates their
//! InstallPlan.
//!
//! It reconciles a namespace as a whole: one resolution, one InstallPlan. Creating an InstallPlan
//! takes three writes: the object, its steps, and the reference on the Subscriptions. Each
//! reconciliation first completes the writes that an interrupted one left unfinished.

use super::catalogs::{any_catalog_is_loading, visible_catalogs, visible_sources};
use super::debounce::Debounce;
use super::input::{ResolutionInput, ResolvableCatalog};
use super::plan::{self, Plans};
use super::report::ResolutionReport;
use super::resolution::{self, ResolutionResult};
use super::status::{self, StatusInput};
use super::succession;
use super::unpack;
use super::upgrades::{self, UpgradesInProgress};
use crate::context::Context;
use crate::error::Error;
use crate::fields;
use crate::report;
use mainstay_api::{
    CatalogSource, InstallPlanPhase, ObjectReference, OperatorGroup, Subscription,
    SubscriptionReason, SubscriptionState, SubscriptionStatus, Time, UpgradeStrategy, resources,
};
use mainstay_catalogsources::content;
use mainstay_client::{Action, DeleteOptions, Reconciler};
use mainstay_controller::{WithOperation as _, decision, patch};
use mainstay_object::{NamespacedName, Object, builtin};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

const PLAN: &mainstay_object::Resource = &resources::INSTALL_PLAN;
/// The shortest and the longest pause before the controller retries an InstallPlan that the API
/// refuses. The pause doubles after each refusal.
const REFUSED_PLAN_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// The longest wait for an object that the cache does not have yet. Its arrival triggers an earlier
/// reconciliation.
const CACHE_LAG_PAUSE: Duration = Duration::from_secs(1);

/// Reconciles namespaces with Subscriptions. Keys are names of namespaces.
pub(crate) struct Controller {
    pub(super) context: Arc<Context>,
    /// The fingerprint of the last resolution of each namespace, and its result. The namespace is
    /// resolved again only when the fingerprint changes.
    last_resolutions: Mutex<HashMap<NamespacedName, (String, Arc<ResolutionResult>)>>,
    /// The failures that Events reported on CSVs without a Subscription, by namespace.
    pub(super) reported_csv_failures: Mutex<HashMap<NamespacedName, BTreeSet<(String, String)>>>,
    /// Delays the resolution while Subscriptions still arrive.
    debounce: Debounce,
}

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        self.reconcile_namespace(key).await
    }
}

impl Controller {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            last_resolutions: Mutex::default(),
            reported_csv_failures: Mutex::default(),
            debounce: Debounce::default(),
        }
    }

    async fn reconcile_namespace(&self, key: &NamespacedName) -> Result<Action, Error> {
        let context = &*self.context;
        let namespace = &*key.name;
        let plans = plans_by_name(context, namespace);
        let mut subscriptions: Vec<Subscription> = context
            .caches
            .subscriptions
            .list(Some(namespace))
            .into_iter()
            .map(|(_, subscription)| (*subscription).clone())
            .filter(|subscription| subscription.metadata.deletion_timestamp.is_none())
            .collect();
        context.metrics.remove_deleted(namespace, &subscriptions);
        context.metrics.count_reconciliation(namespace, &subscriptions);
        self.delete_leftover_plans(namespace, &subscriptions, &plans).await?;
        if subscriptions.is_empty() {
            self.last_resolutions.lock().remove(key);
            self.reported_csv_failures.lock().remove(key);
            self.debounce.forget(key);
            context.bundles.keep(key, &BTreeSet::new());
            return Ok(Action::Done);
        }
        let (window, now) = (context.timeouts.debounce_window, context.clock.elapsed());
        if let Some(wait) = self.debounce.wait(key, &subscriptions, window, now) {
            return Ok(Action::After(wait));
        }
        // A terminating namespace loses its OperatorGroups first; that is not an error to report.
        let cached_namespace = context.caches.namespaces.get(&NamespacedName::cluster(namespace));
        if cached_namespace.is_some_and(|namespace| namespace.deleting) {
            return Ok(Action::Done);
        }
        let groups = context.caches.groups_in(namespace);
        let sources = visible_sources(context, namespace);
        let csvs = csvs_by_name(context, namespace);
        let fail_forward = matches!(
            groups.as_slice(),
            [one] if one.spec.upgrade_strategy == UpgradeStrategy::FailForward
        );
        let status_input = StatusInput {
            catalogs: &visible_catalogs(context, &sources),
            plans: &plans,
            csvs: &csvs,
            generating_plans: &self.generating_plans(namespace, &subscriptions, &plans).await?,
            fail_forward,
            now: Time::new(context.clock.now()),
        };
        let statuses: Vec<SubscriptionStatus> = subscriptions
            .iter()
            .map(|subscription| status::compute(subscription, &status_input))
            .collect();
        self.write_statuses(&mut subscriptions, statuses).await?;
        self.take_over(&mut subscriptions).await?;
        if let Some(name) = plan::find_unreferenced_plan(&subscriptions, &plans)
            && self.adopt_plan(namespace, name, &mut subscriptions).await?
        {
            return Ok(Action::Done);
        }
        let arrived = self.find_arrived_csvs(namespace, &subscriptions, &plans).await?;
        let in_flight = in_flight(&subscriptions, &plans, &csvs, &arrived);
        if in_flight.len() == subscriptions.len()
            || (arrived.any_csv_deleted && self.live_namespace(namespace).await?.is_none())
        {
            return Ok(Action::Done);
        }
        let [group] = groups.as_slice() else {
            let message = format!("found {} operatorGroups, expected 1", groups.len());
            return self.report_unresolvable(namespace, &mut subscriptions, &message).await;
        };
        if any_catalog_is_loading(context, &sources) {
            return Ok(Action::Done);
        }
        let incomplete = subscriptions
            .iter()
            .filter(|subscription| status::is_incomplete(&subscription.status, &status_input))
            .map(name_of);
        let retry_delays = self.retry_delays(&subscriptions, &plans);
        let state = ResolutionState {
            incomplete: incomplete.collect(),
            backing_off: retry_delays.keys().cloned().collect(),
            in_flight,
            upgrades: upgrades::find(&csvs, &subscriptions, fail_forward),
            server_version: context.cluster.server_version().await,
        };
        let timeouts = unpack::unpack_timeouts(group, context.timeouts.unpack);
        let (resolved, unpacking) = loop {
            let mut input = self.input(group, &sources, &subscriptions, &plans, &state);
            input.unpacked = context.bundles.ready(key);
            let resolved = self.resolve(key, input).await?;
            let unpacking = unpack::request_bundles(context, key, &resolved, timeouts);
            context.bundles.keep(key, &unpack::all_bundles(&resolved));
            if !unpacking.needs_resolution {
                break (resolved, unpacking);
            }
        };
        let waits_for_bundles = unpacking.waits_for_bundles;
        let retry_in = resolved.until.map(|until| until.saturating_sub(context.clock.elapsed()));
        let requeue_after = unpacking
            .requeue_after
            .into_iter()
            .chain(retry_in)
            .chain(retry_delays.into_values())
            .min();
        // The condition about a refused InstallPlan stays until an InstallPlan exists.
        let refused = subscriptions
            .iter()
            .filter(|subscription| unpack::plan_is_refused(&subscription.status));
        let keeps_conditions: BTreeSet<String> = refused
            .map(name_of)
            .filter(|name| resolved.updates.contains_key(name))
            .chain(resolved.on_hold.iter().cloned())
            .collect();
        let report = ResolutionReport {
            failures: &resolved.failures,
            pending_reasons: &unpacking.pending_reasons,
            keeps_conditions: &keeps_conditions,
        };
        self.report_resolution(namespace, &mut subscriptions, &report).await?;
        self.report_csv_failures(namespace, &resolved.failures);
        self.join_plans(&mut subscriptions, &resolved.joining).await?;
        if !waits_for_bundles && resolved.needed.is_empty() {
            let csvs = plan::csv_names(&resolved.steps);
            let superseded = plan::superseded_plans(&subscriptions, &plans, &csvs, resolved.manual);
            self.delete_stepless_plans(namespace, &superseded).await?;
        }
        if !waits_for_bundles && !resolved.steps.is_empty() {
            if self.cache_is_behind(namespace, &plans, &resolved).await? {
                return Ok(Action::After(CACHE_LAG_PAUSE));
            }
            match self.create_plan(namespace, &mut subscriptions, &plans, &resolved).await {
                Err(error) if error.is_too_large() => {
                    return Ok(self.remember_refused_plan(key, &resolved, &error, None));
                }
                Err(error @ Error::PlanRefused { .. }) => {
                    // No watch reports a changed policy or quota.
                    let pause = context.timeouts.retry.unwrap_or_else(|| {
                        (REFUSED_PLAN_PAUSES.0 * 2_u32.saturating_pow(resolved.refusals))
                            .min(REFUSED_PLAN_PAUSES.1)
                    });
                    return Ok(self.remember_refused_plan(key, &resolved, &error, Some(pause)));
                }
                planned => planned?,
            }
            context.bundles.keep(key, &unpack::required_bundles(&resolved));
        }
        Ok(requeue_after.map_or(Action::Done, Action::After))
    }

    /// The CSVs whose InstallPlans failed, and how long each waits for its next InstallPlan.
    /// Without fail-forward upgrades, Subscriptions of a failed InstallPlan get no other one
    /// anyway.
    fn retry_delays(
        &self,
        subscriptions: &[Subscription],
        plans: &Plans,
    ) -> BTreeMap<String, Duration> {
        let (timeout, now) = (self.context.timeouts.plan, self.context.clock.now());
        subscriptions
            .iter()
            .filter(|subscription| subscription.status.state == SubscriptionState::UpgradeFailed)
            .filter_map(|subscription| {
                let csv = &subscription.status.current_csv;
                Some((csv.clone(), plan::retry_delay(plans, csv, timeout, now)?))
            })
            .collect()
    }

    /// For each Subscription that an InstallPlan generated and that has no reference to it: that
    /// InstallPlan.
    async fn generating_plans(
        &self,
        namespace: &str,
        subscriptions: &[Subscription],
        plans: &Plans,
    ) -> Result<BTreeMap<String, ObjectReference>, Error> {
        let mut generating_plans = BTreeMap::new();
        for name in subscriptions.iter().filter_map(status::generating_plan) {
            if generating_plans.contains_key(name) || !plans.contains_key(name) {
                continue;
            }
            // A Subscription that caused the dependency already refers to the InstallPlan.
            let mut known = subscriptions
                .iter()
                .filter_map(|subscription| subscription.status.install_plan_ref.as_ref());
            let reference = if let Some(known) = known.find(|reference| reference.name == name) {
                known.clone()
            } else {
                let found = self.context.cluster.find(PLAN, Some(namespace), name).await;
                let Some(found) = found.during("reading an InstallPlan")? else { continue };
                ObjectReference::to(&found)
            };
            generating_plans.insert(name.to_owned(), reference);
        }
        Ok(generating_plans)
    }

    /// Looks up the CSVs of complete InstallPlans that are not in the cache yet.
    ///
    /// The cache may show the InstallPlan before its CSV, so the API is queried. A CSV that the API
    /// does not have was deleted. No InstallPlan creates it again, so waiting would never end.
    async fn find_arrived_csvs(
        &self,
        namespace: &str,
        subscriptions: &[Subscription],
        plans: &Plans,
    ) -> Result<ArrivedCsvs, Error> {
        let csv_resource = &resources::CLUSTER_SERVICE_VERSION;
        let mut arrived = ArrivedCsvs::default();
        for subscription in subscriptions
            .iter()
            .filter(|subscription| status::has_complete_plan(&subscription.status, plans))
        {
            let name = &subscription.status.current_csv;
            let found = self.context.cluster.find(csv_resource, Some(namespace), name).await;
            if found.during("reading a ClusterServiceVersion")?.is_some() {
                arrived.names.insert(subscription.metadata.name.clone());
            } else {
                arrived.any_csv_deleted = true;
            }
        }
        Ok(arrived)
    }

    /// The namespace, if it exists and is not terminating. The API is queried, because the cache
    /// may show the deletion of objects in a namespace before that of the namespace.
    pub(super) async fn live_namespace(&self, namespace: &str) -> Result<Option<Object>, Error> {
        let found = self.context.cluster.find(&builtin::NAMESPACE, None, namespace).await;
        Ok(found.during("reading a Namespace")?.filter(|namespace| !namespace.is_terminating()))
    }

    /// Deletes the InstallPlans beyond the limit, and those without steps that no reconciliation will
    /// complete.
    async fn delete_leftover_plans(
        &self,
        namespace: &str,
        subscriptions: &[Subscription],
        plans: &Plans,
    ) -> Result<(), Error> {
        for name in plan::plans_beyond_limit(plans) {
            self.context
                .cluster
                .ensure_deleted(PLAN, Some(namespace), name, &DeleteOptions::default())
                .await
                .during("deleting an old InstallPlan")?;
        }
        self.delete_stepless_plans(namespace, &plan::plans_of_lost_requests(subscriptions, plans))
            .await
    }

    /// Deletes InstallPlans that have no steps. The API is queried first: an InstallPlan may have
    /// steps that the cache does not show yet.
    async fn delete_stepless_plans(&self, namespace: &str, names: &[&str]) -> Result<(), Error> {
        let cluster = &self.context.cluster;
        for name in names {
            let live =
                cluster.find(PLAN, Some(namespace), name).await.during("reading an InstallPlan")?;
            let Some(live) = live.filter(|plan| !plan::has_steps(plan)) else { continue };
            let only = DeleteOptions::exactly(&live);
            cluster
                .ensure_deleted(PLAN, Some(namespace), name, &only)
                .await
                .during("deleting an InstallPlan without steps")?;
        }
        Ok(())
    }

    /// Writes every status that differs, and waits until the cache has it, because the next decision
    /// reads the cache.
    pub(super) async fn write_statuses(
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
                .during("writing the status of a Subscription")?;
            if let Some((decision, why)) =
                report::subscription_change(&subscription.status, &status)
            {
                decision::log("Subscription", subscription.key(), decision, &why);
            }
            *subscription = Subscription::from_object(&written)?;
            last = Some(written.resource_version().to_owned());
        }
        if let Some(revision) = last {
            context.caches.subscriptions.wait_for_revision(&revision).await;
        }
        Ok(())
    }

    /// Sets `ResolutionFailed` on every Subscription, because the namespace cannot be resolved at
    /// all.
    async fn report_unresolvable(
        &self,
        namespace: &str,
        subscriptions: &mut [Subscription],
        message: &str,
    ) -> Result<Action, Error> {
        let all =
            subscriptions.iter().map(|subscription| subscription.metadata.name.clone()).collect();
        let failure = resolution::Failure {
            reason: SubscriptionReason::ErrorPreventedResolution,
            message: message.to_owned(),
            subscriptions: all,
            csvs: Vec::new(),
            explanation: None,
        };
        let report = ResolutionReport {
            failures: &[failure],
            pending_reasons: &BTreeMap::new(),
            keeps_conditions: &BTreeSet::new(),
        };
        self.report_resolution(namespace, subscriptions, &report).await?;
        Ok(Action::Done)
    }

    fn input(
        &self,
        group: &Arc<OperatorGroup>,
        sources: &[(Arc<CatalogSource>, NamespacedName)],
        subscriptions: &[Subscription],
        plans: &Plans,
        state: &ResolutionState,
    ) -> ResolutionInput {
        let context = &*self.context;
        let failed = |subscription: &&Subscription| {
            let plan = subscription
                .status
                .install_plan_ref
                .as_ref()
                .and_then(|reference| plans.get(&reference.name));
            plan.is_some_and(|plan| plan.phase == InstallPlanPhase::Failed)
        };
        let is_there = |planned: &fields::GeneratedSubscription| {
            subscriptions.iter().any(|subscription| subscription.metadata.name == planned.name)
        };
        let all = plans
            .values()
            .filter(|plan| !plan.deleting)
            .flat_map(|plan| plan.generated_subscriptions.iter());
        let (mut planned, mut inherited) = (Vec::new(), BTreeMap::new());
        for subscription in all.filter(|planned| !is_there(planned)) {
            match succession::heir(subscriptions, &subscription.package) {
                Some(heir) => {
                    inherited.insert(heir.metadata.name.clone(), subscription.clone());
                }
                None => planned.push(subscription.clone()),
            }
        }
        ResolutionInput {
            namespace: group.metadata.namespace.clone(),
            global_namespace: context.global_namespace.to_string(),
            group: Arc::clone(group),
            catalogs: sources
                .iter()
                .map(|(source, key)| ResolvableCatalog {
                    key: key.clone(),
                    priority: source.spec.priority,
                    content: content(source, context.store.state(key)),
                })
                .collect(),
            in_flight: state.in_flight.clone(),
            failed: subscriptions.iter().filter(failed).map(name_of).collect(),
            planned,
            inherited,
            incomplete: state.incomplete.clone(),
            backing_off: state.backing_off.clone(),
            subscriptions: subscriptions.to_vec(),
            server_version: state.server_version.clone(),
            unpacked: BTreeMap::new(),
            csvs: state.upgrades.csvs.clone(),
            pinned: state.upgrades.pinned.clone(),
        }
    }

    async fn resolve(
        &self,
        key: &NamespacedName,
        input: ResolutionInput,
    ) -> Result<Arc<ResolutionResult>, Error> {
        let fingerprint = input.fingerprint();
        let begun = self.context.clock.elapsed();
        let last =
            self.last_resolutions.lock().get(key).filter(|(last, _)| *last == fingerprint).cloned();
        if let Some((_, resolved)) = &last
            && resolved.until.is_none_or(|until| begun < until)
        {
            return Ok(Arc::clone(resolved));
        }
        let resolved = tokio::task::spawn_blocking(move || resolution::run(&input)).await?;
        let took = self.context.clock.elapsed().saturating_sub(begun);
        self.context.metrics.count_resolution(resolved.failures.is_empty(), took);
        tracing::debug!(
            namespace = %key.name,
            steps = resolved.steps.len(),
            failures = ?resolved.failures,
            "resolved"
        );
        // Steps hold whole manifests and are used once, so only results without steps are
        // remembered.
        let mut resolved = ResolutionResult { fingerprint: fingerprint.clone(), ..resolved };
        resolved.refusals = last.map_or(0, |(_, last)| last.refusals);
        let resolved = Arc::new(resolved);
        if resolved.steps.is_empty() {
            self.last_resolutions.lock().insert(key.clone(), (fingerprint, Arc::clone(&resolved)));
        }
        Ok(resolved)
    }

    /// Remembers that the API refused the InstallPlan of a resolution; the next reconciliation
    /// reports it. With a `pause`, the InstallPlan is tried again after it. Without one, the steps
    /// are larger than an InstallPlan can hold, and only a different resolution helps.
    fn remember_refused_plan(
        &self,
        key: &NamespacedName,
        resolved: &ResolutionResult,
        error: &Error,
        pause: Option<Duration>,
    ) -> Action {
        let message = format!("error ensuring InstallPlan: {}", error.message());
        let mut without = resolved.without_plan(&message);
        without.refusals = resolved.refusals.saturating_add(1);
        without.until = pause.map(|pause| self.context.clock.elapsed().saturating_add(pause));
        self.last_resolutions
            .lock()
            .insert(key.clone(), (resolved.fingerprint.clone(), Arc::new(without)));
        Action::After(Duration::ZERO)
    }
}

fn plans_by_name(context: &Context, namespace: &str) -> Plans {
    let all = context.caches.install_plans.list(Some(namespace));
    all.into_iter().map(|(key, plan)| (key.name.to_string(), plan)).collect()
}

/// The CSVs of a namespace, copied CSVs included. A copied CSV has no field here but its origin.
fn csvs_by_name(context: &Context, namespace: &str) -> BTreeMap<String, Arc<fields::Csv>> {
    let copies = context.caches.copied_csvs.list(Some(namespace)).into_iter();
    let copies = copies.filter(|(_, copy)| !copy.deleting).map(|(key, copy)| {
        let copied_from = Some(copy.from.to_string());
        (key, Arc::new(fields::Csv { copied_from, ..fields::Csv::default() }))
    });
    let own = context.caches.csvs.list(Some(namespace));
    copies.chain(own).map(|(key, csv)| (key.name.to_string(), csv)).collect()
}

/// The CSVs of complete InstallPlans that the cache does not show yet.
#[derive(Default)]
struct ArrivedCsvs {
    /// The Subscriptions whose CSV exists.
    names: BTreeSet<String>,
    /// Whether the CSV of some Subscription was deleted.
    any_csv_deleted: bool,
}

/// The state of a namespace before its resolution.
struct ResolutionState {
    incomplete: BTreeSet<String>,
    backing_off: BTreeSet<String>,
    in_flight: BTreeSet<String>,
    upgrades: UpgradesInProgress,
    server_version: Option<String>,
}

fn name_of(subscription: &Subscription) -> String {
    subscription.metadata.name.clone()
}

/// The Subscriptions whose InstallPlan has not created their CSV yet.
fn in_flight(
    subscriptions: &[Subscription],
    plans: &Plans,
    csvs: &BTreeMap<String, Arc<fields::Csv>>,
    arrived: &ArrivedCsvs,
) -> BTreeSet<String> {
    let awaits_csv = |subscription: &&Subscription| {
        status::waits_for_plan(&subscription.status)
            && (arrived.names.contains(&subscription.metadata.name)
                || !status::has_complete_plan(&subscription.status, plans))
    };
    // While a copied CSV has the name, the CSV cannot be created.
    let is_blocked_by_copy = |subscription: &&Subscription| {
        csvs.get(&subscription.status.current_csv).is_some_and(|csv| csv.is_copy())
    };
    subscriptions
        .iter()
        .filter(|subscription| awaits_csv(subscription) || is_blocked_by_copy(subscription))
        .map(name_of)
        .collect()
}
