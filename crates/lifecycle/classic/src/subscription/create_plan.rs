//! InstallPlan creation: creates InstallPlans for a resolution and assigns them to Subscriptions.
//!
//! That takes three writes: the object, its steps, and the reference on the Subscriptions. The
//! process may stop between any two of them.

use super::conditions::resolved;
use super::controller::Controller;
use super::plan::{self, Plans};
use super::resolution::ResolutionResult;
use super::succession;
use crate::bundle_config_map;
use crate::error::Error;
use crate::fields::Plan;
use mainstay_api::{InstallPlan, InstallPlanStatus, Subscription, Time, names, resources};
use mainstay_client::{DeleteOptions, ObjectList, Patch};
use mainstay_controller::{WithOperation as _, decision};
use mainstay_object::{NamespacedName, Object};
use std::collections::BTreeMap;

const PLAN: &mainstay_object::Resource = &resources::INSTALL_PLAN;
/// How many names are tried for an InstallPlan when other objects have them.
const ATTEMPTS: u8 = 8;

/// Whether the API rejected an InstallPlan for good: by a policy, a webhook or a quota.
fn is_refusal(error: &mainstay_client::Error) -> bool {
    let decided = error.status().is_some_and(|status| matches!(status.code, 400 | 403 | 422 | 500));
    decided && !error.is_passing() && !error.is_namespace_terminating()
}

