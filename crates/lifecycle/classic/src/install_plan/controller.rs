//! The InstallPlan controller: resolves user-authored InstallPlans and runs the steps of all.

use super::decide::{self, NextAction};
use super::execute::{CRD_VALIDATION, PlanEvent, StepRunner};
use super::user_authored::{self, NewPlans, UnresolvedPlan};
use crate::bundle_config_map;
use crate::context::Context;
use crate::enqueue;
use crate::error::Error;
use crate::fields;
use crate::image::bundles::{Key, UnpackState, UnpackTimeouts};
use crate::report;
use crate::subscription::unpack;
use mainstay_api::{
    CatalogSource, InstallPlan, InstallPlanPhase, InstallPlanStatus, ObjectReference, Time,
    resources,
};
use mainstay_catalogsources::requester;
use mainstay_client::{Action, EventType, Reconciler};
use mainstay_controller::{Controllers, KeyQueue, WithOperation as _, decision, patch};
use mainstay_object::{NamespacedName, Object};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

const PLAN: &mainstay_object::Resource = &resources::INSTALL_PLAN;

/// Reconciles InstallPlans.
pub(crate) struct Controller {
    context: Arc<Context>,
    new_plans: NewPlans,
}

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        self.reconcile_install_plan(key).await
    }
}

