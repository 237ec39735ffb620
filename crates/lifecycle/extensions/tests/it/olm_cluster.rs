//! A cluster with the controllers of OLM v1, and images in the store of the cluster.

use mainstay_api::{CrdChannel, olm_v1_crds, resources};
use mainstay_client::Cluster;
use mainstay_clock::Clock;
use mainstay_extensions::{Extensions, Features, Options};
use mainstay_image::build::{self, LayerFiles};
use mainstay_image::manifest::{ImageConfig, RunConfig};
use mainstay_image::platform::Platform;
use mainstay_image::policy::SignaturePolicy;
use mainstay_image::reference::ImageReference;
use mainstay_image::registry::ClientSettings;
use mainstay_image::store::ImageStore;
use mainstay_images::{ImageSources, LocalName};
use mainstay_object::Object;
use mainstay_registry::{ServedCatalog, ServedCatalogs};
use mainstay_testkit::TestCluster;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// The label for the folder of a catalog.
pub(crate) const LABEL: &str = "operators.operatorframework.io.index.configs.v1";

/// The cluster and its image store.
pub(crate) struct OlmCluster {
    pub(crate) cluster: TestCluster,
    pub(crate) served: Arc<ServedCatalogs>,
    /// The catalog folders of the controllers, by name.
    pub(crate) folders: BTreeMap<String, Arc<ServedCatalog>>,
    /// Whether images come from registries; else from the store of the cluster.
    pub(crate) uses_registries: bool,
    /// The features of the controllers.
    pub(crate) features: Features,
    /// The clock of the controllers.
    pub(crate) clock: Clock,
    /// The first and the longest pause of the controllers after a failure.
    pub(crate) retry: (Duration, Duration),
    folder: TempDir,
    extensions: Option<Extensions>,
}

impl OlmCluster {
    /// A cluster with running controllers.
    pub(crate) async fn start() -> Self {
        let mut olm = Self::stopped().await;
        olm.start_controllers().await;
        olm
    }

    /// A cluster whose controllers do not run yet.
    pub(crate) async fn stopped() -> Self {
        Self::stopped_on(TestCluster::start().await).await
    }

