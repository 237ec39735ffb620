//! The controllers of `ReplicaSets` and `ReplicationControllers`: they keep the number of Pods at
//! `replicas`.
//!
//! Both share one implementation. They differ in their selectors, in the component of their events,
//! and in that only `ReplicaSets` count terminating Pods.

mod decide;

use crate::Started;
use crate::common::Context;
use crate::template;
use crate::views::Views;
use crate::workload::{Pods, Workload, WorkloadController, requeue_after};
use decide::Observed;
use mainstay_client::{Action, Error};
use mainstay_object::{Object, Resource, builtin};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The most Pods that one reconcile creates or deletes.
const BURST: usize = 500;

/// Starts the controllers of `ReplicaSets` and of `ReplicationControllers`.
pub(crate) fn start(context: &Context, views: &Views, started: &mut Started) {
    let replicas = |resource, component| {
        let context = context.with_component(component);
        let pods = Pods::new(&context, views);
        Replicas { context, views: views.clone(), pods, resource }
    };
    WorkloadController::new("replica-sets", builtin::REPLICA_SET, &views.replica_sets)
        .owns(&views.pods)
        .start(replicas(builtin::REPLICA_SET, "replicaset-controller"), context, started);
    let resource = builtin::REPLICATION_CONTROLLER;
    WorkloadController::new(
        "replication-controllers",
        resource.clone(),
        &views.replication_controllers,
    )
    .owns(&views.pods)
    .start(replicas(resource, "replication-controller"), context, started);
}

struct Replicas {
    context: Context,
    views: Views,
    pods: Pods,
    resource: Resource,
}

impl Workload for Replicas {
    async fn reconcile(&self, set: Object) -> Result<Action, Error> {
        let pods = self.pods.all_of(&set).await?;
        let now = self.context.clock.now();
        let pods_per_node = || self.pods_per_node(&set);
        let decision = decide::decide(&Observed { set: &set, pods: &pods, now }, pods_per_node);
        let mut failure = None;
        if decision.create > 0 {
            let template = set.get(&["spec", "template"]).cloned().unwrap_or_default();
            let new_pods = (0..decision.create.min(BURST))
                .map(|_| template::generated_pod(&set, &template))
                .collect();
            failure = match self.pods.create(&set, new_pods).await {
                Err(error) if error.is_namespace_terminating() => return Err(error),
                outcome => outcome.err(),
            };
        }
        self.pods.delete(&set, &decision.delete).await?;
        let text = failure.as_ref().map(ToString::to_string);
        let now = mainstay_clock::rfc3339(now);
        let counts_terminating = self.resource == builtin::REPLICA_SET;
        let status =
            decide::status(&set, &decision.counts, counts_terminating, text.as_deref(), &now);
        self.context.write_status(&self.resource, &set, status).await?;
        failure.map_or(Ok(requeue_after(self.context.clock, decision.requeue_after)), Err)
    }
}

impl Replicas {
    /// The number of active Pods on each node, of this ReplicaSet and of others with the same
    /// owner.
    fn pods_per_node(&self, set: &Object) -> FxHashMap<Arc<str>, usize> {
        let mut uids: Vec<Arc<str>> = vec![set.uid().into()];
        if let Some(owner) = set.controller_owner() {
            let siblings = self.views.replica_sets.indexed(&owner.uid);
            uids.extend(siblings.into_iter().map(|(_, sibling)| Arc::clone(&sibling.uid)));
            uids.sort();
            uids.dedup();
        }
        let mut counts: FxHashMap<Arc<str>, usize> = FxHashMap::default();
        for uid in uids {
            for (_, pod) in self.views.pods.indexed(&uid) {
                if let Some(node) = &pod.node
                    && pod.is_active()
                {
                    *counts.entry(Arc::clone(node)).or_default() += 1;
                }
            }
        }
        counts
    }
}
