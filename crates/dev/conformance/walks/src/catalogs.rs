//! Catalogs under test: their packages, the dependencies of each, and the bundles that cannot be
//! read.

use super::upgrade_path::UpgradePath;
use anyhow::Context;
use mainstay_bundle::{Bundle, BundleImage};
use mainstay_catalog::{BlobOrigin, Catalog, CatalogDocuments, LoadOptions, MemorySource, Package};
use mainstay_updates::Graph;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;

/// A catalog, with the errors of the bundles that could not be read.
pub struct LoadedCatalog {
    /// The catalog's name.
    pub name: String,
    catalog: Arc<Catalog>,
    /// The errors of unreadable bundles, by package.
    unreadable: BTreeMap<String, Vec<String>>,
    /// The folders of the bundles, by package and bundle name; empty for a file-based catalog.
    folders: BTreeMap<(String, String), PathBuf>,
    /// Keeps unpacked folders.
    _data: Option<Arc<TempDir>>,
}

/// The requirements of each bundle that the catalog cannot satisfy, by package and bundle name.
/// Bundles that can be installed are not in it.
type MissingRequirements = BTreeMap<(String, String), BTreeSet<String>>;

/// A package of a catalog.
#[derive(Clone)]
pub struct PackageUnderTest {
    /// The catalog's name.
    pub catalog: String,
    /// The package's name.
    pub package: String,
    /// The whole catalog.
    loaded: Arc<LoadedCatalog>,
    missing_requirements: Arc<OnceLock<MissingRequirements>>,
}

impl LoadedCatalog {
    /// Reads a file-based catalog, or a folder of bundles, `PACKAGE/VERSION`.
    ///
    /// # Errors
    /// The folder is neither, or the catalog has errors.
    pub fn read(name: &str, folder: &Path) -> anyhow::Result<Arc<Self>> {
        Ok(Arc::new(Self::read_folder(name, folder)?))
    }

    /// Reads a folder of unpacked data, which is removed with the last catalog.
    pub(super) fn read_unpacked(
        name: &str,
        data: &Arc<TempDir>,
        folder: &str,
    ) -> anyhow::Result<Arc<Self>> {
        let catalog = Self::read_folder(name, &data.path().join(folder))?;
        Ok(Arc::new(Self { _data: Some(Arc::clone(data)), ..catalog }))
    }

    fn read_folder(name: &str, folder: &Path) -> anyhow::Result<Self> {
        let mut packages = BTreeMap::new();
        for package in subfolders(folder)? {
            let versions: Vec<PathBuf> = subfolders(&package)?
                .into_iter()
                .filter(|folder| folder.join("manifests").is_dir())
                .collect();
            if !versions.is_empty() {
                packages.insert(package, versions);
            }
        }
        if packages.is_empty() {
            let catalog = Catalog::load(folder, &LoadOptions::default());
            let catalog = catalog.with_context(|| format!("read {}", folder.display()))?;
            return Ok(Self {
                name: name.to_owned(),
                catalog,
                unreadable: BTreeMap::new(),
                folders: BTreeMap::new(),
                _data: None,
            });
        }
        let (mut bundles, mut unreadable) = (BTreeMap::new(), BTreeMap::new());
        for (folder, versions) in packages {
            let problems = read_bundles(&versions, &mut bundles)?;
            let package = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !problems.is_empty() {
                unreadable.insert(package, problems);
            }
        }
        let folders =
            bundles.iter().flat_map(|(package, bundles): (&String, &Vec<FolderBundle>)| {
                let key =
                    |bundle: &FolderBundle| (package.clone(), bundle.bundle.name().to_owned());
                bundles.iter().map(move |bundle| (key(bundle), bundle.folder.clone()))
            });
        let folders = folders.collect();
        let documents: Vec<Value> = bundles
            .into_iter()
            .flat_map(|(package, bundles)| catalog_documents(&package, bundles))
            .collect();
        let origin = |line| BlobOrigin { file: "bundles".into(), line };
        let numbered =
            documents.into_iter().enumerate().map(|(at, document)| (origin(at + 1), document));
        let declared = CatalogDocuments::of(numbered).context("make a catalog of bundles")?;
        let catalog = declared.check().context("make a catalog of bundles")?;
        Ok(Self { name: name.to_owned(), catalog, unreadable, folders, _data: None })
    }

    /// Its packages, sorted by name.
    pub fn packages(self: &Arc<Self>) -> Vec<PackageUnderTest> {
        let known = self.catalog.packages().map(|package| package.name.to_string());
        let names: BTreeSet<String> = known.chain(self.unreadable.keys().cloned()).collect();
        let package_under_test = |package| PackageUnderTest {
            catalog: self.name.clone(),
            package,
            loaded: Arc::clone(self),
            missing_requirements: Arc::default(),
        };
        names.into_iter().map(package_under_test).collect()
    }

    /// The whole catalog, as one file.
    pub(super) fn text(&self) -> anyhow::Result<String> {
        self.blobs_of(|_| true)
    }

