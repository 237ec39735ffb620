//! Kept objects: those of a deleted extension whose annotation `helm.sh/resource-policy` keeps them. Their
//! owner references go before the extension, so that the garbage collector leaves them, as Helm does.
//!
//! The objects are those of the last releases, and the CustomResourceDefinitions with the labels of the
//! extension. The latter are found even if a release is damaged: a deletion does not wait for its repair.

use super::account;
use super::apply::ObjectKey;
use super::releases;
use crate::account_client::AccountClient;
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
/// If the cluster does not respond, or an object changes meanwhile. An object that the account may not read
/// or change counts as not kept, so that a deletion needs no ServiceAccount.
pub(super) async fn release(context: &Context, extension: &ClusterExtension) -> Result<(), Error> {
    if context.object_sets.is_some() {
        // The objects belong to ClusterObjectSets, whose controller releases them.
        return Ok(());
    }
    let name = &*extension.metadata.name;
    let client = match account::client(context, extension).await {
        Ok(client) => client,
        Err(_) => AccountClient::of_process(context),
    };
    let mut keys = BTreeSet::new();
    if let Ok(history) = releases::history(context, name).await {
        for release in history.deployed().into_iter().chain(history.last()) {
            keys.extend(release.objects().unwrap_or_default().iter().map(ObjectKey::of));
        }
    }
    let selector = format!("{OWNER_KIND_LABEL}={},{OWNER_NAME_LABEL}={name}", super::OWNER_KIND);
    let list = ObjectList { metadata_only: true, ..ObjectList::labels(selector) };
    let crds = client.cluster.list(&builtin::CUSTOM_RESOURCE_DEFINITION, None, &list).await;
    match crds {
        Err(error) if error.is_forbidden() => {}
        listed => {
            let listed = listed.during("listing the CustomResourceDefinitions of an extension")?;
            let gvk = builtin::CUSTOM_RESOURCE_DEFINITION.gvk();
            keys.extend(
                listed.items.iter().map(|crd| ObjectKey { gvk: gvk.clone(), name: crd.key() }),
            );
        }
    }
    for key in keys {
        let found = context.resources.find(&context.cluster, &key.gvk).await;
        let resource = found.during("finding the resource of an object of an extension")?;
        // A kind that is gone has no objects.
        let Some(resource) = resource else { continue };
        release_object(&client.cluster, &resource, &key, &extension.metadata.uid).await?;
    }
    Ok(())
}

/// Takes an object from its owner, if its annotation keeps it.
async fn release_object(
    cluster: &Cluster,
    resource: &Resource,
    key: &ObjectKey,
    owner: &str,
) -> Result<(), Error> {
    let namespace = Some(&*key.name.namespace).filter(|namespace| !namespace.is_empty());
    let found = match cluster.find(resource, namespace, &key.name.name).await {
        Err(error) if error.is_forbidden() => return Ok(()),
        found => found.during("reading an object of a deleted extension")?,
    };
    let Some(patch) = found.as_ref().and_then(|found| release_patch(found, owner)) else {
        return Ok(());
    };
    match cluster.patch(resource, namespace, &key.name.name, &patch).await {
        Err(error) if error.is_not_found() || error.is_forbidden() => {}
        patched => {
            patched.during("keeping an object of a deleted extension")?;
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
