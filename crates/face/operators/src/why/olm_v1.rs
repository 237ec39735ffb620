//! Objects of OLM v1 for an explanation: read from the cluster, with the content of the ClusterCatalogs.

use crate::extension::{owned_objects, owner_selector};
use mainstay_api::names::olm_v1::OWNER_NAME_LABEL;
use mainstay_api::resources::{CLUSTER_CATALOG, CLUSTER_EXTENSION, CLUSTER_OBJECT_SET};
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterHandle, ClusterReadError, Listing};
use mainstay_content::catalog::package_content;
use mainstay_explain::{
    ClusterObjects, ExplainedKind, ExplainedObject, ExtensionResolution, FetchedPackage,
    HiddenKind, selected_catalogs,
};
use mainstay_object::{Object, Resource, builtin};
use mainstay_removal::OperatorCrd;
use std::collections::BTreeSet;

/// Reads what explains an object of OLM v1.
///
/// # Errors
/// The cluster does not serve the kind of the object, or does not respond.
pub(super) async fn read(
    cluster: &impl ClusterHandle,
    target: &ExplainedObject,
) -> Result<ClusterObjects, Cause> {
    let own_kind = match target.kind {
        ExplainedKind::ClusterCatalog => &CLUSTER_CATALOG,
        ExplainedKind::ClusterObjectSet => &CLUSTER_OBJECT_SET,
        _ => &CLUSTER_EXTENSION,
    };
    let mut listing = Listing::default();
    listing.add_in_all_namespaces(cluster, own_kind, None, &BTreeSet::new()).await?;
    if target.kind == ExplainedKind::ClusterCatalog {
        return Ok(cluster_objects(listing, None));
    }
    for kind in [&CLUSTER_EXTENSION, &CLUSTER_CATALOG, &CLUSTER_OBJECT_SET] {
        if kind != own_kind {
            add_if_served(&mut listing, cluster, kind, None, &BTreeSet::new()).await?;
        }
    }
    let extension_name = match target.kind {
        ExplainedKind::ClusterExtension => Some(target.name.clone()),
        _ => find(&listing, &CLUSTER_OBJECT_SET, &target.name)
            .and_then(|set| set.label(OWNER_NAME_LABEL))
            .map(str::to_owned),
    };
    let Some(name) = extension_name else { return Ok(cluster_objects(listing, None)) };
    let extension = find(&listing, &CLUSTER_EXTENSION, &name).cloned();
    match &extension {
        Some(extension) if !extension.is_terminating() => {
            add_workloads(&mut listing, cluster, extension).await?;
        }
        _ if target.kind == ExplainedKind::ClusterExtension => {
            add_remaining_objects(&mut listing, cluster, &name).await?;
        }
        _ => {}
    }
    let is_live = |extension: &&Object| {
        target.kind == ExplainedKind::ClusterExtension && !extension.is_terminating()
    };
    let Some(extension) = extension.as_ref().filter(is_live) else {
        return Ok(cluster_objects(listing, None));
    };
    let mut resolution = None;
    if !hides(&listing, &CLUSTER_CATALOG) {
        let catalogs = of_kind(&listing, &CLUSTER_CATALOG);
        resolution = Some(resolve(cluster, extension, &catalogs).await);
    }
    let needs_all_crds = resolution.as_ref().is_some_and(ExtensionResolution::concerns_apis);
    add_crds(&mut listing, cluster, extension, needs_all_crds).await?;
    if let Some(resolution) = &mut resolution
        && !(needs_all_crds && hides(&listing, &builtin::CUSTOM_RESOURCE_DEFINITION))
    {
        let crds = of_kind(&listing, &builtin::CUSTOM_RESOURCE_DEFINITION);
        let extensions = of_kind(&listing, &CLUSTER_EXTENSION);
        resolution.check_dependencies(extension, &extensions, &crds);
    }
    Ok(cluster_objects(listing, resolution))
}

fn cluster_objects(listing: Listing, resolution: Option<ExtensionResolution>) -> ClusterObjects {
    ClusterObjects {
        objects: listing.objects,
        hidden: listing.hidden,
        resolution,
        ..ClusterObjects::default()
    }
}

fn find<'l>(listing: &'l Listing, kind: &Resource, name: &str) -> Option<&'l Object> {
    let matches = |object: &&Object| object.kind() == kind.kind && object.name() == name;
    listing.objects.iter().find(matches)
}

fn of_kind(listing: &Listing, kind: &Resource) -> Vec<Object> {
    listing.objects.iter().filter(|object| object.kind() == kind.kind).cloned().collect()
}

fn hides(listing: &Listing, kind: &Resource) -> bool {
    listing.hidden.iter().any(|hidden| hidden.kind == kind.kind)
}

