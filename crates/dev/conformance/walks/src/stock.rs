//! What there is to be walked: packages of catalogs, each with what it may need.

use super::route::Plan;
use anyhow::Context;
use mainstay_bundle::{Bundle, Image};
use mainstay_catalog::{Catalog, Declared, LoadOptions, Origin, Package};
use mainstay_updates::Graph;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A catalog, and what could not be read of it.
pub struct Stock {
    /// Its name.
    pub name: String,
    catalog: Arc<Catalog>,
    /// Bundles that cannot be read, by package: which, and why.
    unreadable: BTreeMap<String, Vec<String>>,
}

/// What each bundle asks for that nothing of the catalog can give, by package and name; those that can be
/// installed are not in it.
type Barred = BTreeMap<(String, String), BTreeSet<String>>;

/// A package to be walked.
#[derive(Clone)]
pub struct Item {
    /// The catalog's name.
    pub catalog: String,
    /// The package's name.
    pub package: String,
    /// The whole catalog.
    stock: Arc<Stock>,
    barred: Arc<OnceLock<Barred>>,
}

impl Stock {
    /// Reads a catalog in files; or, where there are none, folders of bundles, `PACKAGE/VERSION`.
    ///
    /// # Errors
    /// A folder that is neither, or a catalog with errors.
    pub fn read(name: &str, folder: &Path) -> anyhow::Result<Arc<Self>> {
        let mut packages = BTreeMap::new();
        for package in below(folder)? {
            let versions: Vec<PathBuf> = below(&package)?
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
            return Ok(Arc::new(Self {
                name: name.to_owned(),
                catalog,
                unreadable: BTreeMap::new(),
            }));
        }
        let (mut made, mut unreadable) = (BTreeMap::new(), BTreeMap::new());
        for (folder, versions) in packages {
            let bad = read(&versions, &mut made)?;
            let package = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !bad.is_empty() {
                unreadable.insert(package, bad);
            }
        }
        let documents: Vec<Value> =
            made.into_iter().flat_map(|(package, made)| declare(&package, made)).collect();
        let origin = |line| Origin { file: "bundles".into(), line };
        let numbered =
            documents.into_iter().enumerate().map(|(at, document)| (origin(at + 1), document));
        let declared = Declared::of(numbered).context("make a catalog of bundles")?;
        let catalog = declared.check().context("make a catalog of bundles")?;
        Ok(Arc::new(Self { name: name.to_owned(), catalog, unreadable }))
    }

    /// Its packages, in order of their names.
    pub fn items(self: &Arc<Self>) -> Vec<Item> {
        let known = self.catalog.packages().map(|package| package.name.to_string());
        let names: BTreeSet<String> = known.chain(self.unreadable.keys().cloned()).collect();
        let item = |package| Item {
            catalog: self.name.clone(),
            package,
            stock: Arc::clone(self),
            barred: Arc::default(),
        };
        names.into_iter().map(item).collect()
    }

    /// The whole catalog, as one file.
    pub(super) fn text(&self) -> anyhow::Result<String> {
        self.part(|_| true)
    }

    /// The blobs of some packages, as one file.
    fn part(&self, of: impl Fn(&str) -> bool) -> anyhow::Result<String> {
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

    /// The packages that may have to be installed with another one: those that it or one of them
    /// requires by name, and those with an API that is required.
    fn company(&self, package: &Package) -> BTreeSet<String> {
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
                let brings = || {
                    other
                        .bundles()
                        .any(|bundle| bundle.provided_apis().any(|api| apis.contains(&api)))
                };
                let wanted = named.contains(&*other.name) || (!apis.is_empty() && brings());
                if wanted && found.insert(other.name.to_string()) {
                    open.push(other);
                }
            }
        }
        found
    }
}

impl Item {
    /// The package, if any of it can be read.
    pub(super) fn found(&self) -> Option<&Package> {
        self.stock.catalog.package(&self.package)
    }

    /// The way it is to go.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub fn plan(&self) -> Result<Plan, String> {
        let unreadable = self.unreadable().join("; ");
        let Some(package) = self.found() else { return Err(unreadable) };
        let can = |name: &str| self.barred(name).is_none();
        Plan::of(&Graph::of(package), can)
            .ok_or_else(|| "no version of it can be asked for".to_owned())
    }

    /// Which of its bundles cannot be read, and why.
    pub fn unreadable(&self) -> &[String] {
        self.stock.unreadable.get(&self.package).map_or(&[], Vec::as_slice)
    }

    /// The version of a bundle.
    pub fn version(&self, name: &str) -> String {
        let bundle = self.found().and_then(|package| package.bundle(name));
        bundle.map_or_else(|| name.to_owned(), |bundle| bundle.version.to_string())
    }

    /// What a bundle asks for that it cannot have, if there is such a thing.
    pub(super) fn barred(&self, bundle: &str) -> Option<&BTreeSet<String>> {
        let all = self.barred.get_or_init(|| {
            let catalog = &self.stock.catalog;
            let company =
                self.found().map(|package| self.stock.company(package)).unwrap_or_default();
            let packages = catalog.packages().filter(|package| company.contains(&*package.name));
            barred(&packages.flat_map(Package::bundles).collect::<Vec<_>>())
        });
        all.get(&(self.package.clone(), bundle.to_owned()))
    }

    /// Whether a version of it brings a kind.
    pub(super) fn brings(&self, group: &str, kind: &str) -> bool {
        let mut apis = self
            .found()
            .into_iter()
            .flat_map(Package::bundles)
            .flat_map(|bundle| bundle.provided_apis().collect::<Vec<_>>());
        apis.any(|api| api.group == group && api.kind == kind)
    }

    /// A catalog of this package and those that it may need, as one file.
    pub(super) fn text(&self) -> anyhow::Result<String> {
        let package = self.found().context("there is no such package")?;
        let company = self.stock.company(package);
        self.stock.part(|name| company.contains(name))
    }
}