    /// The blobs of some packages, as one file.
    fn blobs_of(&self, of: impl Fn(&str) -> bool) -> anyhow::Result<String> {
        let mut text = String::new();
        for blob in self.catalog.blobs() {
            let owner =
                if **blob.schema() == *"olm.package" { blob.name() } else { blob.package() };
            if of(owner) {
                text += std::str::from_utf8(&blob.json()?)?;
                text.push('\n');
            }
        }
        Ok(text)
    }

    /// The transitive dependencies of a package: packages that are required by name, and all
    /// packages that provide a required API.
    fn dependencies(&self, package: &Package) -> BTreeSet<String> {
        let mut found = BTreeSet::from([package.name.to_string()]);
        let mut open = vec![package];
        while let Some(package) = open.pop() {
            let named: BTreeSet<String> = package
                .bundles()
                .flat_map(|bundle| {
                    bundle
                        .required_packages()
                        .map(|required_package| required_package.package_name)
                        .collect::<Vec<_>>()
                })
                .collect();
            let apis: BTreeSet<_> = package
                .bundles()
                .flat_map(|bundle| bundle.required_apis().collect::<Vec<_>>())
                .collect();
            for other in self.catalog.packages() {
                let provides = || {
                    other
                        .bundles()
                        .any(|bundle| bundle.provided_apis().any(|api| apis.contains(&api)))
                };
                let is_required = named.contains(&*other.name) || (!apis.is_empty() && provides());
                if is_required && found.insert(other.name.to_string()) {
                    open.push(other);
                }
            }
        }
        found
    }
}

impl PackageUnderTest {
    /// The package in the catalog; none if none of its bundles can be read.
    pub(super) fn loaded_package(&self) -> Option<&Package> {
        self.loaded.catalog.package(&self.package)
    }

    /// The expected upgrade path.
    ///
    /// # Errors
    /// Why there is none, as text.
    pub fn upgrade_path(&self) -> Result<UpgradePath, String> {
        let unreadable = self.unreadable().join("; ");
        let Some(package) = self.loaded_package() else { return Err(unreadable) };
        let can = |name: &str| self.missing_requirements(name).is_none();
        UpgradePath::of(&Graph::of(package), can)
            .ok_or_else(|| "no version of it can be asked for".to_owned())
    }

    /// The errors of its unreadable bundles.
    pub fn unreadable(&self) -> &[String] {
        self.loaded.unreadable.get(&self.package).map_or(&[], Vec::as_slice)
    }

    /// The version of a bundle.
    pub fn version(&self, name: &str) -> String {
        let bundle = self.loaded_package().and_then(|package| package.bundle(name));
        bundle.map_or_else(|| name.to_owned(), |bundle| bundle.version.to_string())
    }

    /// The requirements of a bundle that the catalog cannot satisfy; none if it can be installed.
    pub(super) fn missing_requirements(&self, bundle: &str) -> Option<&BTreeSet<String>> {
        let all = self.missing_requirements.get_or_init(|| {
            let catalog = &self.loaded.catalog;
            let dependencies = self
                .loaded_package()
                .map(|package| self.loaded.dependencies(package))
                .unwrap_or_default();
            let packages =
                catalog.packages().filter(|package| dependencies.contains(&*package.name));
            missing_requirements(&packages.flat_map(Package::bundles).collect::<Vec<_>>())
        });
        all.get(&(self.package.clone(), bundle.to_owned()))
    }

    /// Whether a version of the package provides a kind.
    pub(super) fn provides_kind(&self, group: &str, kind: &str) -> bool {
        let mut apis = self
            .loaded_package()
            .into_iter()
            .flat_map(Package::bundles)
            .flat_map(|bundle| bundle.provided_apis().collect::<Vec<_>>());
        apis.any(|api| api.group == group && api.kind == kind)
    }

