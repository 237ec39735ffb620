//! An embedded cluster with the controllers of OLM classic and of OLM v1, as commands use it.

use mainstay_api::CrdChannel;
use mainstay_cause::Cause;
use mainstay_classic::{CatalogPods, Classic, FOLDER_ADDRESS, FolderCatalog, NetworkSettings};
use mainstay_cli::cluster::{
    AcceptedWrite, CatalogEndpoint, CatalogReadError, ClusterHandle, ClusterReadError,
    ClusterWriteError, ClusterWriter, ObjectPage, ObjectWrite,
};
use mainstay_client::{Cluster, DeleteOptions, ObjectList, WriteOptions};
use mainstay_extensions::{Extensions, Features};
use mainstay_image::build::{self, LayerFiles};
use mainstay_image::manifest::{ImageConfig, RunConfig};
use mainstay_image::platform::Platform;
use mainstay_image::policy::SignaturePolicy;
use mainstay_image::reference::ImageReference;
use mainstay_image::registry::{ClientSettings, Proxies};
use mainstay_image::store::ImageStore;
use mainstay_images::{ImageSources, LocalName};
use mainstay_object::{Object, Resource};
use mainstay_registry::ServedCatalogs;
use mainstay_removal::DeletionStep;
use mainstay_resolver::fixture::CatalogData;
use mainstay_testkit::TestCluster;
use serde_json::{Value, json};
use std::cell::Cell;
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
    served: Arc<ServedCatalogs>,
    folder: TempDir,
    classic: Classic,
    extensions: Extensions,
    /// How many writes commands may still make; then each fails, as if the command were killed.
    pub(crate) writes_left: Cell<Option<usize>>,
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
        let live =
            Self { cluster, served, folder, classic, extensions, writes_left: Cell::new(None) };
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

    const fn cluster(&self) -> &Cluster {
        self.cluster.cluster()
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

fn cause(error: &mainstay_client::Error) -> Cause {
    Cause::new(error.to_string())
}

impl ClusterHandle for &LiveCluster {
    async fn list(
        &self,
        kind: &Resource,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<Object>, ClusterReadError> {
        let params = labels.map_or_else(ObjectList::default, ObjectList::labels);
        match self.cluster().list_pages(kind, namespace, &params).await {
            Ok(list) => Ok(list.items),
            Err(error) if error.is_not_found() => Err(ClusterReadError::UnknownKind(cause(&error))),
            Err(error) => Err(ClusterReadError::Failed(cause(&error))),
        }
    }

    async fn list_page(
        &self,
        kind: &Resource,
        _: u32,
        _: &str,
    ) -> Result<ObjectPage, ClusterReadError> {
        let objects = self.list(kind, None, None).await?;
        Ok(ObjectPage { objects, continue_token: String::new() })
    }

    async fn get(
        &self,
        kind: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>, ClusterReadError> {
        let found = self.cluster().find(kind, namespace, name).await;
        found.map_err(|error| ClusterReadError::Failed(cause(&error)))
    }

    async fn delete(&self, _: &DeletionStep) -> Result<(), Cause> {
        Err(Cause::new("no command of these tests uninstalls"))
    }

    async fn wait_until_gone(
        &self,
        _: &DeletionStep,
        _: Duration,
    ) -> Result<Option<Object>, Cause> {
        Err(Cause::new("no command of these tests uninstalls"))
    }

    fn default_namespace(&self) -> &'static str {
        "default"
    }

    async fn kube_version(&self) -> Option<String> {
        None
    }

    async fn namespaces(&self) -> Option<Vec<String>> {
        None
    }

    async fn read_catalog(&self, _: &str) -> Result<CatalogData, Cause> {
        Err(Cause::new("no command of these tests reads a registry"))
    }

    async fn read_cluster_catalog(
        &self,
        server: &CatalogEndpoint,
        path: &str,
    ) -> Result<Vec<u8>, CatalogReadError> {
        let CatalogEndpoint::Direct { base, .. } = server else {
            return Err(CatalogReadError::Failed(Cause::new("no Service serves catalogs")));
        };
        // As catalogd without queries.
        if path != "api/v1/all" {
            return Err(CatalogReadError::NotFound(Cause::new(path)));
        }
        let name = base.rsplit('/').next().unwrap_or_default();
        let served = self.served.get(name).and_then(|served| served.documents().unwrap());
        let documents = served.ok_or_else(|| CatalogReadError::NotFound(Cause::new(name)))?;
        Ok(documents.lines([""; 3]).unwrap())
    }
}

impl ClusterWriter for &LiveCluster {
    async fn write(
        &self,
        kind: &Resource,
        write: ObjectWrite<'_>,
        dry_run: bool,
    ) -> Result<AcceptedWrite, ClusterWriteError> {
        match self.writes_left.get() {
            Some(0) => return Err(ClusterWriteError::Failed(Cause::new("killed"))),
            Some(left) => self.writes_left.set(Some(left - 1)),
            None => {}
        }
        let cluster = self.cluster();
        let options = WriteOptions { dry_run, strict: true };
        let written = match write {
            ObjectWrite::Create(object) => cluster.create_with(kind, object, options).await,
            ObjectWrite::Replace(object) => cluster.update_with(kind, object, options).await,
            ObjectWrite::Delete(object) => {
                let namespace = Some(object.namespace()).filter(|namespace| !namespace.is_empty());
                let options = DeleteOptions::uid(object.uid()).dry_run(dry_run);
                let held = cluster.delete(kind, namespace, object.name(), &options).await;
                held.map(|held| held.unwrap_or_else(|| object.clone()))
            }
        };
        match written {
            Ok(object) => Ok(AcceptedWrite { object, warnings: Vec::new() }),
            Err(error) if error.is_already_exists() => {
                Err(ClusterWriteError::AlreadyExists(cause(&error)))
            }
            Err(error) if error.is_conflict() => Err(ClusterWriteError::Conflict(cause(&error))),
            Err(error) if error.is_not_found() => Err(ClusterWriteError::NotFound(cause(&error))),
            Err(error) => Err(ClusterWriteError::Failed(cause(&error))),
        }
    }
}

/// A JSON document on one line.
pub(crate) fn line(value: &Value) -> String {
    format!("{value}\n")
}
