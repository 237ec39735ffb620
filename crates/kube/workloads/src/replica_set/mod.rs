//! `ReplicaSets`: as many pods as wanted.

mod decide;

use crate::Started;
use crate::common::Context;
use crate::template;
use crate::views::Views;
use crate::workload::{Pods, Workload, WorkloadController, again};
use decide::Observed;
use mainstay_client::{Action, Error};
use mainstay_object::{Object, known};

/// Starts the controller of `ReplicaSets`.
pub(crate) fn start(context: &Context, views: &Views, started: &mut Started) {
    let sets = ReplicaSets { context: context.clone(), pods: Pods::new(context, views) };
    WorkloadController::new("replica-sets", known::REPLICA_SET, &views.replica_sets)
        .owns(&views.pods)
        .start(sets, context, started);
}

struct ReplicaSets {
    context: Context,
    pods: Pods,
}

impl Workload for ReplicaSets {
    async fn settle(&self, set: Object) -> Result<Action, Error> {
        let pods = self.pods.of(&set).await?;
        let now = self.context.clock.now();
        let decision = decide::decide(&Observed { set: &set, pods: &pods, now });
        let mut failure = None;
        if decision.create > 0 {
            let template = set.get(&["spec", "template"]).cloned().unwrap_or_default();
            let wanted =
                (0..decision.create).map(|_| template::generated_pod(&set, &template)).collect();
            failure = match self.pods.create(&set, wanted).await {
                Err(error) if error.is_namespace_terminating() => return Err(error),
                outcome => outcome.err(),
            };
            if let Some(error) = &failure {
                self.context.warning(&set, "FailedCreate", format!("Error creating: {error}"));
            }
        }
        self.pods.delete(&set, &decision.delete).await?;
        let text = failure.as_ref().map(ToString::to_string);
        let now = mainstay_clock::rfc3339(now);
        let status = decide::status(&set, &decision.counts, text.as_deref(), &now);
        self.context.write_status(&known::REPLICA_SET, &set, status).await?;
        failure.map_or(Ok(again(decision.again)), Err)
    }
}
