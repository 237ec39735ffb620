//! The catalog documents of a database: packages, channels and bundles.

use crate::{
    convert::{self, BundleRecord},
    edges::{self, Edges, EntryKey},
    error::DatabaseError,
    migration_level::{BundleRow, PairsByBundle, Tables},
    rows::DatabaseReader,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use mainstay_catalog::{BlobOrigin, CatalogDocuments, json_fault};
use mainstay_gocompat::quote;
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The property of bundles that the catalog leaves out.
const DEPRECATED: &str = "olm.deprecated";

/// The rows of a package.
#[derive(Debug, Default)]
struct Package {
    default_channel: String,
    /// The channel heads by channel name.
    channels: BTreeMap<String, Option<String>>,
}

/// Reads all documents of a database.
pub(crate) fn read_documents(reader: &DatabaseReader) -> Result<CatalogDocuments, DatabaseError> {
    let Some(tables) = Tables::open(reader)? else { return Ok(CatalogDocuments::default()) };
    let packages = packages(reader)?;
    let mut content = DatabaseContent {
        reader,
        bundles: tables.bundles()?,
        properties: tables.properties()?,
        dependencies: tables.dependencies()?,
        images: tables.images()?,
        entries: edges::read(reader)?,
        faults: Vec::new(),
        declared: CatalogDocuments::default(),
    };
    content.retain_valid_entries(&packages)?;
    content.write_bundles()?;
    let mut entries = content.entries_of_channels();
    for (name, package) in &packages {
        content.write_package(name, package, &mut entries)?;
    }
    let DatabaseContent { declared, faults, .. } = content;
    match declared.index_fault(faults) {
        None => Ok(declared),
        Some(tree) => Err(reader.content_error(tree)),
    }
}

fn packages(reader: &DatabaseReader) -> Result<BTreeMap<String, Package>, DatabaseError> {
    let mut found: BTreeMap<String, Package> = BTreeMap::new();
    reader.for_each_row("SELECT name, default_channel FROM package", &[], |[name, default]| {
        if let Some(name) = name {
            found.entry(name).or_default().default_channel = default.unwrap_or_default();
        }
        Ok(())
    })?;
    let channels = "SELECT package_name, name, head_operatorbundle_name FROM channel";
    reader.for_each_row(channels, &[], |[package, name, head]| {
        if let Some(package) = package.and_then(|package| found.get_mut(&package)) {
            package.channels.insert(name.unwrap_or_default(), head);
        }
        Ok(())
    })?;
    match found.iter().find(|(_, package)| package.channels.is_empty()) {
        Some((name, _)) => Err(reader.content_error(format!("package {name} not found"))),
        None => Ok(found),
    }
}

/// The tables that were read, and the documents so far.
struct DatabaseContent<'r> {
    reader: &'r DatabaseReader,
    bundles: BTreeMap<String, BundleRow>,
    properties: PairsByBundle,
    dependencies: PairsByBundle,
    images: BTreeMap<String, Vec<String>>,
    entries: BTreeMap<EntryKey, Edges>,
    /// Errors of upstream's index tree, each with the path of its node.
    faults: Vec<(Vec<String>, String)>,
    declared: CatalogDocuments,
}

