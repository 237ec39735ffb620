//! The content of a package for OLM v1: a catalog whose bundles have images, and these images.

use crate::catalogs::PackageUnderTest;
use anyhow::{Context, anyhow};
use mainstay_bundle::render::{
    CertManager, InstallSettings, RegistryV1Bundle, TemplateAnnotations,
};
use mainstay_bundle::{Limits, MemoryFiles};
use mainstay_catalog::{Bundle, Catalog};
use mainstay_image::build::{self, LayerFiles};
use mainstay_image::manifest::ImageConfig;
use mainstay_image::platform::Platform;
use mainstay_image::reference::ImageReference;
use mainstay_image::store::ImageStore;
use mainstay_object::Object;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// The repository of bundles that are published without an image.
const UNPUBLISHED: &str = "walk.example/bundle";

/// A package, as OLM v1 reads it.
pub(crate) struct ExtensionContent {
    /// A catalog with this package only.
    pub(crate) catalog: Arc<Catalog>,
    /// Its bundles, by name.
    pub(crate) bundles: BTreeMap<String, BundleContent>,
    /// The images of its bundles.
    pub(crate) images: ImageStore,
    _folder: TempDir,
}

/// A bundle with its manifests.
pub(crate) struct BundleContent {
    pub(crate) bundle: Arc<Bundle>,
    /// The manifests, as the catalog has them.
    pub(crate) objects: Vec<Object>,
    /// The files of its image.
    files: BTreeMap<String, Vec<u8>>,
}

impl ExtensionContent {
    /// Reads a package and makes the images of its bundles. They are in the repositories of the published
    /// images; their digests are other ones.
    ///
    /// # Errors
    /// A bundle cannot be read, or an image cannot be stored.
    pub(crate) fn read(item: &PackageUnderTest) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let images = ImageStore::open(folder.path())?;
        let package = item.loaded_package().context("there is no such package")?;
        let (mut bundles, mut references) = (BTreeMap::new(), BTreeMap::new());
        for bundle in package.bundles() {
            let objects = bundle.objects()?;
            let files = match item.folder_of(&bundle.name) {
                Some(folder) => folder_files(folder)?,
                None => object_files(bundle, &objects),
            };
            let reference = store_image(&images, &bundle.image, &files)?;
            references.insert(bundle.name.to_string(), reference.to_string());
            let content = BundleContent { bundle: Arc::clone(bundle), objects, files };
            bundles.insert(bundle.name.to_string(), content);
        }
        let catalog = item.with_images(|bundle| references.get(bundle).cloned())?;
        Ok(Self { catalog, bundles, images, _folder: folder })
    }

    /// A bundle of the package.
    ///
    /// # Errors
    /// The package does not have it.
    pub(crate) fn bundle(&self, name: &str) -> anyhow::Result<&BundleContent> {
        self.bundles.get(name).with_context(|| format!("there is no bundle {name}"))
    }
}

impl BundleContent {
    /// The objects that an extension installs in a namespace.
    ///
    /// # Errors
    /// OLM v1 does not install the bundle.
    pub(crate) fn installed_objects(&self, namespace: &str) -> anyhow::Result<Vec<Value>> {
        let files: MemoryFiles =
            self.files.iter().map(|(path, bytes)| (path.clone(), bytes.clone())).collect();
        let settings = InstallSettings {
            namespace,
            certificates: Some(&CertManager),
            webhooks: true,
            single_namespaces: false,
            deployment_config: false,
            config: None,
            template_annotations: TemplateAnnotations::default(),
        };
        let bundle = RegistryV1Bundle::read(&files, &Limits::default());
        let objects = bundle.and_then(|bundle| bundle.into_installed(&settings));
        objects.map_err(|error| anyhow!("{}: {}", self.bundle.name, error.message()))
    }

    /// The ClusterServiceVersion.
    pub(crate) fn csv(&self) -> Option<&Object> {
        self.objects.iter().find(|object| object.kind() == "ClusterServiceVersion")
    }
}

/// Stores the image of a bundle, and returns its reference: the published one if it has a tag, else the
/// digest of the image in the published repository.
fn store_image(
    images: &ImageStore,
    published: &str,
    files: &BTreeMap<String, Vec<u8>>,
) -> anyhow::Result<ImageReference> {
    let mut layer = LayerFiles::default();
    for (path, bytes) in files {
        layer.add(path, bytes.clone())?;
    }
    let layer = build::layer(images, &layer)?;
    let image = build::image(images, Platform::host(), ImageConfig::default(), &[layer])?;
    let published = if published.is_empty() { UNPUBLISHED } else { published };
    let reference = match published.split_once('@') {
        Some((repository, _)) => format!("{repository}@{}", image.digest),
        None if published == UNPUBLISHED => format!("{published}@{}", image.digest),
        None => published.to_owned(),
    };
    let reference = ImageReference::parse(&reference)?;
    images.set(&reference, &image)?;
    Ok(reference)
}

/// The files below a bundle folder, by path.
fn folder_files(folder: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let (mut files, mut open) = (BTreeMap::new(), vec![String::new()]);
    while let Some(at) = open.pop() {
        let place = folder.join(&at);
        let entries =
            std::fs::read_dir(&place).with_context(|| format!("read {}", place.display()));
        for entry in entries? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if at.is_empty() { name } else { format!("{at}/{name}") };
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else {
                let bytes = std::fs::read(entry.path());
                files.insert(
                    path,
                    bytes.with_context(|| format!("read {}", entry.path().display()))?,
                );
            }
        }
    }
    Ok(files)
}

/// The files of a bundle of which only the catalog is published.
fn object_files(bundle: &Bundle, objects: &[Object]) -> BTreeMap<String, Vec<u8>> {
    let annotation = |name: &str| format!("operators.operatorframework.io.bundle.{name}.v1");
    let annotations = json!({"annotations": {
        annotation("mediatype"): "registry+v1",
        annotation("manifests"): "manifests/",
        annotation("metadata"): "metadata/",
        annotation("package"): *bundle.package,
    }});
    let manifests = objects.iter().enumerate().map(|(at, object)| {
        (format!("manifests/{at}.json"), object.to_value().to_string().into_bytes())
    });
    let annotations =
        ("metadata/annotations.yaml".to_owned(), annotations.to_string().into_bytes());
    manifests.chain([annotations]).collect()
}
