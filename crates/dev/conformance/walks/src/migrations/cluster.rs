//! Clusters with the controllers of OLM classic and of OLM v1, whose catalogs have the same content.

use crate::Applier;
use crate::catalogs::PackageUnderTest;
use crate::extensions::cluster::{SYSTEM_NAMESPACE, controllers, create_catalog, features};
use crate::extensions::content::ExtensionContent;
use crate::package_walk::catalog_source;
use crate::walk_cluster::{CATALOG_NAMESPACE, WalkCluster, classic};
use mainstay_api::{crds, olm_v1_crds};
use mainstay_extensions::TrustMode;
use mainstay_registry::ServedCatalogs;
use mainstay_testkit::TestCluster;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// Starts a cluster with the package's catalog for both systems.
///
/// # Errors
/// A folder cannot be written, or the cluster refuses an object.
pub(super) async fn start(
    item: &PackageUnderTest,
    content: &ExtensionContent,
    applier: Applier,
    served: &Arc<ServedCatalogs>,
) -> anyhow::Result<WalkCluster> {
    let features = features(TrustMode::ClusterAdmin, applier);
    let definitions = crds().into_iter().chain(olm_v1_crds(features.channel)).collect();
    let start = |test: &TestCluster, folder: &Path| {
        Ok(vec![
            classic(item, test, folder)?,
            controllers(content, features, test, folder, served)?,
        ])
    };
    let folder = tempfile::tempdir()?;
    let namespaces = [CATALOG_NAMESPACE, SYSTEM_NAMESPACE];
    let cluster =
        WalkCluster::with_controllers(item, definitions, &namespaces, folder, start).await?;
    cluster.apply(catalog_source()).await?;
    // The CA of the server of catalogs. Nobody connects to it.
    cluster
        .apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "catalogd-ca", "namespace": SYSTEM_NAMESPACE},
            "data": {"ca.crt": ""},
        }))
        .await?;
    create_catalog(&cluster).await?;
    Ok(cluster)
}
