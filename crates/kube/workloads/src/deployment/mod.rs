//! The Deployment controller: rolls templates out through `ReplicaSets`.
//!
//! ```text
//! live Deployment + its ReplicaSets ─► decide ─► at most one step for each set ─► status
//! ```
//!
//! Every write carries the revision it was decided on. A ReplicaSet that changed meanwhile
//! conflicts, and its event brings the Deployment back.

mod decide;
mod sizes;
mod status;

use crate::Started;
use crate::common::{Context, controller_reference_value};
use crate::template::{self, TEMPLATE_HASH};
use crate::views::{Dependent, ORPHANS, ReplicaSetView, Views, selector};
use crate::workload::{Workload, WorkloadController, requeue_after};
use decide::{Decision, Step};
use mainstay_client::{Action, DeleteOptions, Error, Patch, Propagation};
use mainstay_object::{NamespacedName, Object, builtin};
use serde_json::{Value, json};
use std::sync::Arc;

/// Annotation: the revision number of a template, on the Deployment and on its `ReplicaSets`.
pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
/// Annotation: earlier revision numbers of a template that came back.
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// Annotation: the `replicas` of the Deployment.
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// Annotation: how many pods may exist during the rollout.
const MAX: &str = "deployment.kubernetes.io/max-replicas";

/// A ReplicaSet with its key.
pub(crate) type Named = (NamespacedName, Arc<ReplicaSetView>);

/// Starts the controller of Deployments.
pub(crate) fn start(context: &Context, views: &Views, started: &mut Started) {
    let controller =
        WorkloadController::new("deployments", builtin::DEPLOYMENT, &views.deployments)
            .owns(&views.replica_sets);
    let (queue, sets) = (controller.queue(), views.replica_sets.clone());
    // A `Recreate` rollout waits until the last old pod is gone.
    views.pods.subscribe(move |change| {
        let Some(owner) = change.before.and_then(|pod| pod.owner.as_ref()) else { return };
        if change.after.is_none() && &*owner.kind == "ReplicaSet" {
            let set =
                NamespacedName::new(Arc::clone(&change.key.namespace), Arc::clone(&owner.name));
            if let Some(set) = sets.get(&set)
                && let Some(owner) = &set.owner
            {
                queue.add(NamespacedName::new(
                    Arc::clone(&change.key.namespace),
                    Arc::clone(&owner.name),
                ));
            }
        }
    });
    let context_of = context.with_component("deployment-controller");
    let deployments = Deployments { context: context_of, views: views.clone() };
    controller.start(deployments, context, started);
}

struct Deployments {
    context: Context,
    views: Views,
}

