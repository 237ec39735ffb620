//! Carries out plans.

use super::decide::{self, Next};
use super::execute::Runner;
use crate::context::Context;
use crate::error::{Doing, Error, settle};
use crate::patch;
use mainstay_api::{InstallPlan, InstallPlanPhase, InstallPlanStatus, Time, resources};
use mainstay_client::{Action, Reconciler};
use mainstay_object::{NamespacedName, Object};
use std::sync::Arc;

const PLAN: &mainstay_object::Resource = &resources::INSTALL_PLAN;

/// Reconciles plans.
pub(crate) struct Controller(pub(crate) Arc<Context>);

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        settle(self.look(key).await)
    }
}

impl Controller {
    async fn look(&self, key: &NamespacedName) -> Result<Action, Error> {
        let context = &*self.0;
        // Most plans are finished; their manifests need not be read to know that.
        let over = context.caches.plans.get(key).is_none_or(|it| {
            !it.has_steps
                || it.deleting
                || matches!(it.phase, InstallPlanPhase::Complete | InstallPlanPhase::Failed)
        });
        if over {
            return Ok(Action::Done);
        }
        let live = context.cluster.find(PLAN, key.namespace(), &key.name).await;
        let Some(live) = live.doing("reading a plan")? else { return Ok(Action::Done) };
        let plan = InstallPlan::from_object(&live)?;
        let account = decide::account(&context.caches.groups_in(&key.namespace));
        match decide::next(&plan, &account, Time::new(context.clock.now())) {
            Next::Rest => Ok(Action::Done),
            Next::Write(status) => {
                self.write(&live, &status).await?;
                Ok(Action::Done)
            }
            Next::Run => self.run(&live, &plan).await,
        }
    }

    async fn run(&self, live: &Object, plan: &InstallPlan) -> Result<Action, Error> {
        let metadata = &plan.metadata;
        let runner =
            Runner { context: &self.0, namespace: &metadata.namespace, plan: &metadata.name };
        let (steps, outcome) = runner.run(&plan.status.plan).await;
        let now = Time::new(self.0.clock.now());
        let (status, pause) = decide::after(&plan.status, &steps, &outcome, now);
        self.write(live, &status).await?;
        Ok(pause.map_or(Action::Done, Action::After))
    }

    async fn write(&self, live: &Object, status: &InstallPlanStatus) -> Result<(), Error> {
        let Some(patch) = patch::status(live, status)? else { return Ok(()) };
        self.0
            .cluster
            .patch_status(PLAN, Some(live.namespace()), live.name(), &patch)
            .await
            .doing("writing the status of a plan")?;
        Ok(())
    }
}