impl Controller {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context, new_plans: NewPlans::default() }
    }

    async fn reconcile_install_plan(&self, key: &NamespacedName) -> Result<Action, Error> {
        let context = &*self.context;
        // Most InstallPlans are finished; the cache shows that without reading their manifests.
        let over = context.caches.install_plans.get(key).is_none_or(|plan| {
            !(plan.has_steps || plan.unresolved)
                || plan.deleting
                || matches!(plan.phase, InstallPlanPhase::Complete | InstallPlanPhase::Failed)
        });
        if over {
            self.new_plans.forget(key);
            return Ok(Action::Done);
        }
        let live = context.cluster.find(PLAN, key.namespace(), &key.name).await;
        let Some(mut live) = live.during("reading an InstallPlan")? else {
            return Ok(Action::Done);
        };
        let account = decide::plan_account(&context.caches.groups_in(&key.namespace));
        loop {
            let plan = InstallPlan::from_object(&live)?;
            if user_authored::is_unresolved(&plan) {
                if let Some(left) = self.new_plans.remaining(key, context.clock.elapsed()) {
                    return Ok(Action::After(left));
                }
                match self.resolve(key, &live, &plan).await? {
                    ControlFlow::Continue(written) => live = written,
                    ControlFlow::Break(action) => return Ok(action),
                }
                continue;
            }
            self.new_plans.forget(key);
            match decide::next_action(&plan, &account, Time::new(context.clock.now())) {
                NextAction::Rest => return Ok(Action::Done),
                // Not every status change triggers a reconciliation, so the loop continues at once.
                // It ends because no status is written twice.
                NextAction::Write(status) => match self.write(&live, &status).await? {
                    Some(written) => live = written,
                    None => return Ok(Action::Done),
                },
                NextAction::Run(account) => return self.run(&live, &plan, account.as_ref()).await,
            }
        }
    }

    async fn run(
        &self,
        live: &Object,
        plan: &InstallPlan,
        account: Option<&ObjectReference>,
    ) -> Result<Action, Error> {
        let context = &*self.context;
        if let Some(by) = self.superseding_csvs(plan) {
            let now = Time::new(context.clock.now());
            self.write(live, &decide::superseded_status(&plan.status, &by, now)).await?;
            return Ok(Action::Done);
        }
        let runner =
            StepRunner::new(context, plan, account).during("acting as a ServiceAccount")?;
        let (steps, outcome) = runner.run(&plan.status.plan).await;
        let now = Time::new(context.clock.now());
        let (status, pause) =
            decide::status_after_run(&plan.status, &steps, &outcome, context.timeouts.plan, now);
        // The API warns about a step only when the step runs. A conflict in the status write would
        // lose the warning, so it is published first.
        self.publish(live, &runner);
        self.write(live, &status).await?;
        let pause = pause.map(|pause| context.timeouts.retry.unwrap_or(pause));
        if let (InstallPlanPhase::Failed, Err(error)) = (&status.phase, outcome)
            && let Some(report) = error.report
        {
            runner.add_event(CRD_VALIDATION, report);
            self.publish(live, &runner);
        }
        Ok(pause.map_or(Action::Done, Action::After))
    }

    /// Publishes the Events of a run.
    fn publish(&self, live: &Object, runner: &StepRunner<'_>) {
        for PlanEvent { reason, field, message } in runner.take_events() {
            let recorder = &self.context.recorder;
            recorder.publish_part(live, &field, EventType::Warning, reason, message);
        }
    }

    /// The CSVs that replaced all CSVs of an InstallPlan, if these were deleted since. The
    /// InstallPlan was complete, but its status could not be written before the upgrade.
    fn superseding_csvs(&self, plan: &InstallPlan) -> Option<Vec<String>> {
        let csvs = self.context.caches.csvs.list(Some(&plan.metadata.namespace));
        let names = &plan.spec.cluster_service_version_names;
        let successor = |name: &String| {
            let exists = csvs.iter().any(|(key, _)| *key.name == **name);
            let mut all = csvs.iter().filter(|(_, csv)| !exists && csv.replaces == *name);
            all.next().map(|(key, _)| key.name.to_string())
        };
        names.iter().map(successor).collect::<Option<Vec<_>>>().filter(|by| !by.is_empty())
    }

    /// Resolves the steps of a user-authored InstallPlan. New catalogs, bundles and CSVs trigger
    /// another attempt.
    async fn resolve(
        &self,
        key: &NamespacedName,
        live: &Object,
        plan: &InstallPlan,
    ) -> Result<ControlFlow<Action, Object>, Error> {
        let context = &*self.context;
        let namespace = &key.namespace;
        let mut sources_of_plan: Vec<Arc<CatalogSource>> = Vec::new();
        let spec = &plan.spec;
        for visible_namespace in [namespace, &context.global_namespace] {
            sources_of_plan.extend(
                context
                    .caches
                    .catalogs
                    .sources
                    .list(Some(visible_namespace))
                    .into_iter()
                    .map(|(_, source)| source),
            );
        }
        if !spec.source.is_empty() {
            let mut source_namespace = spec.source_namespace.as_str();
            if source_namespace.is_empty() {
                source_namespace = namespace;
            }
            sources_of_plan.retain(|source| {
                source.metadata.name == spec.source
                    && source.metadata.namespace == *source_namespace
            });
        }
        let rank = |source: &CatalogSource| {
            let own = source.metadata.namespace == **namespace;
            (Reverse(source.spec.priority), !own, source.metadata.name.clone())
        };
        sources_of_plan.sort_by_key(|source| rank(source));
        sources_of_plan.dedup_by_key(|source| source.key());
        let mut sources = Vec::new();
        for source in &sources_of_plan {
            context.store.follow_source(source);
            let content = context.store.state(&source.key()).and_then(|state| state.content);
            sources.extend(content.map(|content| user_authored::Source {
                key: source.key(),
                index: Arc::clone(&content.index),
            }));
        }
        let csvs: Vec<_> = context.caches.csvs.list(Some(namespace));
        let api = |api: &fields::Api| mainstay_catalog::BundleApi {
            group: api.group.clone(),
            version: api.version.clone(),
            kind: api.kind.clone(),
        };
        let input = user_authored::UserPlanInput {
            plan,
            sources,
            present: csvs
                .iter()
                .filter(|(_, csv)| !csv.is_copy())
                .map(|(key, _)| key.name.to_string())
                .collect(),
            provided: csvs.iter().flat_map(|(_, csv)| csv.provides.iter().map(api)).collect(),
            unpacked: context.bundles.ready(key),
        };
        let mut action = Action::Done;
        let found = match user_authored::steps(&input) {
            Ok(steps) => {
                context.bundles.keep(key, &BTreeSet::new());
                let steps = user_authored::ResolvedSteps {
                    steps: bundle_config_map::with_references(
                        context,
                        &steps.steps,
                        &steps.lookups,
                    )
                    .await?
                    .into_owned(),
                    lookups: steps.lookups,
                };
                Ok(steps)
            }
            Err(user_authored::UnresolvedSteps::Refused(why)) => Err(UnresolvedPlan(why)),
            Err(user_authored::UnresolvedSteps::Images(images)) => {
                match self.request_bundles(key, &sources_of_plan, &images) {
                    Some((why, wait)) => {
                        action = Action::After(wait);
                        Err(UnresolvedPlan(why))
                    }
                    // The end of the unpacking triggers a reconciliation.
                    None => return Ok(ControlFlow::Break(Action::Done)),
                }
            }
        };
        let status = user_authored::status(plan, found, Time::new(context.clock.now()));
        let written = self.write(live, &status).await?;
        let has_steps = status.phase != InstallPlanPhase::Planning;
        Ok(match written.filter(|_| has_steps) {
            Some(written) => ControlFlow::Continue(written),
            None => ControlFlow::Break(action),
        })
    }

    /// Requests the bundles of an InstallPlan. Returns the first failure, and when it is retried.
    fn request_bundles(
        &self,
        key: &NamespacedName,
        sources: &[Arc<CatalogSource>],
        images: &BTreeSet<Key>,
    ) -> Option<(String, Duration)> {
        let context = &*self.context;
        let groups = context.caches.groups_in(&key.namespace);
        let timeouts = groups.first().map_or_else(
            || UnpackTimeouts { timeout: Some(context.timeouts.unpack), retry: None },
            |group| unpack::unpack_timeouts(group, context.timeouts.unpack),
        );
        let mut failed = None;
        for image in images {
            let Some(source) = sources.iter().find(|source| source.key() == image.catalog) else {
                continue;
            };
            let state = context.bundles.request(key, image, &requester(source), timeouts);
            if let UnpackState::Failed(failure, wait) = state {
                let why =
                    format!("bundle unpacking failed: {}: {}", failure.reason, failure.message);
                failed.get_or_insert((why, wait));
            }
        }
        failed
    }

    /// Writes a status if it differs. Returns the written InstallPlan.
    async fn write(
        &self,
        live: &Object,
        status: &InstallPlanStatus,
    ) -> Result<Option<Object>, Error> {
        let Some(patch) = patch::status(live, status)? else { return Ok(None) };
        let before = InstallPlan::from_object(live)?.status;
        let written = self
            .context
            .cluster
            .patch_status(PLAN, Some(live.namespace()), live.name(), &patch)
            .await
            .during("writing the status of an InstallPlan")?;
        if let Some((decision, why)) = report::install_plan_change(&before, status) {
            decision::log(&PLAN.kind, live.key(), decision, &why);
        }
        Ok(Some(written))
    }
}

