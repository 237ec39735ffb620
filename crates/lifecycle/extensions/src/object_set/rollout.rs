//! Rollout of a ClusterObjectSet: its objects are checked, written and probed, phase by phase.

use super::watches::Knowledge;
use crate::account_client::AccountClient;
use crate::context::Context;
use crate::features::TrustMode;
use futures::stream::{self, StreamExt as _};
use mainstay_api::names::olm_v1::OBJECT_FIELD_MANAGER;
use mainstay_client::Patch;
use mainstay_controller::api_message;
use mainstay_object::{Object, Reason, Resource};
use mainstay_objectsets::{
    DryRunError, EMPTY_NAMESPACE, ObjectAction, ObjectComparison, ObjectDecision, ObjectResult,
    ObjectSetIdentity, PhaseResult, ProgressionProbes, ResolvedObject, ResolvedPhase,
    RolloutResult, apply_manager_patch, builtin_type, compare_objects, decide_object,
    dry_run_error, dry_run_message, managed_object,
};
use serde_json::Value;
use std::sync::Arc;

/// The field manager of dry runs.
const DRY_RUN_MANAGER: &str = "dummy";
/// The number of dry runs at a time.
const DRY_RUNS: usize = 8;
/// How often an object is read again that changes meanwhile.
const ATTEMPTS: u32 = 4;
/// Fields of `metadata` that change with each write.
const VOLATILE_METADATA: [&str; 3] = ["managedFields", "resourceVersion", "generation"];

/// A rollout.
pub(super) struct Rollout<'a> {
    pub(super) context: &'a Context,
    pub(super) client: &'a AccountClient,
    pub(super) set: &'a ObjectSetIdentity,
    /// The earlier revisions, whose objects are taken over.
    pub(super) previous: &'a [ObjectSetIdentity],
    pub(super) probes: &'a ProgressionProbes,
    /// What decides about objects besides themselves: the spec of the set, and the earlier revisions.
    pub(super) identity: Arc<str>,
}

/// An object with its resource.
struct Target<'o> {
    object: &'o Object,
    resource: Resource,
}

impl Target<'_> {
    fn namespace(&self) -> Option<&str> {
        Some(self.object.namespace()).filter(|namespace| !namespace.is_empty())
    }
}

/// Why an object could not be reconciled.
struct ObjectFailure {
    message: String,
    /// Whether the object changed between two requests.
    is_conflict: bool,
}

fn failed(message: &str) -> ObjectFailure {
    ObjectFailure { message: format!("reconciling object: {message}"), is_conflict: false }
}

fn request_failed(error: &mainstay_client::Error) -> ObjectFailure {
    ObjectFailure { is_conflict: error.is_conflict(), ..failed(&api_message(error)) }
}

