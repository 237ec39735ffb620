//! A cluster with a ClusterCatalog of generated packages whose controllers are counted.

use crate::counted::{ControllerUsage, CountedThreads};
use crate::operators::catalog;
use anyhow::{Context as _, Result};
use mainstay_api::olm_v1_crds;
use mainstay_api::resources::{CLUSTER_CATALOG, CLUSTER_EXTENSION};
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
use mainstay_testkit::TestCluster;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// The namespace of the extensions.
pub(super) const NAMESPACE: &str = "work";
/// The namespace of the controllers.
const SYSTEM_NAMESPACE: &str = "olmv1-system";
/// The name of the ClusterCatalog.
const CATALOG: &str = "tools";
/// The name of the controllers' threads.
const THREAD_NAME: &str = "extensions";
/// The number of versions of each package.
const VERSIONS: usize = 2;
/// The label of an image for the folder of its catalog.
const CATALOG_LABEL: &str = "operators.operatorframework.io.index.configs.v1";

/// What is created before the controllers start for the first time.
pub(super) enum BeforeStart {
    /// Only the ClusterCatalog.
    Nothing,
    /// An extension of each package, too.
    CreateExtensions,
}

/// The cluster.
pub(super) struct ExtensionCluster {
    pub(super) clock: Clock,
    test_cluster: TestCluster,
    threads: CountedThreads,
    extensions: Option<Extensions>,
    features: Features,
    packages: usize,
    folder: TempDir,
}

impl ExtensionCluster {
    /// Starts a cluster and its controllers; the catalog with so many packages is served on return.
    pub(super) async fn start(
        packages: usize,
        features: Features,
        before: BeforeStart,
    ) -> Result<Self> {
        let test_cluster = TestCluster::start().await;
        for definition in olm_v1_crds(features.channel) {
            test_cluster.apply(definition).await;
        }
        for name in [SYSTEM_NAMESPACE, NAMESPACE] {
            let text = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}");
            test_cluster.apply_yaml(&text).await;
        }
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join("work")).context("making a folder to work in")?;
        let mut cluster = Self {
            clock: test_cluster.clock(),
            test_cluster,
            threads: CountedThreads::start(THREAD_NAME)?,
            extensions: None,
            features,
            packages,
            folder,
        };
        for package in (0..packages).map(catalog::package) {
            for number in 1..=VERSIONS {
                let files = catalog::bundle_files(&package, number);
                cluster.put_image(&bundle_image(&package, number), &files, None)?;
            }
        }
        if matches!(before, BeforeStart::CreateExtensions) {
            for package in (0..packages).map(catalog::package) {
                cluster.apply_extension(&package, 1).await?;
            }
        }
        cluster.start_controllers().await?;
        cluster.publish(0).await?;
        Ok(cluster)
    }

    /// Starts the controllers, and returns when all of them reconcile.
    pub(super) async fn start_controllers(&mut self) -> Result<()> {
        let client = self.threads.client(&self.test_cluster);
        let path = self.folder.path();
        let images = ImageSources {
            local: self.store()?,
            named: Arc::new(|reference: &ImageReference| LocalName {
                reference: reference.clone(),
                only_here: true,
            }),
            pulled: ImageStore::open(path.join("pulled"))?,
            registries: ClientSettings::new(self.clock),
            policy: Arc::new(|| Ok(SignaturePolicy::accept_anything())),
            work: path.join("work"),
        };
        let features = self.features;
        let options = Options {
            features,
            retry: (Duration::from_millis(50), Duration::from_secs(1)),
            ..Options::new(self.clock, images, path.join("content"))
        };
        let started = self.threads.handle().spawn(async move {
            let extensions = Extensions::start(&client, options);
            extensions.synced().await;
            extensions
        });
        self.extensions = Some(started.await.context("starting the controllers")?);
        Ok(())
    }

    /// Stops the controllers; the cluster continues.
    pub(super) async fn stop(&mut self) {
        if let Some(extensions) = self.extensions.take() {
            extensions.shutdown().await;
        }
    }

    /// Stops controllers and cluster.
    pub(super) async fn shutdown(mut self) {
        self.stop().await;
        self.threads.stop();
        self.test_cluster.shutdown().await;
    }

    /// Publishes the catalog with a package that has so many versions beside the others, and waits until it is
    /// served.
    pub(super) async fn publish(&self, change: usize) -> Result<()> {
        let image = format!("example.com/tools:v{change}");
        let text = catalog_text(self.packages, change)?;
        let label = (CATALOG_LABEL.to_owned(), "/configs".to_owned());
        self.put_image(&image, &[("configs/catalog.json", text)], Some(label))?;
        let applied = self.apply(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": CATALOG},
            "spec": {"source": {"type": "Image", "image": {"ref": image}}},
        }));
        let generation = applied.await?.i64(&["metadata", "generation"]);
        let is_served = |found: &Object| {
            let conditions = found.array(&["status", "conditions"]);
            let serving = conditions.iter().find(|condition| condition["type"] == "Progressing");
            serving.is_some_and(|serving| {
                serving["reason"] == "Succeeded"
                    && serving["observedGeneration"].as_i64() == generation
            })
        };
        self.test_cluster.wait_for(&CLUSTER_CATALOG, None, CATALOG, is_served).await;
        Ok(())
    }

    /// Creates or changes the extension of a package.
    pub(super) async fn apply_extension(&self, package: &str, number: usize) -> Result<()> {
        self.apply(extension(package, number)).await.map(drop)
    }

    /// Waits until a version of a package is installed.
    pub(super) async fn wait_until_installed(&self, package: &str, number: usize) {
        let version = format!("{number}.0.0");
        let is_installed = |found: &Object| {
            found.condition("Installed") == Some("True")
                && found.str(&["status", "install", "bundle", "version"]) == Some(&*version)
        };
        self.test_cluster.wait_for(&CLUSTER_EXTENSION, None, package, is_installed).await;
    }

    /// The usage of the controllers so far.
    pub(super) fn usage(&self) -> Result<ControllerUsage> {
        self.threads.usage()
    }

    /// The requests since the last call, by method and kind, per operation.
    pub(super) fn take_requests(&self, count: usize) -> String {
        self.threads.take_requests(count)
    }

    /// Waits until the controllers are idle; returns the time of their last write.
    pub(super) async fn wait_until_idle(&self) -> Duration {
        self.threads.wait_until_idle(&self.clock).await
    }

    async fn apply(&self, object: Value) -> Result<Object> {
        Ok(self.test_cluster.apply(Object::from_value(object).context("an object")?).await)
    }

    fn store(&self) -> Result<ImageStore> {
        Ok(ImageStore::open(self.folder.path().join("local"))?)
    }

    fn put_image(
        &self,
        name: &str,
        files: &[(&str, String)],
        label: Option<(String, String)>,
    ) -> Result<()> {
        let store = self.store()?;
        let mut content = LayerFiles::default();
        for (path, text) in files {
            content.add(path, text.as_bytes())?;
        }
        let run = RunConfig { labels: label.into_iter().collect(), ..RunConfig::default() };
        let config = ImageConfig { config: run, ..ImageConfig::default() };
        let layer = build::layer(&store, &content)?;
        let image = build::image(&store, Platform::host(), config, &[layer])?;
        store.set(&ImageReference::parse(name)?, &image)?;
        Ok(())
    }
}

