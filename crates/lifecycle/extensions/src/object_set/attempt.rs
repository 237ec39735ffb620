//! One reconciliation of a ClusterObjectSet: from its spec to the outcome that its status reports.

use super::rollout::{Rollout, no_matches};
use super::teardown::tear_down;
use crate::account_client::AccountClient;
use crate::cluster_extension::{ObjectKey, find_account, release_objects};
use crate::context::Context;
use crate::error::Error;
use crate::features::TrustMode;
use mainstay_api::names::olm_v1::{
    OWNER_NAME_LABEL, SERVICE_ACCOUNT_NAME_ANNOTATION, SERVICE_ACCOUNT_NAMESPACE_ANNOTATION,
};
use mainstay_api::{ClusterObjectSet, LifecycleState, ObservedPhase};
use mainstay_controller::api_message;
use mainstay_object::{NamespacedName, Object, builtin};
use mainstay_objectsets::{
    ObjectSetIdentity, ObjectSetOutcome, ProgressionProbes, ResolvedPhase, RolloutResult,
    SecretLookup, missing_account_message, mutable_secrets_message, observed_phases,
    referenced_secrets, resolve_phases, revision_errors_message, validate_revision,
    verify_observed_phases, watch_message, watched_kinds,
};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The outcome of a reconciliation.
#[derive(Debug)]
pub(super) enum Outcome {
    Blocked(String),
    Failed(String),
    Invalid(String),
    Applied(Box<RolloutResult>),
    Removing,
    Archived,
}

impl Outcome {
    /// The outcome as the rules of the status take it.
    pub(super) fn as_rule(&self) -> ObjectSetOutcome<'_> {
        match self {
            Self::Blocked(message) => ObjectSetOutcome::Blocked(message),
            Self::Failed(message) => ObjectSetOutcome::Failed(message),
            Self::Invalid(message) => ObjectSetOutcome::Invalid(message),
            Self::Applied(rollout) => ObjectSetOutcome::Applied(rollout),
            Self::Removing => ObjectSetOutcome::Removing,
            Self::Archived => ObjectSetOutcome::Archived,
        }
    }
}

/// Why the objects of a set cannot be read.
pub(super) enum Unreadable {
    /// Only another set can help.
    Blocked(String),
    /// Another attempt may help.
    Failed(String),
}

impl From<Unreadable> for Outcome {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Blocked(why) => Self::Blocked(why),
            Unreadable::Failed(why) => Self::Failed(why),
        }
    }
}

/// The objects of a set as its spec and its Secrets say.
pub(super) struct Objects {
    pub(super) phases: Vec<ResolvedPhase>,
    /// The digests of the phases.
    digests: Vec<ObservedPhase>,
}

/// The objects of a set, which may be applied or removed.
pub(super) struct Content {
    pub(super) objects: Arc<Objects>,
    pub(super) observed: Vec<ObservedPhase>,
    pub(super) client: AccountClient,
}

/// Reads the objects of a set.
///
/// # Errors
/// Why they may be neither applied nor removed.
pub(super) async fn read_objects(
    context: &Context,
    set: &ClusterObjectSet,
) -> Result<Objects, Unreadable> {
    let secrets = read_secrets(context, set).await;
    let immutable = |name: &NamespacedName| {
        let secret = secrets.get(name)?.as_ref().ok()?;
        Some(secret.bool(&["immutable"]) == Some(true))
    };
    if let Some(message) = mutable_secrets_message(&set.spec, immutable) {
        return Err(Unreadable::Blocked(message));
    }
    let phases = resolve_phases(&set.spec, |reference| {
        let name = NamespacedName::new(&*reference.namespace, &*reference.name);
        match secrets.get(&name) {
            Some(Ok(secret)) => SecretLookup::Found(secret),
            Some(Err(message)) => SecretLookup::Failed(message),
            // Each one was read.
            None => SecretLookup::Failed(""),
        }
    });
    let phases = phases.map_err(|error| Unreadable::Failed(error.to_string()))?;
    let digests = observed_phases(&phases);
    Ok(Objects { phases, digests })
}