    /// A catalog of this package only, with other images of its bundles.
    ///
    /// # Errors
    /// The catalog cannot be read back.
    pub(super) fn with_images(
        &self,
        image_of: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Arc<Catalog>> {
        let mut text = String::new();
        for line in self.loaded.blobs_of(|package| *package == *self.package)?.lines() {
            let mut blob: Value = serde_json::from_str(line).context("read a blob")?;
            if blob["schema"] == "olm.bundle" {
                let image = image_of(blob["name"].as_str().unwrap_or_default());
                blob["image"] = image.context("each bundle has an image")?.into();
            }
            text += &blob.to_string();
            text.push('\n');
        }
        let source = [("catalog.json", text)].into_iter().collect::<MemorySource>();
        Catalog::load_from(&source, &LoadOptions::default()).context("make a catalog with images")
    }

    /// The folder of a bundle; none if the package is from a file-based catalog.
    pub(super) fn folder_of(&self, bundle: &str) -> Option<&Path> {
        let key = (self.package.clone(), bundle.to_owned());
        self.loaded.folders.get(&key).map(PathBuf::as_path)
    }

    /// A catalog of this package and its dependencies, as one file.
    pub(super) fn text(&self) -> anyhow::Result<String> {
        let package = self.loaded_package().context("there is no such package")?;
        let dependencies = self.loaded.dependencies(package);
        self.loaded.blobs_of(|name| dependencies.contains(name))
    }
}

/// The bundles that cannot be installed, with the packages and APIs that no installable bundle
/// provides.
fn missing_requirements(bundles: &[&Arc<mainstay_catalog::Bundle>]) -> MissingRequirements {
    let key =
        |bundle: &mainstay_catalog::Bundle| (bundle.package.to_string(), bundle.name.to_string());
    let mut missing_requirements = MissingRequirements::new();
    // A bundle that requires an uninstallable bundle is uninstallable too: repeat until nothing is
    // added.
    loop {
        let installable: Vec<_> = bundles
            .iter()
            .filter(|bundle| !missing_requirements.contains_key(&key(bundle)))
            .collect();
        let count: usize = missing_requirements.values().map(BTreeSet::len).sum();
        let mut found = MissingRequirements::new();
        for bundle in bundles {
            let mut needs = BTreeSet::new();
            for need in bundle.required_packages() {
                let range = mainstay_version::Range::parse(&need.version_range).ok();
                let fits = |bundle: &mainstay_catalog::Bundle| {
                    *bundle.package == *need.package_name
                        && range.as_ref().is_some_and(|range| range.contains(&bundle.version))
                };
                if !installable.iter().any(|candidate| fits(candidate)) {
                    needs.insert(format!("{} {}", need.package_name, need.version_range));
                }
            }
            for api in bundle.required_apis() {
                if !installable.iter().any(|candidate| {
                    candidate.provided_apis().any(|provided_api| provided_api == api)
                }) {
                    needs.insert(format!("{}.{}/{}", api.kind, api.group, api.version));
                }
            }
            if !needs.is_empty() {
                found.insert(key(bundle), needs);
            }
        }
        for (bundle, needs) in found {
            missing_requirements.entry(bundle).or_default().extend(needs);
        }
        if count == missing_requirements.values().map(BTreeSet::len).sum::<usize>() {
            return missing_requirements;
        }
    }
}

/// The folders in a folder, sorted.
fn subfolders(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    let paths: Result<Vec<PathBuf>, _> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths?;
    paths.retain(|path| path.is_dir());
    paths.sort();
    Ok(paths)
}

/// A bundle that was read from a folder.
struct FolderBundle {
    version: mainstay_version::Version,
    bundle: Bundle,
    /// Its `olm.bundle` blob.
    blob: Value,
    folder: PathBuf,
}

/// Reads bundle folders into `all`, by the package that each declares. Returns the errors of
/// unreadable bundles.
fn read_bundles(
    folders: &[PathBuf],
    all: &mut BTreeMap<String, Vec<FolderBundle>>,
) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    for folder in folders {
        let folder_name = folder.file_name().unwrap_or_default().to_string_lossy();
        let read = Bundle::read(folder).and_then(|bundle| {
            Ok((bundle.declare(BundleImage::None, &folder_name)?.json(), bundle))
        });
        let (blob, bundle) = match read {
            Ok(read) => read,
            Err(error) => {
                problems.push(format!("{folder_name}: {}", error.problem().message));
                continue;
            }
        };
        let blob: Value = serde_json::from_str(&blob).context("read what was declared")?;
        let declared_version =
            bundle.csv().spec().and_then(|spec| spec["version"].as_str()).unwrap_or("0.0.0");
        let Ok(version) = mainstay_version::parse_strict(declared_version) else {
            problems.push(format!("{folder_name}: {declared_version} is no version"));
            continue;
        };
        let package = bundle.package().to_owned();
        all.entry(package).or_default().push(FolderBundle {
            version,
            bundle,
            blob,
            folder: folder.clone(),
        });
    }
    Ok(problems)
}

/// The catalog blobs of a package whose bundles are folders.
///
/// The channels that bundle folders declare do not form one graph. So the package gets one channel,
/// with the default channel name of the newest version, in which each version replaces the one
/// before it.
fn catalog_documents(package: &str, mut bundles: Vec<FolderBundle>) -> Vec<Value> {
    bundles.sort_by(|a, b| a.version.cmp(&b.version));
    let Some(newest) = bundles.last() else { return Vec::new() };
    let annotations = newest.bundle.annotations();
    let channel = match annotations.default_channel.as_str() {
        "" => annotations.channel_names().next().unwrap_or("stable").to_owned(),
        channel => channel.to_owned(),
    };
    let mut before = Value::Null;
    let mut entries = Vec::new();
    for bundle in &bundles {
        entries.push(json!({"name": bundle.bundle.name(), "replaces": before}));
        before = bundle.bundle.name().into();
    }
    let mut documents = vec![
        json!({"schema": "olm.package", "name": package, "defaultChannel": channel}),
        json!({"schema": "olm.channel", "package": package, "name": channel, "entries": entries}),
    ];
    documents.extend(bundles.into_iter().map(|bundle| bundle.blob));
    documents
}