/// Registers the controller.
pub(crate) fn register(controllers: &mut Controllers<Context>) {
    let context = controllers.context();
    let caches = &context.caches;
    controllers
        .add("install_plan")
        .watch(&caches.install_plans, |_, queue, change| queue.add(change.key.clone()))
        .watch(&caches.catalogs.sources, |context, queue, change| {
            enqueue_unresolved(context, queue, change.key);
        })
        .watch_source(|enqueuer| {
            context.store.subscribe(move |key| {
                enqueuer.with(|context, queue| enqueue_unresolved(context, queue, key));
            });
        })
        .watch_source(|enqueuer| {
            // Namespaces request the bundles of their Subscriptions; InstallPlans request their
            // own.
            context.bundles.subscribe(move |asker| {
                if asker.namespace().is_some() {
                    enqueuer.with(|_, queue| queue.add(asker.clone()));
                }
            });
        })
        .watch(&caches.csvs, |context, queue, change| {
            if enqueue::csv_changed(change) {
                let namespace = Some(&*change.key.namespace);
                enqueue_where(context, queue, namespace, |plan| plan.unresolved);
            }
        })
        .watch(&caches.operator_groups, |context, queue, change| {
            let over = [InstallPlanPhase::Complete, InstallPlanPhase::Failed];
            let namespace = Some(&*change.key.namespace);
            enqueue_where(context, queue, namespace, |plan| !over.contains(&plan.phase));
        })
        .watch(&caches.crds, |context, queue, change| {
            for (key, _) in context.caches.install_plans.indexed(&change.key.name) {
                queue.add(key);
            }
        })
        .watch(&caches.roles, |context, queue, change| {
            enqueue_where(context, queue, Some(&change.key.namespace), was_forbidden);
        })
        .watch(&caches.role_bindings, |context, queue, change| {
            enqueue_where(context, queue, Some(&change.key.namespace), was_forbidden);
        })
        .watch(&caches.cluster_roles, |context, queue, _| {
            enqueue_where(context, queue, None, was_forbidden);
        })
        .watch(&caches.cluster_role_bindings, |context, queue, _| {
            enqueue_where(context, queue, None, was_forbidden);
        })
        .reconcile(Controller::new(context.as_catalog_operator()));
}

/// Enqueues the InstallPlans of a namespace, or of all namespaces, for which a condition holds.
fn enqueue_where(
    context: &Context,
    queue: &KeyQueue,
    namespace: Option<&str>,
    holds: impl Fn(&fields::Plan) -> bool,
) {
    for (key, plan) in context.caches.install_plans.list(namespace) {
        if holds(&plan) {
            queue.add(key);
        }
    }
}

/// Whether permissions were missing in the last run of its steps.
fn was_forbidden(plan: &fields::Plan) -> bool {
    plan.forbidden && plan.phase == InstallPlanPhase::Installing
}

/// Enqueues the user-authored InstallPlans that see a catalog and have no steps yet.
fn enqueue_unresolved(context: &Context, queue: &KeyQueue, catalog: &NamespacedName) {
    let is_global = *catalog.namespace == *context.global_namespace;
    let namespace = (!is_global).then_some(&*catalog.namespace);
    enqueue_where(context, queue, namespace, |plan| plan.unresolved);
}