/// The objects of a set as values.
///
/// # Errors
/// The message: a Secret of the set cannot be read, or the objects cannot be applied.
pub(crate) async fn object_values(
    context: &Context,
    set: &ClusterObjectSet,
) -> Result<Vec<Value>, String> {
    let objects = read_objects(context, set).await;
    let objects = objects.map_err(|(Unreadable::Blocked(why) | Unreadable::Failed(why))| why)?;
    let phases = objects.phases.iter().flat_map(|phase| &phase.objects);
    Ok(phases.map(|object| object.object.to_value()).collect())
}

/// Checks that the objects of a set are those that were applied first.
///
/// # Errors
/// Why they may be neither applied nor removed, with the digests if those were found.
pub(super) async fn content(
    context: &Context,
    set: &ClusterObjectSet,
    objects: Arc<Objects>,
) -> Result<Content, (Outcome, Vec<ObservedPhase>)> {
    let observed = verify_observed_phases(&set.status.observed_phases, objects.digests.clone());
    let observed = observed.map_err(|error| (Outcome::Blocked(error.to_string()), Vec::new()))?;
    match client(context, set).await {
        Ok(client) => Ok(Content { objects, observed, client }),
        Err(message) => Err((Outcome::Failed(message), observed)),
    }
}

async fn read_secrets(
    context: &Context,
    set: &ClusterObjectSet,
) -> HashMap<NamespacedName, Result<Object, String>> {
    let mut secrets = HashMap::new();
    for name in referenced_secrets(&set.spec) {
        let namespace = match &*name.namespace {
            "" => &*context.release_namespace,
            namespace => namespace,
        };
        let found = context.cluster.get(&builtin::SECRET, Some(namespace), &name.name).await;
        let found = found.map_err(|error| api_message(&error));
        secrets.insert(name, found);
    }
    secrets
}

/// The client for the objects of a set.
///
/// # Errors
/// The set names no ServiceAccount, or one that does not exist.
async fn client(context: &Context, set: &ClusterObjectSet) -> Result<AccountClient, String> {
    match context.features.trust {
        TrustMode::ClusterAdmin => return Ok(AccountClient::of_process(context)),
        TrustMode::Approved => return client_of_extension(context, set).await,
        TrustMode::ServiceAccount => {}
    }
    let annotation = |name: &str| {
        let value = set.metadata.annotations.get(name);
        value.filter(|value| !value.is_empty())
    };
    let name = annotation(SERVICE_ACCOUNT_NAME_ANNOTATION);
    let namespace = annotation(SERVICE_ACCOUNT_NAMESPACE_ANNOTATION);
    let (Some(name), Some(namespace)) = (name, namespace) else {
        return Err(missing_account_message(&set.metadata.name));
    };
    AccountClient::of_service_account(context, namespace, name).await
}

/// The client with the account that the controller keeps for the extension of a set. What a set says itself
/// about accounts does not count.
///
/// # Errors
/// The set belongs to no extension, or the account does not exist.
async fn client_of_extension(
    context: &Context,
    set: &ClusterObjectSet,
) -> Result<AccountClient, String> {
    let owners = set.metadata.owner_references.iter();
    let extension = owners.filter(|owner| owner.is_controller()).find_map(|owner| {
        let extension = context.extensions.get(&NamespacedName::cluster(&*owner.name))?;
        (extension.metadata.uid == owner.uid).then_some(extension)
    });
    let extension = extension.ok_or_else(|| {
        format!(
            "ClusterObjectSet \"{}\" belongs to no ClusterExtension, whose account would apply its objects",
            set.metadata.name
        )
    })?;
    find_account(context, &extension).await?;
    AccountClient::of_kept_account(context, &extension)
}

