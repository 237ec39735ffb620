//! The finalizers of a ClusterExtension.

use super::account;
use super::object_sets;
use super::retained_objects;
use crate::context::Context;
use crate::error::Error;
use mainstay_api::names::olm_v1::{CONTENT_MANAGER_CACHE_FINALIZER, UNPACK_CACHE_FINALIZER};
use mainstay_api::{ClusterExtension, resources};
use mainstay_client::Patch;
use mainstay_controller::WithOperation as _;
use serde_json::json;

/// The finalizers of an extension, as upstream. They go once the kept objects have lost their owner.
const FINALIZERS: [&str; 2] = [UNPACK_CACHE_FINALIZER, CONTENT_MANAGER_CACHE_FINALIZER];

/// The finalizer of a deletion after which the owned objects stay (`--cascade=orphan`).
const ORPHAN_FINALIZER: &str = "orphan";

/// Removes the finalizers. The garbage collector deletes the objects that have the extension as owner; kept ones
/// lose it before. The ClusterObjectSets go before the extension: one that outlived it would create an object again
/// that somebody deletes, and the account that the controller keeps for them goes with the extension. With
/// [`ORPHAN_FINALIZER`] the garbage collector takes the owner from them instead.
///
/// # Errors
/// A request fails.
pub(super) async fn remove(context: &Context, extension: &ClusterExtension) -> Result<(), Error> {
    let (ours, others): (Vec<_>, Vec<_>) =
        extension.metadata.finalizers.iter().partition(|name| FINALIZERS.contains(&name.as_str()));
    if !others.iter().any(|name| *name == ORPHAN_FINALIZER)
        && object_sets::delete_revisions(context, extension).await?
    {
        // The event of the last one goes on.
        return Ok(());
    }
    if !ours.is_empty() {
        retained_objects::release(context, extension).await?;
        write(context, extension, &json!(others)).await?;
    }
    if context.approved_accounts.is_some() {
        let account = account::name(context, extension);
        context.managed.end_watches(&account);
        context.object_watches.end_watches(&account);
    }
    Ok(())
}

/// Adds missing finalizers; returns whether one was missing.
pub(super) async fn add(context: &Context, extension: &ClusterExtension) -> Result<bool, Error> {
    let mut finalizers = extension.metadata.finalizers.clone();
    for name in FINALIZERS {
        if !finalizers.iter().any(|present| present == name) {
            finalizers.push(name.to_owned());
        }
    }
    if finalizers.len() == extension.metadata.finalizers.len() {
        return Ok(false);
    }
    write(context, extension, &json!(finalizers)).await?;
    Ok(true)
}

async fn write(
    context: &Context,
    extension: &ClusterExtension,
    finalizers: &serde_json::Value,
) -> Result<(), Error> {
    let patch = Patch::Merge(json!({"metadata": {
        "resourceVersion": extension.metadata.resource_version,
        "finalizers": finalizers,
    }}));
    let (resource, name) = (&resources::CLUSTER_EXTENSION, &*extension.metadata.name);
    match context.cluster.patch(resource, None, name, &patch).await {
        // The object went meanwhile.
        Err(error) if error.is_not_found() => Ok(()),
        written => Ok(written.map(drop).during("writing the finalizers of a ClusterExtension")?),
    }
}