    /// The same on a cluster that runs already.
    pub(crate) async fn stopped_on(cluster: TestCluster) -> Self {
        for crd in olm_v1_crds(CrdChannel::Standard) {
            cluster.apply(crd).await;
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Self {
            clock: cluster.clock(),
            cluster,
            served: Arc::default(),
            folders: BTreeMap::new(),
            uses_registries: false,
            features: Features::default(),
            retry: (Duration::from_millis(10), Duration::from_millis(200)),
            folder,
            extensions: None,
        }
    }

    /// Starts the controllers.
    pub(crate) async fn start_controllers(&mut self) {
        let cluster = self.cluster.cluster().clone();
        let extensions = self.controllers_on(&cluster);
        extensions.synced().await;
        self.extensions = Some(extensions);
    }

    /// Controllers that reach the cluster over this client. They serve no catalog at first.
    pub(crate) fn controllers_on(&mut self, cluster: &Cluster) -> Extensions {
        self.served = Arc::default();
        Extensions::start(cluster, self.options(self.content(), Arc::clone(&self.served)))
    }

    /// The options of controllers with this folder for content.
    pub(crate) fn options(&self, content: PathBuf, served: Arc<ServedCatalogs>) -> Options {
        let only_here = !self.uses_registries;
        let images = ImageSources {
            local: self.store(),
            named: Arc::new(move |reference: &ImageReference| LocalName {
                reference: reference.clone(),
                only_here,
            }),
            pulled: ImageStore::open(self.folder.path().join("pulled")).unwrap(),
            registries: ClientSettings {
                stall: Duration::from_millis(200),
                ..ClientSettings::new(self.cluster.clock())
            },
            policy: Arc::new(|| Ok(SignaturePolicy::accept_anything())),
            work: self.folder.path().join("work"),
        };
        Options {
            external_address: "catalogs.example".to_owned(),
            served,
            folders: self.folders.clone(),
            retry: self.retry,
            features: self.features,
            ..Options::new(self.clock, images, content)
        }
    }

    /// Stops the controllers; the cluster keeps running.
    pub(crate) async fn stop_controllers(&mut self) {
        self.extensions.take().unwrap().shutdown().await;
    }

    /// The folder with stored content.
    pub(crate) fn content(&self) -> PathBuf {
        self.folder.path().join("content")
    }

    /// How many images have stored content.
    pub(crate) fn stored_count(&self) -> usize {
        std::fs::read_dir(self.content()).map_or(0, Iterator::count)
    }

    /// The image store of the cluster.
    pub(crate) fn store(&self) -> ImageStore {
        ImageStore::open(self.folder.path().join("local")).unwrap()
    }

    /// Stores an image with a catalog of this text, or without the label if the text is none.
    pub(crate) fn put_image(&self, name: &str, catalog: Option<&str>) {
        let text = catalog.unwrap_or("no catalog");
        let labels = catalog.map(|_| (LABEL.to_owned(), "/configs".to_owned()));
        self.put_files(name, &[("configs/catalog.yaml", text)], labels);
    }

    /// Stores an image with files.
    pub(crate) fn put_files(
        &self,
        name: &str,
        files: &[(&str, &str)],
        labels: Option<(String, String)>,
    ) {
        let store = self.store();
        let mut content = LayerFiles::default();
        for (path, text) in files {
            content.add(path, text.as_bytes().to_vec()).unwrap();
        }
        let run = RunConfig { labels: labels.into_iter().collect(), ..RunConfig::default() };
        let config = ImageConfig { config: run, ..ImageConfig::default() };
        let layer = build::layer(&store, &content).unwrap();
        let image = build::image(&store, Platform::host(), config, &[layer]).unwrap();
        store.set(&ImageReference::parse(name).unwrap(), &image).unwrap();
    }

    /// The digest of a stored image.
    pub(crate) fn digest(&self, name: &str) -> String {
        let reference = ImageReference::parse(name).unwrap();
        self.store().resolve(&reference).unwrap().unwrap().digest.to_string()
    }

    /// Creates or changes a catalog; `more` has further fields of its spec.
    pub(crate) async fn apply_catalog(&self, name: &str, image: Value, more: Value) -> Object {
        let mut catalog = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": name},
            "spec": {"source": {"type": "Image", "image": image}},
        });
        if let (Some(spec), Value::Object(more)) = (catalog["spec"].as_object_mut(), more) {
            spec.extend(more);
        }
        self.cluster.apply(Object::from_value(catalog).unwrap()).await
    }

    /// Waits for a catalog in a state.
    pub(crate) async fn wait_for(
        &self,
        name: &str,
        predicate: impl FnMut(&Object) -> bool + Send,
    ) -> Object {
        self.cluster.wait_for(&resources::CLUSTER_CATALOG, None, name, predicate).await
    }

    /// Waits until the current spec of a catalog is served from this image.
    pub(crate) async fn wait_until_serving(&self, name: &str, image: &str) -> Object {
        let digest = self.digest(image);
        self.wait_for(name, |catalog| {
            let resolved = catalog.str(&["status", "resolvedSource", "image", "ref"]);
            let (_, _, observed) = condition(catalog, "Progressing");
            condition(catalog, "Progressing").1 == "Succeeded"
                && observed == catalog.i64(&["metadata", "generation"])
                && resolved.is_some_and(|resolved| resolved.ends_with(&digest))
        })
        .await
    }

    /// The lines that the HTTP API serves for a catalog; none if it serves none.
    pub(crate) fn lines(&self, name: &str) -> Option<String> {
        lines(&self.served, name)
    }
}

/// The lines of a served catalog; none if it is not served.
pub(crate) fn lines(served: &ServedCatalogs, name: &str) -> Option<String> {
    let documents = served.get(name)?.documents().unwrap()?;
    Some(String::from_utf8(documents.lines([""; 3]).unwrap()).unwrap())
}

/// Status, reason and observed generation of a condition; empty if it is absent.
pub(crate) fn condition(catalog: &Object, kind: &str) -> (String, String, Option<i64>) {
    let conditions = catalog.array(&["status", "conditions"]);
    let Some(found) = conditions.iter().find(|condition| condition["type"] == kind) else {
        return Default::default();
    };
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), found["observedGeneration"].as_i64())
}

/// The message of a condition.
pub(crate) fn message(catalog: &Object, kind: &str) -> String {
    let conditions = catalog.array(&["status", "conditions"]);
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    found.and_then(|found| found["message"].as_str()).unwrap_or_default().to_owned()
}

/// Waits until a condition holds that no object shows.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let held = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = held => {}
        () = mainstay_testkit::wait_for_timeout() => panic!("never: {what}"),
    }
}

/// Waits until a counter of requests stays the same for a while; returns it.
pub(crate) async fn quiet(requests: &AtomicUsize) -> usize {
    let mut before = requests.load(Ordering::SeqCst);
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = requests.load(Ordering::SeqCst);
        if now == before {
            return now;
        }
        before = now;
    }
}