/// Removes the objects of an archived set.
pub(super) async fn archive(
    context: &Context,
    set: &ClusterObjectSet,
    content: &Content,
) -> Outcome {
    let identity = ObjectSetIdentity::from(set);
    match Box::pin(tear_down(context, &content.client, &identity, &content.objects.phases)).await {
        Ok(true) => Outcome::Archived,
        Ok(false) => Outcome::Removing,
        Err(message) => Outcome::Failed(message),
    }
}

/// Releases the objects of a deleted set that their annotation keeps. A set whose objects cannot be read has none but
/// CustomResourceDefinitions, so that its deletion never hangs.
///
/// # Errors
/// If an object cannot be released; see [`release_objects`].
pub(super) async fn release(context: &Context, set: &ClusterObjectSet) -> Result<(), Error> {
    let objects = read_objects(context, set).await;
    let objects =
        objects.iter().flat_map(|objects| &objects.phases).flat_map(|phase| &phase.objects);
    let keys: BTreeSet<ObjectKey> = objects.map(|object| ObjectKey::of(&object.object)).collect();
    let account = client(context, set).await.ok();
    let account = account.as_ref().map(|account| &account.cluster);
    let extension = set.metadata.labels.get(OWNER_NAME_LABEL).map_or("", String::as_str);
    release_objects(context, account, extension, &set.metadata.uid, keys).await
}

/// Applies the objects of an active set.
pub(super) async fn apply(
    context: &Context,
    set: &ClusterObjectSet,
    previous: &[ClusterObjectSet],
    content: &Content,
) -> Outcome {
    if let Err(message) = watch(context, content).await {
        return Outcome::Failed(watch_message(&message));
    }
    let (name, revision) = (&set.metadata.name, set.spec.revision);
    if let Err(errors) = validate_revision(name, revision, &content.objects.phases) {
        return Outcome::Invalid(revision_errors_message(&errors));
    }
    let probes = match ProgressionProbes::read(&set.spec.progression_probes) {
        Ok(probes) => probes,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let identity = ObjectSetIdentity::from(set);
    let previous: Vec<ObjectSetIdentity> = previous.iter().map(ObjectSetIdentity::from).collect();
    let rollout = Rollout {
        context,
        client: &content.client,
        set: &identity,
        previous: &previous,
        probes: &probes,
        identity: rollout_identity(set, &previous),
    };
    match Box::pin(rollout.run(&content.objects.phases)).await {
        Ok(mut rollout) => {
            rollout.unwatched = unwatched(context, content);
            Outcome::Applied(Box::new(rollout))
        }
        Err(message) => Outcome::Failed(message),
    }
}

/// What decides about the objects of a set besides themselves. The content of a set never changes.
fn rollout_identity(set: &ClusterObjectSet, previous: &[ObjectSetIdentity]) -> Arc<str> {
    let mut identity = format!("{} {}", set.metadata.uid, set.metadata.generation);
    for earlier in previous {
        identity.push(' ');
        identity.push_str(&earlier.uid);
    }
    identity.into()
}

/// Watches all kinds of a set.
async fn watch(context: &Context, content: &Content) -> Result<(), String> {
    for gvk in watched_kinds(&content.objects.phases) {
        let found = context.resources.find(&context.cluster, &gvk).await;
        let Some(resource) = found.map_err(|error| api_message(&error))? else {
            return Err(no_matches(&gvk.kind, &gvk.api_version()));
        };
        context.object_watches.watch(&resource, &content.client);
    }
    Ok(())
}

/// Why a kind of a set cannot be watched. The account that the controller keeps gets the permissions for it; they may
/// only take effect later.
fn unwatched(context: &Context, content: &Content) -> Option<String> {
    if context.features.trust != TrustMode::ServiceAccount {
        return None;
    }
    let kinds = watched_kinds(&content.objects.phases);
    let refusal = context.object_watches.refusal(&kinds, &content.client.account);
    refusal.map(|why| why.to_string())
}

/// Whether a set is archived.
pub(super) fn is_archived(set: &ClusterObjectSet) -> bool {
    set.spec.lifecycle_state == LifecycleState::Archived
}
