//! CSV finalizer: removes the objects of a deleted CSV that owner references cannot reach.
//!
//! These are cluster-scoped objects, which no user of a namespace writes, and the Roles and
//! RoleBindings that [`super::rbac`] copied into other namespaces. Their labels name the CSV.

use super::observe::is_owner;
use super::{rbac, serving};
use crate::context::{Caches, Context};
use crate::error::Error;
use mainstay_api::{ClusterServiceVersion, names, resources};
use mainstay_client::{DeleteOptions, ObjectList};
use mainstay_controller::WithOperation as _;
use mainstay_object::{Gvk, NamespacedName, Resource, builtin};

/// Cluster-scoped kinds of the OpenShift console that bundles may contain.
const CONSOLE_KINDS: [&str; 5] = [
    "ConsoleLink",
    "ConsoleCLIDownload",
    "ConsolePlugin",
    "ConsoleQuickStart",
    "ConsoleYAMLSample",
];

/// The copied and cluster-scoped RBAC objects with the owner labels of a CSV.
fn owned_objects(caches: &Caches, namespace: &str, name: &str) -> Vec<(Resource, NamespacedName)> {
    let mut owned_objects = rbac::copies(caches, namespace, name);
    for (key, binding) in caches.cluster_role_bindings.list(None) {
        if is_owner(&binding.labels, namespace, name) {
            owned_objects.push((builtin::CLUSTER_ROLE_BINDING, key));
        }
    }
    for (key, role) in caches.cluster_roles.list(None) {
        if is_owner(&role.labels, namespace, name) {
            owned_objects.push((builtin::CLUSTER_ROLE, key));
        }
    }
    owned_objects
}

/// Removes the objects with the owner labels of a CSV that does not exist, for example because its
/// finalizer was removed by hand.
pub(crate) async fn remove_orphans(context: &Context, key: &NamespacedName) -> Result<(), Error> {
    let mut orphans = owned_objects(&context.caches, &key.namespace, &key.name);
    orphans.extend(serving::remove::owned_objects(&context.caches, &key.namespace, &key.name));
    if orphans.is_empty() {
        return Ok(());
    }
    // The cache of CSVs may lag behind those of the owned objects.
    let csv_resource = &resources::CLUSTER_SERVICE_VERSION;
    let found = context.cluster.find(csv_resource, key.namespace(), &key.name).await;
    if found.during("looking for a ClusterServiceVersion")?.is_some() {
        return Ok(());
    }
    for (resource, key) in &orphans {
        remove(context, resource, key).await?;
    }
    Ok(())
}

/// Removes every copied and cluster-scoped object of a CSV. Returns whether the caches have none
/// left, so that the finalizer may be removed.
pub(crate) async fn finalize(
    context: &Context,
    csv: &ClusterServiceVersion,
) -> Result<bool, Error> {
    let (namespace, name) = (&csv.metadata.namespace, &csv.metadata.name);
    let owned_objects = owned_objects(&context.caches, namespace, name);
    for (resource, key) in &owned_objects {
        remove(context, resource, key).await?;
    }
    // Copies in namespaces are deleted, but not waited for. A user of any namespace can label a
    // Role as such a copy and block its deletion with a finalizer. The garbage collector removes
    // real copies with the copied CSV.
    let cluster_objects_remain = owned_objects.iter().any(|(_, key)| key.namespace().is_none());
    let serving_objects_remain = !serving::remove::finalize(context, csv).await?;
    if !cluster_objects_remain && !serving_objects_remain {
        delete_bundle_cluster_objects(context, namespace, name).await?;
    }
    Ok(!cluster_objects_remain && !serving_objects_remain)
}

/// Deletes the cluster-scoped objects of other kinds from the bundle of a CSV. They are rare and
/// have no cache; their labels name the CSV.
async fn delete_bundle_cluster_objects(
    context: &Context,
    namespace: &str,
    name: &str,
) -> Result<(), Error> {
    let cluster = &context.cluster;
    let labels = format!(
        "{}={name},{}={namespace},{}={}",
        names::OWNER,
        names::OWNER_NAMESPACE,
        names::OWNER_KIND,
        resources::CLUSTER_SERVICE_VERSION.kind
    );
    // A label value has at most 63 characters, so no object has a label with a longer name.
    if [name, namespace].iter().any(|value| value.len() > 63) {
        return Ok(());
    }
    let mut kinds = vec![builtin::PRIORITY_CLASS];
    let console = |kind: &str| Gvk::new("console.openshift.io", "v1", kind);
    for kind in CONSOLE_KINDS {
        match cluster
            .resource_of(&console(kind))
            .await
            .during("looking up kinds of the OpenShift console")?
        {
            Some(resource) => kinds.push(resource),
            // A cluster has all of these kinds or none.
            None => break,
        }
    }
    for resource in &kinds {
        let found = cluster.list(resource, None, &ObjectList::labels(labels.as_str())).await;
        for object in found.during("listing the objects of a CSV's bundle")?.items {
            remove(context, resource, &object.key()).await?;
        }
    }
    Ok(())
}

pub(super) async fn remove(
    context: &Context,
    resource: &Resource,
    key: &NamespacedName,
) -> Result<(), Error> {
    context
        .cluster
        .ensure_deleted(resource, key.namespace(), &key.name, &DeleteOptions::default())
        .await
        .during("deleting an object of a ClusterServiceVersion")?;
    Ok(())
}