/// The bundles that cannot be installed, and what each of them asks for: what is not done yet, and other
/// packages and kinds that none of those brings that can be installed.
fn barred(bundles: &[&Arc<mainstay_catalog::Bundle>]) -> Barred {
    let key =
        |bundle: &mainstay_catalog::Bundle| (bundle.package.to_string(), bundle.name.to_string());
    let mut barred = Barred::new();
    // Who needs what is barred is barred as well, until nothing more is.
    loop {
        let good: Vec<_> =
            bundles.iter().filter(|bundle| !barred.contains_key(&key(bundle))).collect();
        let count: usize = barred.values().map(BTreeSet::len).sum();
        let mut found = Barred::new();
        for bundle in bundles {
            let mut needs = BTreeSet::new();
            for need in bundle.required_packages() {
                let range = mainstay_version::Range::parse(&need.version_range).ok();
                let fits = |bundle: &mainstay_catalog::Bundle| {
                    *bundle.package == *need.package_name
                        && range.as_ref().is_some_and(|range| range.contains(&bundle.version))
                };
                if !good.iter().any(|candidate| fits(candidate)) {
                    needs.insert(format!("{} {}", need.package_name, need.version_range));
                }
            }
            for api in bundle.required_apis() {
                if !good.iter().any(|candidate| {
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
            barred.entry(bundle).or_default().extend(needs);
        }
        if count == barred.values().map(BTreeSet::len).sum::<usize>() {
            return barred;
        }
    }
}

/// The folders below a folder, in order.
fn below(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    let paths: Result<Vec<PathBuf>, _> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths?;
    paths.retain(|path| path.is_dir());
    paths.sort();
    Ok(paths)
}

/// A bundle in a folder.
struct Made {
    version: mainstay_version::Version,
    bundle: Bundle,
    /// Its document in a catalog.
    blob: Value,
}

/// Reads bundles in folders, by the package that they say they are of; which cannot be read, and why.
fn read(folders: &[PathBuf], all: &mut BTreeMap<String, Vec<Made>>) -> anyhow::Result<Vec<String>> {
    let mut bad = Vec::new();
    for folder in folders {
        let called = folder.file_name().unwrap_or_default().to_string_lossy();
        let read = Bundle::read(folder)
            .and_then(|bundle| Ok((bundle.declare(Image::None, &called)?.json(), bundle)));
        let (blob, bundle) = match read {
            Ok(read) => read,
            Err(error) => {
                bad.push(format!("{called}: {}", error.problem().message));
                continue;
            }
        };
        let blob: Value = serde_json::from_str(&blob).context("read what was declared")?;
        let stated =
            bundle.csv().spec().and_then(|spec| spec["version"].as_str()).unwrap_or("0.0.0");
        let Ok(version) = mainstay_version::parse_strict(stated) else {
            bad.push(format!("{called}: {stated} is no version"));
            continue;
        };
        let package = bundle.package().to_owned();
        all.entry(package).or_default().push(Made { version, bundle, blob });
    }
    Ok(bad)
}

/// The documents of a package whose bundles are folders. Folders say nothing of channels that holds
/// together, so there is one, called as the newest version's default, in which each version replaces the
/// one before it.
fn declare(package: &str, mut made: Vec<Made>) -> Vec<Value> {
    made.sort_by(|a, b| a.version.cmp(&b.version));
    let Some(newest) = made.last() else { return Vec::new() };
    let annotations = newest.bundle.annotations();
    let channel = match annotations.default_channel.as_str() {
        "" => annotations.channel_names().next().unwrap_or("stable").to_owned(),
        channel => channel.to_owned(),
    };
    let mut before = Value::Null;
    let mut entries = Vec::new();
    for bundle in &made {
        entries.push(json!({"name": bundle.bundle.name(), "replaces": before}));
        before = bundle.bundle.name().into();
    }
    let mut documents = vec![
        json!({"schema": "olm.package", "name": package, "defaultChannel": channel}),
        json!({"schema": "olm.channel", "package": package, "name": channel, "entries": entries}),
    ];
    documents.extend(made.into_iter().map(|bundle| bundle.blob));
    documents
}
