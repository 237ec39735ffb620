//! Teardown of an archived ClusterObjectSet: its objects are deleted, phase by phase in reverse.

use crate::account_client::AccountClient;
use crate::cluster_extension::release_patch;
use crate::context::Context;
use mainstay_client::{DeleteOptions, Patch, Preconditions};
use mainstay_controller::api_message;
use mainstay_object::Object;
use mainstay_objectsets::{ObjectSetIdentity, ResolvedPhase, TeardownDecision, decide_teardown};
use serde_json::json;

/// Tears the phases down, up to the first one of which an object remains. Returns whether no object
/// remains.
///
/// # Errors
/// The message of the first object that can be neither read nor written.
pub(super) async fn tear_down(
    context: &Context,
    client: &AccountClient,
    set: &ObjectSetIdentity,
    phases: &[ResolvedPhase],
) -> Result<bool, String> {
    for phase in phases.iter().rev() {
        let mut is_gone = true;
        for object in phase.objects.iter().rev() {
            is_gone &= remove(context, client, set, &object.object).await?;
        }
        if !is_gone {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Deletes an object, or releases it to its other owners. Returns whether it counts as gone.
async fn remove(
    context: &Context,
    client: &AccountClient,
    set: &ObjectSetIdentity,
    object: &Object,
) -> Result<bool, String> {
    let failed =
        |error: mainstay_client::Error| format!("tearing down object: {}", api_message(&error));
    let found = context.resources.find(&context.cluster, &object.gvk()).await;
    // A kind that is gone has no objects.
    let Some(resource) = found.map_err(failed)? else { return Ok(true) };
    context.object_watches.watch(&resource, client);
    let namespace = Some(object.namespace()).filter(|namespace| !namespace.is_empty());
    let actual = client.cluster.find(&resource, namespace, object.name()).await.map_err(failed)?;
    // An object that its annotation keeps stays, without this owner.
    if let Some(patch) = actual.as_ref().and_then(|actual| release_patch(actual, &set.uid)) {
        return match client.cluster.patch(&resource, namespace, object.name(), &patch).await {
            Err(error) if error.is_conflict() => Ok(false),
            Err(error) if !error.is_not_found() => Err(failed(error)),
            _ => Ok(true),
        };
    }
    match decide_teardown(actual.as_ref(), set).map_err(|error| error.to_string())? {
        TeardownDecision::Gone => Ok(true),
        TeardownDecision::Release(owners) => {
            let actual = actual.unwrap_or_default();
            let patch = Patch::Merge(json!({"metadata": {
                "uid": actual.uid(),
                "resourceVersion": actual.resource_version(),
                "ownerReferences": owners,
            }}));
            match client.cluster.patch(&resource, namespace, object.name(), &patch).await {
                // Another reconciliation looks at the object as it is then.
                Err(error) if error.is_conflict() => Ok(false),
                Err(error) if !error.is_not_found() => Err(failed(error)),
                _ => Ok(true),
            }
        }
        TeardownDecision::Delete { uid, resource_version } => {
            let preconditions =
                Preconditions { uid: Some(uid), resource_version: Some(resource_version) };
            let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
            match client.cluster.delete(&resource, namespace, object.name(), &options).await {
                Err(error) if error.is_not_found() => Ok(true),
                Err(error) if error.is_conflict() => Ok(false),
                Err(error) => Err(failed(error)),
                Ok(_) => Ok(false),
            }
        }
    }
}