impl Workload for Deployments {
    async fn reconcile(&self, mut deployment: Object) -> Result<Action, Error> {
        if !deployment.is_terminating() {
            self.adopt(&deployment).await?;
        }
        let sets = self.views.replica_sets.indexed(deployment.uid());
        let pods_left = sets
            .iter()
            .map(|(_, set)| {
                let pods = self.views.pods.indexed(&set.uid);
                let unfinished = pods.iter().filter(|(_, pod)| !pod.is_finished()).count();
                (Arc::clone(&set.uid), unfinished)
            })
            .collect();
        let now = self.context.clock.now();
        let decision = decide::decide(&deployment, &sets, &pods_left);
        let mut failure = None;
        let mut created = None;
        let mut collisions = decision.collisions;
        for step in &decision.steps {
            match self.apply_step(&deployment, &decision, step).await {
                Ok(name) => created = created.or(name),
                Err(error) if error.is_already_exists() => {
                    if self.is_own(&deployment, step).await? {
                        // The cache was behind; the event of the ReplicaSet is on its way.
                        return Ok(Action::Done);
                    }
                    // The status carries the collision, and its event brings the Deployment back.
                    collisions += 1;
                    break;
                }
                Err(error) if matches!(step, Step::Create { .. }) && !error.is_conflict() => {
                    failure = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(revision) = &decision.revision
            && deployment.annotation(REVISION) != Some(revision)
        {
            let patch = Patch::Merge(json!({"metadata": {
                "resourceVersion": deployment.resource_version(),
                "annotations": {REVISION: revision},
            }}));
            let (namespace, name) = (Some(deployment.namespace()), deployment.name());
            let cluster = &self.context.cluster;
            // Through the status subresource: a change of annotations on the object itself counts
            // as a new generation.
            deployment =
                cluster.patch_status(&builtin::DEPLOYMENT, namespace, name, &patch).await?;
        }
        let text = failure.as_ref().map(ToString::to_string);
        let (status, wait) = status::status(&status::Observed {
            deployment: &deployment,
            sets: &sets,
            new: decision.new.as_ref(),
            created: created.as_deref(),
            failure: text.as_deref(),
            collisions,
            now,
        });
        self.context.write_status(&builtin::DEPLOYMENT, &deployment, status).await?;
        failure.map_or(Ok(requeue_after(self.context.clock, wait)), Err)
    }
}

impl Deployments {
    /// Adopts ReplicaSets without an owner that the Deployment selects.
    async fn adopt(&self, deployment: &Object) -> Result<(), Error> {
        let Some(selector) = selector(deployment) else { return Ok(()) };
        let cluster = &self.context.cluster;
        for (key, set) in self.views.replica_sets.indexed(ORPHANS) {
            let same_namespace = *key.namespace == *deployment.namespace();
            if !same_namespace || set.terminating || !set.matches(&selector) {
                continue;
            }
            let patch = Patch::Merge(json!({"metadata": {
                "resourceVersion": &*set.resource_version,
                "ownerReferences": [controller_reference_value(deployment)],
            }}));
            let adopted =
                cluster.patch(&builtin::REPLICA_SET, key.namespace(), &key.name, &patch).await?;
            self.views.replica_sets.wait_for_revision(adopted.resource_version()).await;
        }
        Ok(())
    }

    /// Performs one write and returns the name of a ReplicaSet that it created.
    async fn apply_step(
        &self,
        deployment: &Object,
        decision: &Decision,
        step: &Step,
    ) -> Result<Option<String>, Error> {
        let cluster = &self.context.cluster;
        let namespace = Some(deployment.namespace());
        match step {
            Step::Create { name, hash, replicas } => {
                let set = new_set(deployment, decision, name, hash, *replicas);
                let created = cluster.create(&builtin::REPLICA_SET, &set).await?;
                self.report_scaled(deployment, name, 0, *replicas);
                // Names are deterministic, so a second create would be refused; waiting for the
                // cache only saves that refusal.
                self.views.replica_sets.wait_for_revision(created.resource_version()).await;
                Ok(Some(name.clone()))
            }
            Step::Update { set, replicas, annotations, min_ready } => {
                let mut patch = json!({"metadata": {"resourceVersion": &*set.resource_version}});
                if !annotations.is_empty() {
                    patch["metadata"]["annotations"] = json!(annotations);
                }
                if let Some(replicas) = replicas {
                    patch["spec"]["replicas"] = (*replicas).into();
                }
                if let Some(seconds) = min_ready {
                    patch["spec"]["minReadySeconds"] = (*seconds).into();
                }
                let patch = Patch::Merge(patch);
                let updated =
                    cluster.patch(&builtin::REPLICA_SET, namespace, &set.name, &patch).await?;
                if let Some(replicas) = replicas {
                    self.report_scaled(deployment, &set.name, set.replicas, *replicas);
                }
                self.views.replica_sets.wait_for_revision(updated.resource_version()).await;
                Ok(None)
            }
            Step::Delete { set } => {
                let options = DeleteOptions::uid(set.uid.as_ref())
                    .resource_version(set.resource_version.as_ref())
                    .propagation(Propagation::Background);
                cluster
                    .ensure_deleted(&builtin::REPLICA_SET, namespace, &set.name, &options)
                    .await?;
                Ok(None)
            }
        }
    }

    /// Whether the ReplicaSet that has the name is the one that the step wanted to create.
    async fn is_own(&self, deployment: &Object, step: &Step) -> Result<bool, Error> {
        let Step::Create { name, .. } = step else { return Ok(false) };
        let namespace = Some(deployment.namespace());
        let live = self.context.cluster.get(&builtin::REPLICA_SET, namespace, name).await?;
        let owner = live.controller_owner();
        Ok(owner.is_some_and(|owner| owner.uid == deployment.uid())
            && fingerprint(&live) == fingerprint(deployment))
    }

    fn report_scaled(&self, deployment: &Object, set: &str, from: i64, to: i64) {
        if from != to {
            let direction = if to > from { "up" } else { "down" };
            let message = format!("Scaled {direction} replica set {set} from {from} to {to}");
            self.context.report_normal(deployment, "ScalingReplicaSet", message);
        }
    }
}

/// The ReplicaSet of a template.
fn new_set(
    deployment: &Object,
    decision: &Decision,
    name: &str,
    hash: &str,
    replicas: i64,
) -> Object {
    let mut template = deployment.get(&["spec", "template"]).cloned().unwrap_or_else(|| json!({}));
    template["metadata"]["labels"][TEMPLATE_HASH] = hash.into();
    let mut selector = deployment.get(&["spec", "selector"]).cloned().unwrap_or_else(|| json!({}));
    selector["matchLabels"][TEMPLATE_HASH] = hash.into();
    let mut set = Object::new(&builtin::REPLICA_SET.gvk(), name);
    set.set(&["metadata", "namespace"], deployment.namespace().into());
    set.set(&["metadata", "labels"], template["metadata"]["labels"].clone());
    set.set(&["metadata", "annotations"], json!(decision.annotations));
    set.set(&["metadata", "ownerReferences"], json!([controller_reference_value(deployment)]));
    let mut spec = json!({"replicas": replicas, "selector": selector, "template": template});
    if let Some(seconds) = deployment.get(&["spec", "minReadySeconds"]) {
        spec["minReadySeconds"] = seconds.clone();
    }
    set.set(&["spec"], spec);
    set
}

/// The fingerprint of a Deployment's template.
fn fingerprint(deployment: &Object) -> u64 {
    template::fingerprint(deployment.get(&["spec", "template"]).unwrap_or(&Value::Null))
}