impl DatabaseContent<'_> {
    /// Removes entries of deprecated and incomplete bundles.
    fn retain_valid_entries(
        &mut self,
        packages: &BTreeMap<String, Package>,
    ) -> Result<(), DatabaseError> {
        let is_whole = |name: &str| {
            let row = self.bundles.get(name);
            row.is_some_and(|row| row.image.is_some() && row.version.is_some())
        };
        let is_deprecated = |name: &str| {
            let properties = self.properties.get(name);
            properties.is_some_and(|all| all.iter().any(|(kind, _)| kind == DEPRECATED))
        };
        self.entries.retain(|(bundle, ..), _| is_whole(bundle) && !is_deprecated(bundle));
        for (bundle, package, channel) in self.entries.keys() {
            let what = match packages.get(package) {
                None => format!("unknown package {}", quote(package)),
                Some(package) if !package.channels.contains_key(channel) => {
                    format!("unknown channel {}", quote(channel))
                }
                Some(_) => continue,
            };
            let bundle = quote(bundle);
            return Err(self
                .reader
                .content_error(format!("populate channels: {what} for bundle {bundle}")));
        }
        Ok(())
    }

    fn add(&mut self, line: usize, document: Value) -> Result<(), DatabaseError> {
        let file = self.reader.file().file_name().unwrap_or_default().to_string_lossy();
        let origin = BlobOrigin { file: Arc::from(&*file), line };
        let declared = CatalogDocuments::of([(origin, document)])
            .map_err(|error| self.reader.content_error(error.upstream()))?;
        self.declared.append(declared);
        Ok(())
    }

    /// Adds the documents of bundles. Only one bundle's manifests are in memory at a time.
    fn write_bundles(&mut self) -> Result<(), DatabaseError> {
        let mut wanted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (bundle, package, _) in self.entries.keys() {
            wanted.entry(bundle.clone()).or_default().insert(package.clone());
        }
        let mut line = 0;
        let reader = self.reader;
        reader.for_each_row("SELECT name, bundle FROM operatorbundle", &[], |[name, manifests]| {
            let (name, manifests) = (name.unwrap_or_default(), manifests.unwrap_or_default());
            for package in wanted.remove(&name).unwrap_or_default() {
                line += 1;
                self.write_bundle(line, &name, &package, &manifests)?;
            }
            Ok(())
        })
    }

    fn write_bundle(
        &mut self,
        line: usize,
        name: &str,
        package: &str,
        manifests: &str,
    ) -> Result<(), DatabaseError> {
        let Some(row) = self.bundles.get(name) else { return Ok(()) };
        let pairs =
            |pairs: &PairsByBundle| -> Vec<_> { pairs.get(name).cloned().unwrap_or_default() };
        let (properties, dependencies) = (pairs(&self.properties), pairs(&self.dependencies));
        let source = BundleRecord {
            name,
            package,
            image: row.image.as_deref().unwrap_or_default(),
            version: row.version.as_deref().unwrap_or_default(),
            properties: &properties,
            dependencies: &dependencies,
            manifests,
            images: self.images.get(name).map_or(&[], Vec::as_slice),
        };
        let converted = convert::convert_bundle(&source).map_err(|refusal| {
            self.reader.content_error(format!("populate channels: {refusal}"))
        })?;
        if let Some(fault) = converted.fault {
            let first = (name.to_owned(), package.to_owned(), String::new());
            let channels = self.entries.range(first..).map(|(place, _)| place);
            for (_, _, channel) in channels.take_while(|(b, p, _)| b == name && p == package) {
                let nodes = [("package", package), ("channel", channel), ("bundle", name)];
                let nodes = nodes.map(|(what, name)| format!("invalid {what} {}", quote(name)));
                self.faults.push((nodes.to_vec(), fault.to_string()));
            }
        }
        self.add(line, converted.document)
    }

    /// The entries by package and channel.
    fn entries_of_channels(&self) -> BTreeMap<(String, String), Vec<Value>> {
        let mut found: BTreeMap<_, Vec<Value>> = BTreeMap::new();
        for ((bundle, package, channel), edges) in &self.entries {
            let channel = (package.clone(), channel.clone());
            found.entry(channel).or_default().push(self.entry(bundle, edges));
        }
        found
    }

    /// Adds the documents of a package and its channels.
    fn write_package(
        &mut self,
        name: &str,
        package: &Package,
        entries: &mut BTreeMap<(String, String), Vec<Value>>,
    ) -> Result<(), DatabaseError> {
        let icon = self
            .icon(name, package)
            .map_err(|why| self.reader.content_error(format!("populate package icons: {why}")))?;
        let mut document = json!({
            "schema": "olm.package",
            "name": name,
            "defaultChannel": package.default_channel,
        });
        if let Some(icon) = icon {
            document["icon"] = icon;
        }
        self.add(1, document)?;
        for channel in package.channels.keys() {
            let entries = entries.remove(&(name.to_owned(), channel.clone())).unwrap_or_default();
            let document = json!({
                "schema": "olm.channel",
                "package": name,
                "name": channel,
                "entries": entries,
            });
            self.add(1, document)?;
        }
        Ok(())
    }

    fn entry(&self, bundle: &str, edges: &Edges) -> Value {
        let mut entry = Map::from_iter([("name".to_owned(), Value::from(bundle))]);
        if let Some(replaces) = edges.replaces.as_ref().filter(|name| !name.is_empty()) {
            entry.insert("replaces".to_owned(), Value::from(replaces.as_str()));
        }
        if !edges.skips.is_empty() {
            entry.insert("skips".to_owned(), Value::from(edges.skips.clone()));
        }
        match self.bundles.get(bundle) {
            Some(row) if !row.skip_range.is_empty() => {
                entry.insert("skipRange".to_owned(), Value::from(row.skip_range.as_str()));
            }
            _ => {}
        }
        Value::Object(entry)
    }

    /// The icon of a package: that of its default channel's head.
    fn icon(&self, name: &str, package: &Package) -> Result<Option<Value>, IconError> {
        let no_head = |source| IconError::FindHead { package: name.to_owned(), source };
        let default = &package.default_channel;
        let Some(head) = package.channels.get(default) else {
            return Err(no_head(match &**default {
                "" => HeadError::NoDefaultChannel,
                other => HeadError::UnknownChannel { channel: other.to_owned() },
            }));
        };
        let missing = || {
            let (package, channel) = (name.to_owned(), default.clone());
            no_head(HeadError::NoEntry { package, channel })
        };
        let head = head.as_ref().filter(|head| self.bundles.contains_key(*head));
        let head = head.ok_or_else(missing)?;
        let mut manifest = None;
        let query = "SELECT csv FROM operatorbundle WHERE name = ?1";
        let read = self.reader.for_each_row(query, &[head.as_str()], |[csv]| {
            manifest = csv;
            Ok(())
        });
        read.map_err(|error| no_head(HeadError::Read(Box::new(error))))?;
        icon_of(&manifest.unwrap_or_default())
            .map_err(|source| IconError::ReadCsv { bundle: head.clone(), source })
    }
}

