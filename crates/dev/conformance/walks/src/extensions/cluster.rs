//! Clusters with the controllers of OLM v1, a ClusterCatalog and the images of its bundles.

use super::Applier;
use super::content::ExtensionContent;
use crate::catalogs::PackageUnderTest;
use crate::walk_cluster::{NAME, WalkCluster};
use mainstay_api::resources::CLUSTER_CATALOG;
use mainstay_api::{olm_v1_crds, require_service_accounts};
use mainstay_controller::Subsystem;
use mainstay_extensions::{Extensions, Features, Options, TrustMode, folder_reference};
use mainstay_image::policy::SignaturePolicy;
use mainstay_image::reference::ImageReference;
use mainstay_image::registry::ClientSettings;
use mainstay_image::store::ImageStore;
use mainstay_images::{ImageSources, LocalName};
use mainstay_registry::{RegistryIndex, ServedCatalogs};
use mainstay_testkit::TestCluster;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The namespace of the controllers.
pub(crate) const SYSTEM_NAMESPACE: &str = "olmv1-system";
/// The host in the URL of the ClusterCatalog. Nobody connects to it.
const CATALOG_ADDRESS: &str = "catalogs.example";
/// The shortest and the longest pause before another attempt.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

/// The features of a walk.
pub(crate) const fn features(trust: TrustMode, applier: Applier) -> Features {
    match applier {
        Applier::HelmReleases => Features::standard(trust),
        Applier::ObjectSets => Features::object_sets(trust),
    }
}

/// Starts a cluster with the package's catalog, which is served.
///
/// # Errors
/// An image cannot be stored, or the cluster refuses an object.
pub(super) async fn start(
    item: &PackageUnderTest,
    content: &ExtensionContent,
    features: Features,
) -> anyhow::Result<WalkCluster> {
    let mut crds = olm_v1_crds(features.channel);
    if features.trust == TrustMode::ServiceAccount {
        crds = require_service_accounts(crds);
    }
    let folder = tempfile::tempdir()?;
    let served = served(content);
    let start = |test: &TestCluster, folder: &Path| {
        Ok(vec![controllers(content, features, test, folder, &served)?])
    };
    let namespaces = [SYSTEM_NAMESPACE];
    let cluster = WalkCluster::with_controllers(item, crds, &namespaces, folder, start).await?;
    create_catalog(&cluster).await?;
    Ok(cluster)
}

/// The catalog with the package, to serve it.
pub(crate) fn served(content: &ExtensionContent) -> Arc<ServedCatalogs> {
    let served = Arc::<ServedCatalogs>::default();
    let index = RegistryIndex::new(Arc::clone(&content.catalog), SystemTime::UNIX_EPOCH);
    served.put(NAME, Arc::new(index));
    served
}

/// The controllers of OLM v1, which serve the catalog and have its images.
///
/// # Errors
/// The folder cannot be written.
pub(crate) fn controllers(
    content: &ExtensionContent,
    features: Features,
    test: &TestCluster,
    folder: &Path,
    served: &ServedCatalogs,
) -> anyhow::Result<Box<dyn Subsystem>> {
    let work = folder.join("work");
    std::fs::create_dir(&work)?;
    let named =
        |reference: &ImageReference| LocalName { reference: reference.clone(), only_here: true };
    let images = ImageSources {
        local: content.images.clone(),
        named: Arc::new(named),
        pulled: ImageStore::open(folder.join("pulled"))?,
        registries: ClientSettings::new(test.clock()),
        policy: Arc::new(|| Ok(SignaturePolicy::accept_anything())),
        work,
    };
    let options = Options {
        external_address: CATALOG_ADDRESS.to_owned(),
        folders: served.get(NAME).map(|catalog| (NAME.to_owned(), catalog)).into_iter().collect(),
        retry: RETRY,
        features,
        ..Options::new(test.clock(), images, folder.join("content"))
    };
    Ok(Box::new(Extensions::start(test.cluster(), options)))
}

/// Creates the ClusterCatalog, and waits until it is served.
///
/// # Errors
/// The cluster refuses it.
pub(crate) async fn create_catalog(cluster: &WalkCluster) -> anyhow::Result<()> {
    cluster
        .apply(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": NAME},
            "spec": {"source": {"type": "Image", "image": {"ref": folder_reference(NAME)}}},
        }))
        .await?;
    cluster.test()?.wait_for_condition(&CLUSTER_CATALOG, None, NAME, "Serving").await;
    Ok(())
}
