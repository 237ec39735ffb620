//! An embedded cluster with the controllers of OLM classic and of OLM v1, as commands use it.

use mainstay_api::CrdChannel;
use mainstay_classic::{CatalogPods, Classic, FOLDER_ADDRESS, FolderCatalog, NetworkSettings};
use mainstay_clitest::DirectCluster;
use mainstay_extensions::{Extensions, Features};
use mainstay_image::build::{self, LayerFiles};
use mainstay_image::manifest::{ImageConfig, RunConfig};
use mainstay_image::platform::Platform;
use mainstay_image::policy::SignaturePolicy;
use mainstay_image::reference::ImageReference;
use mainstay_image::registry::{ClientSettings, Proxies};
use mainstay_image::store::ImageStore;
use mainstay_images::{ImageSources, LocalName};
use mainstay_object::Object;
use mainstay_registry::ServedCatalogs;
use mainstay_testkit::TestCluster;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// The namespace of the catalog of OLM classic.
pub(crate) const CATALOG_NAMESPACE: &str = "olm";

/// The label for the folder of a catalog.
const CATALOG_LABEL: &str = "operators.operatorframework.io.index.configs.v1";

/// The cluster with both controllers. Its catalogs have the same bundles: `cat` of OLM classic comes from a
/// folder, `cat` of OLM v1 from an image.
pub(crate) struct LiveCluster {
    pub(crate) cluster: TestCluster,
    /// The cluster as commands use it.
    pub(crate) commands: DirectCluster,
    folder: TempDir,
    classic: Classic,
    extensions: Extensions,
}

impl LiveCluster {
    /// Starts it. `documents` is the catalog; each bundle is an image with files.
    pub(crate) async fn start(
        features: Features,
        documents: &str,
        bundles: &[(&str, &[(&str, String)])],
    ) -> Self {
        let cluster = TestCluster::start().await;
        let channel =
            if features.object_sets { CrdChannel::Experimental } else { CrdChannel::Standard };
        for crd in mainstay_api::crds().into_iter().chain(mainstay_api::olm_v1_crds(channel)) {
            cluster.apply(crd).await;
        }
        for name in [CATALOG_NAMESPACE, "olmv1-system", "team"] {
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            cluster.apply(Object::from_value(namespace).unwrap()).await;
        }
        let folder = tempfile::tempdir().unwrap();
        for name in ["classic", "work", "catalog"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("catalog/catalog.json"), documents).unwrap();
        let store = ImageStore::open(folder.path().join("local")).unwrap();
        let files = [("configs/catalog.json", documents.to_owned())];
        put_image(&store, "r.example/cat:v1", &files, Some((CATALOG_LABEL, "/configs")));
        for (image, files) in bundles {
            put_image(&store, image, files, None);
        }
        let served = Arc::<ServedCatalogs>::default();
        let classic = start_classic(&cluster, folder.path());
        let options = mainstay_extensions::Options {
            external_address: "catalogs.example".to_owned(),
            served: Arc::clone(&served),
            retry: (Duration::from_millis(10), Duration::from_millis(200)),
            features,
            ..mainstay_extensions::Options::new(
                cluster.clock(),
                image_sources(&cluster, folder.path()),
                folder.path().join("content"),
            )
        };
        let extensions = Extensions::start(cluster.cluster(), options);
        classic.synced().await;
        extensions.synced().await;
        let commands = DirectCluster::with_catalogs(cluster.cluster().clone(), served);
        let live = Self { cluster, commands, folder, classic, extensions };
        live.create_catalogs().await;
        live
    }

    async fn create_catalogs(&self) {
        for manifest in [
            json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
                "metadata": {"name": "cat", "namespace": CATALOG_NAMESPACE},
                "spec": {"sourceType": "grpc", "address": FOLDER_ADDRESS},
            }),
            json!({
                "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
                "metadata": {"name": "cat"},
                "spec": {"source": {"type": "Image", "image": {"ref": "r.example/cat:v1"}}},
            }),
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "catalogd-ca", "namespace": "olmv1-system"},
                "data": {"ca.crt": "the CA"},
            }),
        ] {
            self.cluster.apply(Object::from_value(manifest).unwrap()).await;
        }
        let serving = |catalog: &Object| catalog.condition("Serving") == Some("True");
        let kind = &mainstay_api::resources::CLUSTER_CATALOG;
        self.cluster.wait_for(kind, None, "cat", serving).await;
    }

    /// Stores another image with the catalog.
    pub(crate) fn put_catalog(&self, image: &str, documents: &str) {
        let store = ImageStore::open(self.folder.path().join("local")).unwrap();
        let files = [("configs/catalog.json", documents.to_owned())];
        put_image(&store, image, &files, Some((CATALOG_LABEL, "/configs")));
    }

    /// The folder of the test.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stops the controllers and the cluster.
    pub(crate) async fn shutdown(self) {
        self.classic.shutdown().await;
        self.extensions.shutdown().await;
        self.cluster.shutdown().await;
    }
}

fn start_classic(cluster: &TestCluster, folder: &Path) -> Classic {
    let options = mainstay_classic::Options {
        clock: cluster.clock(),
        global_namespace: CATALOG_NAMESPACE.to_owned(),
        catalogs: vec![FolderCatalog {
            namespace: CATALOG_NAMESPACE.to_owned(),
            name: "cat".to_owned(),
            folder: folder.join("catalog"),
            served: None,
            address: None,
        }],
        cache: None,
        images: Some(image_sources(cluster, &folder.join("classic"))),
        serve: None,
        surroundings: NetworkSettings {
            registries: Proxies::default(),
            proxy: mainstay_classic::ProxySettings::default(),
            trusted: None,
        },
        timeouts: mainstay_classic::Timeouts::default(),
        protected: BTreeSet::new(),
        defaults: None,
    };
    Classic::start_with(cluster.cluster(), options, CatalogPods::default())
}

fn image_sources(cluster: &TestCluster, folder: &Path) -> ImageSources {
    let work = folder.join("work");
    std::fs::create_dir_all(&work).unwrap();
    ImageSources {
        local: ImageStore::open(folder.join("local")).unwrap(),
        named: Arc::new(|reference: &ImageReference| LocalName {
            reference: reference.clone(),
            only_here: true,
        }),
        pulled: ImageStore::open(folder.join("pulled")).unwrap(),
        registries: ClientSettings::new(cluster.clock()),
        policy: Arc::new(|| Ok(SignaturePolicy::accept_anything())),
        work,
    }
}

fn put_image(
    store: &ImageStore,
    name: &str,
    files: &[(&str, String)],
    label: Option<(&str, &str)>,
) {
    let mut content = LayerFiles::default();
    for (path, text) in files {
        content.add(path, text.as_bytes().to_vec()).unwrap();
    }
    let labels = label.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let run = RunConfig { labels: labels.into_iter().collect(), ..RunConfig::default() };
    let config = ImageConfig { config: run, ..ImageConfig::default() };
    let layer = build::layer(store, &content).unwrap();
    let image = build::image(store, Platform::host(), config, &[layer]).unwrap();
    store.set(&ImageReference::parse(name).unwrap(), &image).unwrap();
}

/// A JSON document on one line.
pub(crate) fn line(value: &Value) -> String {
    format!("{value}\n")
}