/// Why the icon of a package cannot be read.
#[derive(Debug, thiserror::Error)]
enum IconError {
    /// The default channel has no head.
    #[error("get default channel head for package {}: {source}", quote(package))]
    FindHead {
        /// The package.
        package: String,
        /// The reason.
        source: HeadError,
    },
    /// The ClusterServiceVersion of the head cannot be read.
    #[error("unmarshal CSV json for bundle {}: {source}", quote(bundle))]
    ReadCsv {
        /// The head.
        bundle: String,
        /// The reason.
        source: CsvError,
    },
}

/// Why a default channel has no head.
#[derive(Debug, thiserror::Error)]
enum HeadError {
    /// The package names no default channel.
    #[error("it has no default channel")]
    NoDefaultChannel,
    /// The package has no such channel.
    #[error("there is no channel {}", quote(channel))]
    UnknownChannel {
        /// The channel.
        channel: String,
    },
    /// The head of the channel does not exist.
    #[error("no entry found for {package} {channel}")]
    NoEntry {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
    },
    /// The database cannot be read.
    #[error("{}", .0.upstream())]
    Read(Box<DatabaseError>),
}

/// Why the ClusterServiceVersion of a bundle cannot be read.
#[derive(Debug, thiserror::Error)]
enum CsvError {
    /// It is not JSON; the message of Go's scanner.
    #[error("{0}")]
    Syntax(String),
    /// It is not JSON.
    #[error(transparent)]
    ParseJson(#[from] serde_json::Error),
    /// A field does not have its type.
    #[error(transparent)]
    Convert(#[from] mainstay_bundle::TypeError),
}

/// The first icon in a ClusterServiceVersion, if it is valid.
fn icon_of(csv: &str) -> Result<Option<Value>, CsvError> {
    if let Some(fault) = json_fault(csv.as_bytes()) {
        return Err(CsvError::Syntax(fault));
    }
    let csv: Value = serde_json::from_str(csv)?;
    // Upstream decodes the whole ClusterServiceVersion, so all of it must have its type.
    mainstay_bundle::csv_metadata(&csv)?;
    let icon = &csv["spec"]["icon"][0];
    let text: String = icon["base64data"].as_str().unwrap_or_default().replace(['\r', '\n'], "");
    let bytes = STANDARD.decode(&text).or_else(|_| STANDARD.decode(text.replace(' ', "")));
    // Upstream leaves out an icon that is not base64.
    let bytes = bytes.unwrap_or_default();
    if bytes.is_empty() {
        return Ok(None);
    }
    let media = icon["mediatype"].as_str().unwrap_or_default();
    Ok(Some(json!({"base64data": STANDARD.encode(bytes), "mediatype": media})))
}
