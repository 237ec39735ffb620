//! The `StatefulSet` controller: Pods with stable names, one after the other.
//!
//! `OrderedReady` starts a Pod when all before it are available, `Parallel` starts all. A new
//! template replaces Pods from the last to the first, down to the partition. Every template that
//! Pods may still have is kept as a revision. Claims are created, kept or deleted as upstream does.
//! No volumes are provisioned, and Pods do not wait for them.

mod claims;
mod decide;
mod pod;

use crate::Started;
use crate::common::Context;
use crate::template::REVISION_HASH;
use crate::views::Views;
use crate::workload::{Pods, Revisions, Workload, WorkloadController, requeue_after, template_of};
use claims::Claims;
use decide::Observed;
use mainstay_client::{Action, Error};
use mainstay_object::{Object, builtin};

/// Starts the controller of `StatefulSets`.
pub(crate) fn start(context: &Context, views: &Views, started: &mut Started) {
    let context_of = context.with_component("statefulset-controller");
    let controller =
        WorkloadController::new("stateful-sets", builtin::STATEFUL_SET, &views.stateful_sets)
            .owns(&views.pods)
            .owns(&views.revisions);
    let claims = Claims::start(&context_of, controller.queue());
    let controller = controller.reads(claims.cache());
    let sets = StatefulSets {
        pods: Pods::new(&context_of, views),
        revisions: Revisions::new(&context_of, views, "controller.kubernetes.io/hash"),
        claims,
        context: context_of,
    };
    controller.start(sets, context, started);
}

struct StatefulSets {
    context: Context,
    pods: Pods,
    revisions: Revisions,
    claims: Claims,
}

impl Workload for StatefulSets {
    async fn reconcile(&self, set: Object) -> Result<Action, Error> {
        if set.is_terminating() {
            return Ok(Action::Done);
        }
        let pods = self.pods.all_of(&set).await?;
        let history = self.revisions.of(&set).await?;
        let current_revision = set.str(&["status", "currentRevision"]).unwrap_or_default();
        let current = history.others.iter().find(|(key, _)| *key.name == *current_revision);
        let current = current.unwrap_or(&history.update);
        let decision = decide::decide(&Observed {
            set: &set,
            pods: &pods,
            current: &current.0.name,
            update: &history.update.0.name,
            collisions: history.collisions,
            now: self.context.clock.now(),
        });
        if !set.array(&["spec", "volumeClaimTemplates"]).is_empty() {
            for (ordinal, is_wanted, pod) in decide::ordinals(&set, &pods) {
                self.claims.set_claim_owners(&set, pod, ordinal, is_wanted).await?;
            }
        }
        self.pods.delete(&set, &decision.delete).await?;
        let mut new_pods = Vec::new();
        for (ordinal, of_update) in &decision.create {
            let (key, revision) = if *of_update { &history.update } else { current };
            let pod = pod::pod(&set, &template_of(revision), *ordinal, &key.name);
            if self.claims.create_missing(&set, &pod, *ordinal).await? {
                new_pods.push(pod);
            }
        }
        let outcome = self.pods.create(&set, new_pods).await;
        self.context.write_status(&builtin::STATEFUL_SET, &set, decision.status).await?;
        let is_used = |name: &str| {
            *name == *current.0.name
                || pods.iter().any(|(_, pod)| {
                    pod.labels.get(REVISION_HASH).is_some_and(|label| label == name)
                })
        };
        self.revisions.truncate(&set, &history, |(key, _)| is_used(&key.name)).await?;
        match outcome {
            // A terminating Pod still has the name; its event brings the `StatefulSet` back.
            Err(error) if error.is_already_exists() => Ok(Action::Done),
            outcome => outcome.map(|()| requeue_after(self.context.clock, decision.requeue_after)),
        }
    }
}
