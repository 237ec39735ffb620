//! All packages of the ClusterCatalogs of a cluster, as a plan of extensions needs them.

use super::cluster_catalog;
use mainstay_api::resources::CLUSTER_CATALOG;
use mainstay_cause::Cause;
use mainstay_command::cluster::ClusterHandle;
use mainstay_command::exit::CommandFailure;
use mainstay_object::Object;
use mainstay_resolver::extension::{InputCatalog, InputCatalogContent, PlanCatalog, read_packages};
use std::collections::BTreeMap;

/// Reads all packages of the ClusterCatalogs that are switched on and served.
///
/// # Errors
/// The catalogs cannot be listed, or one that is served cannot be read: then a plan could differ from what
/// the controller does.
pub async fn read_catalogs(
    cluster: &impl ClusterHandle,
) -> Result<Vec<PlanCatalog>, CommandFailure> {
    let mut catalogs = Vec::new();
    for catalog in cluster.list(&CLUSTER_CATALOG, None, None).await? {
        catalogs.push(if cluster_catalog::is_served(&catalog) {
            served(cluster, &catalog).await?
        } else {
            PlanCatalog {
                catalog: InputCatalog::of(&catalog, InputCatalogContent::NotServed),
                packages: BTreeMap::new(),
            }
        });
    }
    Ok(catalogs)
}

async fn served(
    cluster: &impl ClusterHandle,
    catalog: &Object,
) -> Result<PlanCatalog, CommandFailure> {
    let documents = cluster_catalog::read_all_documents(cluster, catalog).await?;
    let packages = read_packages(&documents).map_err(|error| {
        Cause::new(format!("ClusterCatalog {} has invalid documents", catalog.name()))
            .because(Cause::new(error.to_string()))
            .remedy(
                "exclude it with spec.availabilityMode: Unavailable, or have its author correct it",
            )
    })?;
    let input = InputCatalog::of(catalog, InputCatalogContent::Package(None));
    Ok(PlanCatalog { catalog: input, packages })
}