impl Rollout<'_> {
    /// Rolls the phases out, up to the first one that is not complete.
    ///
    /// # Errors
    /// The message of the first phase or object that cannot be written.
    pub(super) async fn run(&self, phases: &[ResolvedPhase]) -> Result<RolloutResult, String> {
        let mut rollout = RolloutResult { phase_count: phases.len(), ..RolloutResult::default() };
        for phase in phases {
            let result = self.roll_out(phase).await?;
            let is_complete = result.is_complete();
            rollout.phases.push(result);
            if !is_complete {
                break;
            }
        }
        Ok(rollout)
    }

    async fn roll_out(&self, phase: &ResolvedPhase) -> Result<PhaseResult, String> {
        let mut targets = Vec::with_capacity(phase.objects.len());
        for object in &phase.objects {
            let target = self.target(&object.object).await;
            targets.push(target.map_err(|failure| failure.message)?);
        }
        let known: Vec<Knowledge> =
            targets.iter().map(|target| self.knowledge(target.object)).collect();
        let unknown = targets.iter().zip(&known).filter(|(_, known)| **known == Knowledge::Nothing);
        let runs: Vec<_> = unknown.map(|(target, _)| self.dry_run(target)).collect();
        let results: Vec<Option<DryRunError>> =
            stream::iter(runs).buffered(DRY_RUNS).collect().await;
        let errors: Vec<DryRunError> = results.into_iter().flatten().collect();
        if !errors.is_empty() {
            return Err(dry_run_message(&errors));
        }
        let mut objects = Vec::with_capacity(targets.len());
        for ((object, target), known) in phase.objects.iter().zip(&targets).zip(known) {
            objects.push(if known == Knowledge::Complete {
                ObjectResult::unchanged(target.object)
            } else {
                Box::pin(self.reconcile_current(object, target)).await?
            });
        }
        Ok(PhaseResult { objects })
    }

    fn knowledge(&self, desired: &Object) -> Knowledge {
        if self.context.features.trust != TrustMode::ClusterAdmin {
            // The permissions of an account change without any change of its objects.
            return Knowledge::Nothing;
        }
        let (watches, account) = (&self.context.object_watches, &self.client.account);
        watches.knowledge(&self.set.name, &self.identity, desired, account)
    }

    /// Reconciles an object, again if it changes meanwhile.
    async fn reconcile_current(
        &self,
        object: &ResolvedObject,
        target: &Target<'_>,
    ) -> Result<ObjectResult, String> {
        let mut attempt = 1;
        loop {
            match self.reconcile(object, target).await {
                Err(failure) if failure.is_conflict && attempt < ATTEMPTS => attempt += 1,
                result => return result.map_err(|failure| failure.message),
            }
        }
    }

    async fn target<'o>(&self, object: &'o Object) -> Result<Target<'o>, ObjectFailure> {
        let gvk = object.gvk();
        let found = self.context.resources.find(&self.context.cluster, &gvk).await;
        match found.map_err(|error| request_failed(&error))? {
            Some(resource) => Ok(Target { object, resource }),
            None => Err(failed(&no_matches(&gvk.kind, &gvk.api_version()))),
        }
    }

    /// Applies an object without storing it; returns the error that holds the phase up.
    async fn dry_run(&self, target: &Target<'_>) -> Option<DryRunError> {
        let Target { object, resource } = target;
        if resource.is_namespaced() && object.namespace().is_empty() {
            return Some(DryRunError::Other(EMPTY_NAMESPACE.to_owned()));
        }
        let cluster = &self.client.cluster;
        let mut result = cluster.try_apply(resource, object, DRY_RUN_MANAGER, true).await;
        if result.as_ref().is_err_and(mainstay_client::Error::is_not_found) {
            result = cluster.try_create(resource, object).await;
        }
        let error = result.err()?;
        let reason = error.status().map(|status| status.reason);
        let reason = reason.filter(|reason| *reason != Reason::Unknown);
        dry_run_error(object, reason, &api_message(&error))
    }

    /// Creates, changes or leaves an object, and probes it.
    async fn reconcile(
        &self,
        object: &ResolvedObject,
        target: &Target<'_>,
    ) -> Result<ObjectResult, ObjectFailure> {
        let (cluster, resource) = (&self.client.cluster, &target.resource);
        let desired = managed_object(target.object, self.set);
        let actual = cluster.find(resource, target.namespace(), desired.name()).await;
        let actual = match actual.map_err(|error| request_failed(&error))? {
            Some(actual) => Some(self.complete_creation(resource, actual).await?),
            None => None,
        };
        let comparison = match &actual {
            Some(actual) => self.compare(&desired, actual).await?,
            None => ObjectComparison::default(),
        };
        let decision = decide_object(
            &desired,
            actual.as_ref().map(|actual| (actual, &comparison)),
            self.set,
            self.previous,
            &object.collision_protection,
        );
        let mut decision = decision.map_err(|error| failed(&error.to_string()))?;
        if let (ObjectDecision::Idle, Some(actual)) = (&decision, &actual)
            && builtin_type(&desired).is_none()
        {
            decision = self.decide_custom(resource, &desired, actual).await?;
        }
        let action = ObjectAction::from(&decision);
        let actual = actual.unwrap_or_default();
        let (object, conflicting_owner) = match decision {
            ObjectDecision::Create(object) => (self.create(resource, &object).await?, None),
            ObjectDecision::Apply { object, force, .. } => {
                let written =
                    cluster.apply_exactly(resource, &object, OBJECT_FIELD_MANAGER, force).await;
                (written.map_err(|error| request_failed(&error))?, None)
            }
            ObjectDecision::Progressed | ObjectDecision::Idle => (actual, None),
            ObjectDecision::Collision { owner } => (actual, owner),
        };
        let probe = self.probes.probe(&object);
        let result = ObjectResult { object, action, probe, comparison, conflicting_owner };
        let (watches, set) =
            (&self.context.object_watches, (&*self.set.name, &*self.client.account));
        watches.note(set, &self.identity, &result.object, result.is_complete());
        Ok(result)
    }

    async fn compare(
        &self,
        desired: &Object,
        actual: &Object,
    ) -> Result<ObjectComparison, ObjectFailure> {
        let Some(ty) = builtin_type(desired) else { return Ok(ObjectComparison::default()) };
        let api_version = desired.api_version();
        let has_status = self.context.resources.has_status(&self.context.cluster, api_version);
        let has_status = has_status.await.map_err(|error| request_failed(&error))?;
        compare_objects(desired, actual, ty, has_status).map_err(|error| failed(&error.to_string()))
    }

    /// Decides over an object of a custom kind that the set controls: a dry run of the apply tells whether
    /// something differs, or whether another manager has a desired field.
    async fn decide_custom(
        &self,
        resource: &Resource,
        desired: &Object,
        actual: &Object,
    ) -> Result<ObjectDecision, ObjectFailure> {
        let mut object = desired.clone();
        object.set(&["metadata", "resourceVersion"], actual.resource_version().into());
        let cluster = &self.client.cluster;
        let apply = |recovers| ObjectDecision::Apply {
            object: Box::new(object.clone()),
            force: recovers,
            recovers,
        };
        match cluster.try_apply(resource, &object, OBJECT_FIELD_MANAGER, false).await {
            Ok(applied) if content(&applied) == content(actual) => Ok(ObjectDecision::Idle),
            Ok(_) => Ok(apply(false)),
            Err(error) if error.is_conflict() => Ok(apply(true)),
            Err(error) => Err(request_failed(&error)),
        }
    }

    async fn create(&self, resource: &Resource, object: &Object) -> Result<Object, ObjectFailure> {
        let cluster = self.client.cluster.clone().with_user_agent(OBJECT_FIELD_MANAGER);
        let created = cluster.create(resource, object).await;
        self.complete_creation(resource, created.map_err(|error| request_failed(&error))?).await
    }

    /// Makes the creation of an object of this set count as an apply, if that is not done yet.
    async fn complete_creation(
        &self,
        resource: &Resource,
        object: Object,
    ) -> Result<Object, ObjectFailure> {
        if !object.is_controlled_by(&self.set.uid) {
            return Ok(object);
        }
        let patch = apply_manager_patch(&object).map_err(|error| failed(&error.to_string()))?;
        let Some(patch) = patch else { return Ok(object) };
        let namespace = Some(object.namespace()).filter(|namespace| !namespace.is_empty());
        let cluster = &self.client.cluster;
        let patched = cluster.patch(resource, namespace, object.name(), &Patch::Json(patch)).await;
        patched.map_err(|error| request_failed(&error))
    }
}

/// An object without what changes with each write.
fn content(object: &Object) -> Value {
    let mut object = object.clone();
    for field in VOLATILE_METADATA {
        object.remove(&["metadata", field]);
    }
    object.into_value()
}

/// The message about a kind that the cluster does not have.
pub(super) fn no_matches(kind: &str, api_version: &str) -> String {
    format!("no matches for kind \"{kind}\" in version \"{api_version}\"")
}