/// The image of a bundle.
fn bundle_image(package: &str, number: usize) -> String {
    format!("example.com/{package}-bundle:v{number}")
}

/// The ClusterExtension of a version of a package.
pub(super) fn extension(package: &str, number: usize) -> Value {
    json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": package},
        "spec": {
            "namespace": NAMESPACE,
            "source": {"sourceType": "Catalog", "catalog": {
                "packageName": package, "version": format!("{number}.0.0"),
            }},
        },
    })
}

/// A catalog of so many packages, and one more with `more` versions.
pub(super) fn catalog_text(packages: usize, more: usize) -> Result<String> {
    let mut text = String::new();
    let packages = (0..packages).map(|number| (catalog::package(number), VERSIONS));
    for (package, versions) in packages.chain([("changing".to_owned(), more + 1)]) {
        let entries: Vec<Value> = (1..=versions)
            .map(|number| match number {
                1 => json!({"name": catalog::version(&package, number)}),
                _ => json!({
                    "name": catalog::version(&package, number),
                    "replaces": catalog::version(&package, number - 1),
                }),
            })
            .collect();
        let head = json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"});
        let channel = json!({
            "schema": "olm.channel", "name": "stable", "package": package, "entries": entries,
        });
        write!(text, "{head}\n{channel}\n")?;
        for number in 1..=versions {
            let bundle = json!({
                "schema": "olm.bundle", "name": catalog::version(&package, number), "package": package,
                "image": bundle_image(&package, number),
                "properties": [{"type": "olm.package", "value": {
                    "packageName": package, "version": format!("{number}.0.0"),
                }}],
            });
            writeln!(text, "{bundle}")?;
        }
    }
    Ok(text)
}

/// Writes the bundle folder of a version of a package.
pub(super) fn write_bundle(folder: &Path, package: &str, number: usize) -> Result<()> {
    for (path, text) in catalog::bundle_files(package, number) {
        let path = folder.join(path);
        let parent = path.parent().context("a file without a folder")?;
        std::fs::create_dir_all(parent).context("making the folder of a bundle")?;
        std::fs::write(&path, text).context("writing a bundle")?;
    }
    Ok(())
}
