//! Objects that a resolution reads from a cluster: all, or those of one namespace that the account may
//! list.

use mainstay_api::names;
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterHandle, ClusterReadError, Listing, namespaces_of_catalogs};
use mainstay_command::exit::CommandFailure;
use mainstay_object::Resource;

/// The wanted packages of OLM v1.
const CLUSTER_EXTENSION: Resource =
    Resource::cluster("olm.operatorframework.io", "v1", "ClusterExtension", "clusterextensions");
/// The catalogs of OLM v1.
const CLUSTER_CATALOG: Resource =
    Resource::cluster("olm.operatorframework.io", "v1", "ClusterCatalog", "clustercatalogs");

/// Lists the objects of a resolution. For one namespace, permission to list there is enough.
///
/// # Errors
/// The cluster does not respond, or the account may not even list Subscriptions and
/// ClusterServiceVersions.
pub(super) async fn observe(
    cluster: &impl ClusterHandle,
    namespace: Option<&str>,
) -> Result<Listing, CommandFailure> {
    // Copied CSVs are many, large, and do not matter here.
    let not_copied = format!("!{}", names::COPIED_FROM);
    let labels = |kind: &Resource| (*kind == CLUSTER_SERVICE_VERSION).then_some(&*not_copied);
    let mut listing = Listing::default();
    // Subscriptions first, as they name the namespaces of catalogs.
    for kind in [SUBSCRIPTION, CLUSTER_SERVICE_VERSION, OPERATOR_GROUP, CATALOG_SOURCE] {
        let Some(namespace) = namespace else {
            let objects = cluster.list(&kind, None, labels(&kind)).await.map_err(|error| {
                let forbidden = matches!(error, ClusterReadError::Forbidden(_));
                let cause = Cause::from(error);
                if forbidden {
                    cause.remedy("resolve a namespace that you may read, with -n NAMESPACE")
                } else {
                    cause
                }
            })?;
            listing.objects.extend(objects);
            continue;
        };
        if kind == CATALOG_SOURCE {
            let namespaces = namespaces_of_catalogs(&listing.objects, namespace);
            listing.add_in_all_namespaces(cluster, &kind, None, &namespaces).await?;
            continue;
        }
        listing.add_in_namespace(cluster, &kind, labels(&kind), namespace).await?;
        let needed = kind == SUBSCRIPTION || kind == CLUSTER_SERVICE_VERSION;
        if needed && listing.may_hide(&kind, namespace) {
            return Err(Cause::new(format!(
                "the {} of namespace {namespace} cannot be read: your account may not list them",
                kind.plural
            ))
            .remedy(format!("use an account with the ClusterRole `view` in namespace {namespace}"))
            .into());
        }
    }
    // Few clusters have OLM v1, and an account of one namespace need not see cluster-scoped objects.
    for kind in [CLUSTER_EXTENSION, CLUSTER_CATALOG] {
        match cluster.list(&kind, None, None).await {
            Ok(objects) => listing.objects.extend(objects),
            Err(ClusterReadError::UnknownKind(_) | ClusterReadError::Forbidden(_)) => {}
            Err(ClusterReadError::Failed(cause)) => return Err(cause.into()),
        }
    }
    Ok(listing)
}