/// Adds the objects of a kind, which the cluster need not serve.
async fn add_if_served(
    listing: &mut Listing,
    cluster: &impl ClusterHandle,
    kind: &Resource,
    labels: Option<&str>,
    namespaces: &BTreeSet<String>,
) -> Result<(), Cause> {
    match cluster.list(kind, None, labels).await {
        Ok(objects) => listing.objects.extend(objects),
        Err(ClusterReadError::UnknownKind(_)) => {}
        Err(ClusterReadError::Forbidden(_)) => {
            listing.add_in_all_namespaces(cluster, kind, labels, namespaces).await?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Adds the Deployments of a ClusterExtension, the Pods beside them, and its Namespace.
async fn add_workloads(
    listing: &mut Listing,
    cluster: &impl ClusterHandle,
    extension: &Object,
) -> Result<(), Cause> {
    let Some(selector) = owner_selector(extension.name()) else { return Ok(()) };
    let own = extension.str(&["spec", "namespace"]).unwrap_or_default().to_owned();
    let deployment = &builtin::DEPLOYMENT;
    let namespaces = BTreeSet::from([own.clone()]);
    add_if_served(listing, cluster, deployment, Some(&selector), &namespaces).await?;
    let deployments = listing.objects.iter().filter(|object| object.kind() == deployment.kind);
    let namespaces: BTreeSet<String> =
        deployments.map(|deployment| deployment.namespace().to_owned()).collect();
    for namespace in &namespaces {
        listing.add_in_namespace(cluster, &builtin::POD, None, namespace).await?;
    }
    match cluster.get(&builtin::NAMESPACE, None, &own).await {
        Ok(namespace) => listing.objects.extend(namespace),
        // The conditions say so if it is missing.
        Err(ClusterReadError::Forbidden(_) | ClusterReadError::UnknownKind(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Adds the CustomResourceDefinitions of a ClusterExtension, or those of the whole cluster, and the objects that they
/// wait for while they are being deleted.
async fn add_crds(
    listing: &mut Listing,
    cluster: &impl ClusterHandle,
    extension: &Object,
    is_for_all: bool,
) -> Result<(), Cause> {
    let selector = if is_for_all {
        None
    } else {
        let Some(selector) = owner_selector(extension.name()) else { return Ok(()) };
        Some(selector)
    };
    let mut crds = Listing::default();
    let kind = &builtin::CUSTOM_RESOURCE_DEFINITION;
    add_if_served(&mut crds, cluster, kind, selector.as_deref(), &BTreeSet::new()).await?;
    listing.hidden.extend(crds.hidden);
    for crd in crds.objects {
        add_with_custom_objects(listing, cluster, crd).await?;
    }
    Ok(())
}

/// Adds an object, and the objects that it waits for if it is a CustomResourceDefinition that is being deleted.
async fn add_with_custom_objects(
    listing: &mut Listing,
    cluster: &impl ClusterHandle,
    object: Object,
) -> Result<(), Cause> {
    let is_waiting =
        object.kind() == builtin::CUSTOM_RESOURCE_DEFINITION.kind && object.is_terminating();
    let crd = OperatorCrd { definition: object, objects: Vec::new() };
    if let Some(kind) = crd.resource().filter(|_| is_waiting) {
        add_if_served(listing, cluster, &kind, None, &BTreeSet::new()).await?;
    }
    listing.objects.push(crd.definition);
    Ok(())
}

/// Adds what is left of a ClusterExtension that is or was deleted, and the objects that its
/// CustomResourceDefinitions wait for.
async fn add_remaining_objects(
    listing: &mut Listing,
    cluster: &impl ClusterHandle,
    name: &str,
) -> Result<(), Cause> {
    let owned = owned_objects(cluster, name).await.map_err(|failure| failure.cause)?;
    let hidden = owned.hidden.into_iter();
    listing.hidden.extend(hidden.map(|kind| HiddenKind { kind, readable_namespaces: Vec::new() }));
    for object in owned.objects {
        if object.kind() == CLUSTER_OBJECT_SET.kind {
            continue;
        }
        add_with_custom_objects(listing, cluster, object).await?;
    }
    Ok(())
}

/// Resolves a ClusterExtension with the ClusterCatalogs that the cluster serves. What its bundle lacks is
/// missing from the result: see [`ExtensionResolution::check_dependencies`].
pub(crate) async fn resolve(
    cluster: &impl ClusterHandle,
    extension: &Object,
    catalogs: &[Object],
) -> ExtensionResolution {
    let package = extension.str(&["spec", "source", "catalog", "packageName"]).unwrap_or_default();
    let selected = selected_catalogs(extension, catalogs);
    let mut contents = Vec::with_capacity(catalogs.len());
    for catalog in catalogs {
        let content = if selected.contains(catalog.name()) {
            package_content(cluster, catalog, package).await
        } else {
            FetchedPackage::NotServed
        };
        contents.push((catalog.clone(), content));
    }
    ExtensionResolution::of(extension, &contents)
}