impl Controller {
    /// Whether the cache lags behind the API: an InstallPlan differs from the cached one, as after
    /// a write whose response was lost, or an object that a step would create exists already.
    pub(super) async fn cache_is_behind(
        &self,
        namespace: &str,
        plans: &Plans,
        resolved: &ResolutionResult,
    ) -> Result<bool, Error> {
        let (cluster, caches) = (&self.context.cluster, &self.context.caches);
        let live = cluster.list(PLAN, Some(namespace), &ObjectList::default()).await;
        let live = live.during("listing InstallPlans")?.items;
        if live
            .iter()
            .any(|plan| plans.get(plan.name()).is_none_or(|seen| **seen != Plan::of(plan)))
        {
            return Ok(true);
        }
        let (csv_resource, subscription) =
            (&resources::CLUSTER_SERVICE_VERSION, &resources::SUBSCRIPTION);
        for step in resolved.steps.iter().filter(|step| step.resource.kind == *subscription.kind) {
            let key = NamespacedName::new(namespace, &*step.resource.name);
            if caches.subscriptions.get(&key).is_none() {
                let found = cluster.find(subscription, Some(namespace), &key.name).await;
                if found.during("reading a Subscription")?.is_some() {
                    return Ok(true);
                }
            }
            let key = NamespacedName::new(namespace, &*step.resolving);
            if caches.csvs.get(&key).is_none() && caches.copied_csvs.get(&key).is_none() {
                let found = cluster.find(csv_resource, Some(namespace), &key.name).await;
                if found.during("reading a ClusterServiceVersion")?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Assigns the InstallPlan of another Subscription to Subscriptions that want what it installs.
    pub(super) async fn join_plans(
        &self,
        subscriptions: &mut [Subscription],
        joining: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let now = Time::new(self.context.clock.now());
        let statuses = subscriptions.iter().map(|subscription| {
            let mut status = subscription.status.clone();
            let other = joining.get(&subscription.metadata.name);
            if let Some(other) =
                subscriptions.iter().find(|subscription| Some(&subscription.metadata.name) == other)
            {
                resolved(&mut status);
                plan::join(&mut status, &other.status, now);
            }
            status
        });
        let statuses = statuses.collect();
        self.write_statuses(subscriptions, statuses).await
    }

    /// Assigns an InstallPlan to the Subscriptions that it was created for and that do not have it, because
    /// the process stopped or a write failed meanwhile. Returns whether there are any.
    pub(super) async fn adopt_plan(
        &self,
        namespace: &str,
        name: &str,
        subscriptions: &mut [Subscription],
    ) -> Result<bool, Error> {
        let live = self.context.cluster.find(PLAN, Some(namespace), name).await;
        let Some(live) = live.during("reading an InstallPlan")? else { return Ok(false) };
        let plan = InstallPlan::from_object(&live)?;
        let updates = plan::missing_assignments(&plan, subscriptions);
        self.assign(subscriptions, &updates, &live, plan.spec.generation).await?;
        Ok(!updates.is_empty())
    }

    /// Lets new Subscriptions take over from older ones of the same package, and deletes the
    /// generated ones among the older.
    pub(super) async fn take_over(
        &self,
        subscriptions: &mut Vec<Subscription>,
    ) -> Result<(), Error> {
        let now = Time::new(self.context.clock.now());
        let takeovers = subscriptions.iter().enumerate().filter_map(|(at, heir)| {
            let from = succession::predecessor(subscriptions, heir)?;
            Some((
                at,
                from.metadata.name.clone(),
                succession::taken_over_status(&heir.status, &from.status, now),
            ))
        });
        for (at, from, status) in takeovers.collect::<Vec<_>>() {
            let heir = std::slice::from_mut(&mut subscriptions[at]);
            let decision = format!("takes over {} from {from}", status.current_csv);
            self.write_statuses(heir, vec![status]).await?;
            decision::log("Subscription", heir[0].key(), decision, "both are of the same package");
        }
        let mut gone = Vec::new();
        for (generated, heir) in succession::superseded(subscriptions) {
            let (namespace, name) = (&generated.metadata.namespace, &generated.metadata.name);
            let options = DeleteOptions::uid(generated.metadata.uid.as_str());
            self.context
                .cluster
                .ensure_deleted(&resources::SUBSCRIPTION, Some(namespace), name, &options)
                .await
                .during("deleting a generated Subscription")?;
            let why = format!("{} of the same package has taken its place", heir.metadata.name);
            decision::log("Subscription", generated.key(), "deleted".to_owned(), &why);
            gone.push(generated.metadata.uid.clone());
        }
        subscriptions.retain(|subscription| !gone.contains(&subscription.metadata.uid));
        Ok(())
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
            .map(|subscription| {
                let mut status = subscription.status.clone();
                // Other Subscriptions may wait for another InstallPlan.
                if let Some(csv) = updates.get(&subscription.metadata.name) {
                    resolved(&mut status);
                    plan::assign(&mut status, plan, generation, csv, now);
                }
                status
            })
            .collect();
        self.write_statuses(subscriptions, statuses).await
    }

    /// Creates the InstallPlan for the steps of a resolution.
    pub(super) async fn create_plan(
        &self,
        namespace: &str,
        subscriptions: &mut [Subscription],
        plans: &Plans,
        resolved: &ResolutionResult,
    ) -> Result<(), Error> {
        let csvs = plan::csv_names(&resolved.steps);
        let manual = resolved.manual;
        let live = match plan::without_steps(subscriptions, plans, &csvs, manual) {
            Some(name) => {
                let live = self.context.cluster.get(PLAN, Some(namespace), name).await;
                live.during("reading an InstallPlan")?
            }
            None => self.create_install_plan(namespace, subscriptions, plans, resolved).await?,
        };
        let generation = live.i64(&["spec", "generation"]).unwrap_or_default();
        let steps =
            bundle_config_map::with_references(&self.context, &resolved.steps, &resolved.lookups)
                .await?;
        let status = plan::status(manual, &steps, &resolved.lookups);
        // The InstallPlan has its steps already if only the response to the write was lost.
        let filled = if plan::has_steps(&live) {
            self.context.caches.install_plans.wait_for_revision(live.resource_version()).await;
            Ok(live.clone())
        } else {
            self.write_steps(&live, &status).await
        };
        let live = match filled {
            Err(error) if error.is_too_large() => {
                // An InstallPlan that is too large for its steps is of no use.
                let only = DeleteOptions::exactly(&live);
                let gone =
                    self.context.cluster.ensure_deleted(PLAN, Some(namespace), live.name(), &only);
                gone.await.during("deleting an InstallPlan whose steps cannot be written")?;
                return Err(error);
            }
            filled => filled?,
        };
        self.assign(subscriptions, &resolved.updates, &live, generation).await
    }

    async fn create_install_plan(
        &self,
        namespace: &str,
        subscriptions: &[Subscription],
        plans: &Plans,
        resolved: &ResolutionResult,
    ) -> Result<Object, Error> {
        let generation = plan::generation(subscriptions, plans);
        let draft =
            plan::draft(namespace, generation, subscriptions, resolved.manual, &resolved.steps);
        let mut object = draft.to_object()?;
        object.remove(&["status"]);
        for subscription in subscriptions
            .iter()
            .filter(|subscription| resolved.updates.contains_key(&subscription.metadata.name))
        {
            let (package, namespace) =
                (&subscription.spec.package, &subscription.metadata.namespace);
            object.set_label(&names::component_label(package, namespace), "");
        }
        let csvs = &draft.spec.cluster_service_version_names;
        let cluster = &self.context.cluster;
        let mut attempt = 0;
        loop {
            let name = plan::name(subscriptions, csvs, generation, attempt);
            object.set(&["metadata", "name"], name.as_str().into());
            let created = match cluster.create(PLAN, &object).await {
                Err(error) if error.is_already_exists() && attempt < ATTEMPTS => error,
                Err(source) if is_refusal(&source) => {
                    return Err(Error::PlanRefused { name, source });
                }
                created => {
                    let created = created.during("creating an InstallPlan")?;
                    let names: Vec<&str> = csvs.iter().map(|csv| &**csv).collect();
                    let why = "Subscriptions of the namespace were resolved";
                    decision::log(
                        &PLAN.kind,
                        created.key(),
                        format!("made for {}", names.join(" ")),
                        why,
                    );
                    return Ok(created);
                }
            };
            let found = cluster.find(PLAN, Some(namespace), &name).await;
            match found.during("reading an InstallPlan")? {
                Some(found) if plan::is_same(&found, &object) => return Ok(found),
                Some(_) => attempt += 1,
                None => return Err(created).during("creating an InstallPlan").map_err(Error::from),
            }
        }
    }

    /// Writes the steps of an InstallPlan, and waits until the cache has them. Otherwise the next
    /// reconciliation would not find them and would create another InstallPlan.
    async fn write_steps(
        &self,
        plan: &Object,
        status: &InstallPlanStatus,
    ) -> Result<Object, Error> {
        let body = plan::first_status(plan, status)?;
        let written = self
            .context
            .cluster
            .patch_status(PLAN, Some(plan.namespace()), plan.name(), &Patch::Merge(body))
            .await
            .during("writing the steps of an InstallPlan")?;
        self.context.caches.install_plans.wait_for_revision(written.resource_version()).await;
        Ok(written)
    }
}
