//! Reading a registry as file-based catalog documents: the inverse of `grpc::message`.

use super::{RegistryConnection, RpcError};
use crate::grpc::api::{Bundle, Dependency, Package};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::{StreamExt as _, stream};
use mainstay_catalog::{BlobName, BlobOrigin, Catalog, CatalogDocuments, LoadError};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::mpsc;

/// The number of packages that are requested concurrently.
const CONCURRENT_REQUESTS: usize = 16;
/// The number of documents that wait for compression.
const QUEUED_DOCUMENTS: usize = 64;

/// Why there is no catalog.
#[derive(Debug, thiserror::Error)]
pub enum ReadCatalogError {
    /// The request failed.
    #[error(transparent)]
    Fault(#[from] RpcError),
    /// The content of the registry is not a valid catalog.
    #[error("what the registry tells is no sound catalog: {}", .0.headline())]
    Unsound(LoadError),
    /// The task that builds the catalog did not finish.
    #[error("reading what the registry tells ended unexpectedly")]
    Lost(#[from] tokio::task::JoinError),
}

impl RegistryConnection {
    /// Reads everything that the registry has, as a catalog, with the errors of omitted packages:
    /// one invalid package does not affect the others. Packages that the registry lists only in
    /// bundles are omitted, as upstream does.
    ///
    /// # Errors
    /// If the registry cannot be read, or no valid catalog remains.
    pub async fn catalog(&self) -> Result<(Arc<Catalog>, Option<LoadError>), ReadCatalogError> {
        let mut excluded_packages = BTreeSet::new();
        let mut unsound = None;
        loop {
            match self.read(&excluded_packages).await? {
                Read::Sound(catalog) => return Ok((catalog, unsound)),
                Read::Undescribed(packages) => excluded_packages.extend(packages),
                Read::Unsound(error) => {
                    let before = excluded_packages.len();
                    let names = error.problems.iter().filter_map(|problem| problem.blob.as_ref());
                    excluded_packages.extend(names.map(package_of));
                    // No further package can be omitted.
                    if excluded_packages.len() == before {
                        return Err(ReadCatalogError::Unsound(unsound.unwrap_or(error)));
                    }
                    unsound.get_or_insert(error);
                }
            }
        }
    }

    /// Reads all packages but `excluded_packages`.
    async fn read(&self, excluded_packages: &BTreeSet<String>) -> Result<Read, ReadCatalogError> {
        let mut bundles = self.bundles().await?;
        let mut collector = DocumentCollector::default();
        let (sender, mut receiver) = mpsc::channel::<Value>(QUEUED_DOCUMENTS);
        let packing = tokio::task::spawn_blocking(move || {
            let origin = BlobOrigin { file: "registry".into(), line: 1 };
            let documents = std::iter::from_fn(|| receiver.blocking_recv());
            CatalogDocuments::of(documents.map(|document| (origin.clone(), document)))
                .and_then(CatalogDocuments::check)
        });
        while let Some(bundle) = bundles.next().await? {
            if excluded_packages.contains(&bundle.package_name) {
                continue;
            }
            if let Some(document) = collector.add(bundle)
                && sender.send(document).await.is_err()
            {
                break;
            }
        }
        let names: Vec<String> = collector.packages().map(str::to_owned).collect();
        let get_package = async |name: String| (self.package(&name).await, name);
        let mut packages =
            stream::iter(names.into_iter().map(get_package)).buffer_unordered(CONCURRENT_REQUESTS);
        let mut undescribed = BTreeSet::new();
        while let Some((package, name)) = packages.next().await {
            match package {
                Ok(package) => collector.describe(package),
                Err(fault) if fault.is_from_server() => {
                    tracing::warn!(package = name, %fault, "a registry lists a package that it does not tell of");
                    undescribed.insert(name);
                }
                Err(fault) => return Err(fault.into()),
            }
        }
        if !undescribed.is_empty() {
            return Ok(Read::Undescribed(undescribed));
        }
        for document in collector.finish() {
            if sender.send(document).await.is_err() {
                break;
            }
        }
        drop(sender);
        Ok(packing.await?.map_or_else(Read::Unsound, Read::Sound))
    }
}

/// The result of one read.
enum Read {
    Sound(Arc<Catalog>),
    Unsound(LoadError),
    /// Packages of listed bundles that the registry does not describe.
    Undescribed(BTreeSet<String>),
}

/// The package that a document belongs to.
fn package_of(name: &BlobName) -> String {
    let own = if name.package.is_empty() { &name.name } else { &name.package };
    own.to_string()
}

/// Collects the documents of a catalog: those of bundles are returned at once, the others at the
/// end.
#[derive(Debug, Default)]
pub struct DocumentCollector {
    packages: BTreeMap<String, PackageContent>,
}

/// The collected fields of a package.
#[derive(Debug, Default)]
struct PackageContent {
    channels: BTreeMap<String, Vec<Value>>,
    bundles: BTreeSet<String>,
    deprecations: Vec<Value>,
    document: Option<Value>,
}

impl DocumentCollector {
    /// Adds one message: the entry of a bundle in a channel with the whole bundle. Returns the
    /// bundle's document for the first entry.
    pub fn add(&mut self, bundle: Bundle) -> Option<Value> {
        let package = self.packages.entry(bundle.package_name.clone()).or_default();
        let mut entry = Map::new();
        entry.insert("name".to_owned(), bundle.csv_name.clone().into());
        let text = |field: &str| Some(Value::from(field)).filter(|_| !field.is_empty());
        let skips = Some(Value::from(bundle.skips.clone())).filter(|_| !bundle.skips.is_empty());
        for (key, value) in [
            ("replaces", text(&bundle.replaces)),
            ("skips", skips),
            ("skipRange", text(&bundle.skip_range)),
        ] {
            if let Some(value) = value {
                entry.insert(key.to_owned(), value);
            }
        }
        package.channels.entry(bundle.channel_name.clone()).or_default().push(entry.into());
        if !package.bundles.insert(bundle.csv_name.clone()) {
            return None;
        }
        if let Some(deprecation) = &bundle.deprecation {
            let reference = json!({"schema": "olm.bundle", "name": bundle.csv_name});
            package.deprecations.push(deprecated(&reference, &deprecation.message));
        }
        Some(document(bundle))
    }

    /// The names of all packages so far.
    pub fn packages(&self) -> impl Iterator<Item = &str> {
        self.packages.keys().map(String::as_str)
    }

    /// Adds the registry's description of a package.
    pub fn describe(&mut self, package: Package) {
        let Some(collector) = self.packages.get_mut(&package.name) else { return };
        if let Some(deprecation) = &package.deprecation {
            let reference = json!({"schema": "olm.package"});
            collector.deprecations.push(deprecated(&reference, &deprecation.message));
        }
        for channel in package.channels {
            if let Some(deprecation) = &channel.deprecation {
                let reference = json!({"schema": "olm.channel", "name": channel.name});
                collector.deprecations.push(deprecated(&reference, &deprecation.message));
            }
        }
        collector.document = Some(json!({
            "schema": "olm.package", "name": package.name,
            "defaultChannel": package.default_channel_name,
        }));
    }

    /// The documents of packages and channels.
    pub fn finish(self) -> impl Iterator<Item = Value> {
        self.packages.into_iter().flat_map(|(name, collector)| {
            let mut all: Vec<Value> = collector.document.into_iter().collect();
            for (channel, entries) in collector.channels {
                all.push(json!({
                    "schema": "olm.channel", "package": name, "name": channel, "entries": entries,
                }));
            }
            if !collector.deprecations.is_empty() {
                all.push(json!({
                    "schema": "olm.deprecations", "package": name, "entries": collector.deprecations,
                }));
            }
            all
        })
    }
}

fn deprecated(reference: &Value, message: &str) -> Value {
    json!({"reference": reference, "message": message})
}

/// The document of a bundle. An API that the registry states both as a dependency and as a property
/// appears once.
fn document(bundle: Bundle) -> Value {
    let mut properties: Vec<Value> = Vec::new();
    let mut add = |property: Value| {
        if !properties.contains(&property) {
            properties.push(property);
        }
    };
    for property in &bundle.properties {
        add(json!({"type": property.r#type, "value": value(&property.value)}));
    }
    let version = &bundle.version;
    if !version.is_empty()
        && !bundle.properties.iter().any(|property| property.r#type == "olm.package")
    {
        let package = json!({"packageName": bundle.package_name, "version": version});
        add(json!({"type": "olm.package", "value": package}));
    }
    for dependency in &bundle.dependencies {
        add(requirement(dependency));
    }
    for (kind, apis) in
        [("olm.gvk", &bundle.provided_apis), ("olm.gvk.required", &bundle.required_apis)]
    {
        for api in apis {
            let api = json!({"group": api.group, "kind": api.kind, "version": api.version});
            add(json!({"type": kind, "value": api}));
        }
    }
    let csv = Some(bundle.csv_json).filter(|csv| !csv.is_empty() && bundle.object.is_empty());
    for object in bundle.object.into_iter().chain(csv) {
        let data = STANDARD.encode(object);
        properties.push(json!({"type": "olm.bundle.object", "value": {"data": data}}));
    }
    let mut document = json!({
        "schema": "olm.bundle", "package": bundle.package_name, "name": bundle.csv_name,
        "properties": properties,
    });
    if !bundle.bundle_path.is_empty() {
        document["image"] = bundle.bundle_path.into();
    }
    document
}

/// The property that is equivalent to a dependency.
fn requirement(dependency: &Dependency) -> Value {
    let value = value(&dependency.value);
    match &*dependency.r#type {
        "olm.gvk" => json!({"type": "olm.gvk.required", "value": value}),
        "olm.package" => json!({
            "type": "olm.package.required",
            "value": {"packageName": value["packageName"], "versionRange": value["version"]},
        }),
        other => json!({"type": other, "value": value}),
    }
}

/// Parses a value that is JSON in a string; any other string is the value.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}
