//! Kept objects: those of a deleted extension or ClusterObjectSet whose annotation `helm.sh/resource-policy` keeps them.
//! Their owner references go before the owner, so that the garbage collector leaves them, as Helm does.
//!
//! The objects are those that the owner lists, and the CustomResourceDefinitions with the labels of the extension. The
//! latter are found even if a release or a Secret is damaged: a deletion does not wait for its repair.
//!
//! The account of the extension may have lost its permissions, or be gone. Then the process does it with its own. An
//! object that it may not read or change either counts as not kept, so that a deletion never hangs; except for
//! CustomResourceDefinitions, with which all objects of their kinds would go.

use super::account;
use super::apply::ObjectKey;
use super::releases;
use crate::context::Context;
use crate::error::Error;
use mainstay_api::ClusterExtension;
use mainstay_api::names::olm_v1::{OWNER_KIND_LABEL, OWNER_NAME_LABEL, is_kept};
use mainstay_client::{Cluster, ObjectList, Patch};
use mainstay_controller::{WithOperation as _, decision};
use mainstay_object::{Object, OwnerReference, Resource, builtin};
use serde_json::json;
use std::collections::BTreeSet;

/// Takes the kept objects from an extension.
///
/// # Errors
/// If the cluster does not respond, an object changes meanwhile, or the process may not change a
/// CustomResourceDefinition.
pub(super) async fn release(context: &Context, extension: &ClusterExtension) -> Result<(), Error> {
    if context.object_sets.is_some() {
        // The objects belong to ClusterObjectSets, whose controller releases them.
        return Ok(());
    }
    let name = &*extension.metadata.name;
    let account = account::client(context, extension).await.ok();
    let mut keys = BTreeSet::new();
    if let Ok(history) = releases::history(context, name).await {
        for release in history.deployed().into_iter().chain(history.last()) {
            keys.extend(release.objects().unwrap_or_default().iter().map(ObjectKey::of));
        }
    }
    let account = account.as_ref().map(|account| &account.cluster);
    release_objects(context, account, name, &extension.metadata.uid, keys).await
}

/// Takes those of these objects, and of the CustomResourceDefinitions of an extension, from their owner that their
/// annotation keeps.
///
/// # Errors
/// As [`release`].
pub(crate) async fn release_objects(
    context: &Context,
    account: Option<&Cluster>,
    extension: &str,
    owner: &str,
    mut keys: BTreeSet<ObjectKey>,
) -> Result<(), Error> {
    let mut kept_crds = BTreeSet::new();
    if !extension.is_empty() {
        let kind = super::OWNER_KIND;
        let selector = format!("{OWNER_KIND_LABEL}={kind},{OWNER_NAME_LABEL}={extension}");
        let list = ObjectList { metadata_only: true, ..ObjectList::labels(selector) };
        let listed = context.cluster.list(&builtin::CUSTOM_RESOURCE_DEFINITION, None, &list).await;
        let listed = listed.during("listing the CustomResourceDefinitions of an extension")?;
        let gvk = builtin::CUSTOM_RESOURCE_DEFINITION.gvk();
        let kept = listed.items.iter().filter(|crd| is_kept(crd));
        kept_crds.extend(kept.map(|crd| ObjectKey { gvk: gvk.clone(), name: crd.key() }));
        keys.extend(kept_crds.iter().cloned());
    }
    for key in keys {
        let found = context.resources.find(&context.cluster, &key.gvk).await;
        let resource = found.during("finding the resource of an object of an extension")?;
        // A kind that is gone has no objects.
        let Some(resource) = resource else { continue };
        let process = &context.cluster;
        let mut released = release_object(account.unwrap_or(process), &resource, &key, owner).await;
        if account.is_some() && is_forbidden(&released) {
            released = release_object(process, &resource, &key, owner).await;
        }
        if !is_forbidden(&released) || kept_crds.contains(&key) {
            released.during("keeping an object of a deleted extension")?;
        }
    }
    Ok(())
}

fn is_forbidden(result: &Result<(), mainstay_client::Error>) -> bool {
    result.as_ref().is_err_and(mainstay_client::Error::is_forbidden)
}

/// Takes an object from its owner, if its annotation keeps it.
async fn release_object(
    cluster: &Cluster,
    resource: &Resource,
    key: &ObjectKey,
    owner: &str,
) -> Result<(), mainstay_client::Error> {
    let namespace = Some(&*key.name.namespace).filter(|namespace| !namespace.is_empty());
    let found = cluster.find(resource, namespace, &key.name.name).await?;
    let Some(patch) = found.as_ref().and_then(|found| release_patch(found, owner)) else {
        return Ok(());
    };
    match cluster.patch(resource, namespace, &key.name.name, &patch).await {
        Err(error) if error.is_not_found() => {}
        patched => {
            patched?;
            let why = "its annotation helm.sh/resource-policy keeps it";
            decision::log(&resource.kind, key.name.to_string(), "kept", why);
        }
    }
    Ok(())
}

/// The patch that takes an object from its owner; none if the owner has it not, or nothing keeps it.
pub(crate) fn release_patch(object: &Object, owner: &str) -> Option<Patch> {
    if !is_kept(object) {
        return None;
    }
    let owners = object.owner_references();
    let others: Vec<&OwnerReference> = owners.iter().filter(|other| other.uid != owner).collect();
    (others.len() < owners.len()).then(|| {
        Patch::Merge(json!({"metadata": {
            "uid": object.uid(),
            "resourceVersion": object.resource_version(),
            "ownerReferences": others,
        }}))
    })
}
