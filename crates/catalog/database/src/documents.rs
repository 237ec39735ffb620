//! All documents of a database.

use crate::{
    convert::{self, Source},
    edges::{self, Edges, Place},
    error::DatabaseError,
    levels::{Row, Tables, Typed},
    rows::Reader,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use mainstay_catalog::{BlobOrigin, CatalogDocuments, json_fault};
use mainstay_gocompat::quote;
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The property of bundles that a catalog no longer has.
const DEPRECATED: &str = "olm.deprecated";

/// A package as its rows have it.
#[derive(Debug, Default)]
struct Package {
    default_channel: String,
    /// The heads by the names of the channels.
    channels: BTreeMap<String, Option<String>>,
}

/// Reads a database to its end.
pub(crate) fn all(reader: &Reader) -> Result<CatalogDocuments, DatabaseError> {
    let Some(tables) = Tables::of(reader)? else { return Ok(CatalogDocuments::default()) };
    let packages = packages(reader)?;
    let mut content = Content {
        reader,
        bundles: tables.bundles()?,
        properties: tables.properties()?,
        dependencies: tables.dependencies()?,
        images: tables.images()?,
        entries: edges::read(reader)?,
        faults: Vec::new(),
        declared: CatalogDocuments::default(),
    };
    content.choose(&packages)?;
    content.write_bundles()?;
    let mut entries = content.entries_of_channels();
    for (name, package) in &packages {
        content.write_package(name, package, &mut entries)?;
    }
    let Content { declared, faults, .. } = content;
    match declared.index_fault(faults) {
        None => Ok(declared),
        Some(tree) => Err(reader.wrong(tree)),
    }
}

fn packages(reader: &Reader) -> Result<BTreeMap<String, Package>, DatabaseError> {
    let mut found: BTreeMap<String, Package> = BTreeMap::new();
    reader.each("SELECT name, default_channel FROM package", &[], |[name, default]| {
        if let Some(name) = name {
            found.entry(name).or_default().default_channel = default.unwrap_or_default();
        }
        Ok(())
    })?;
    let channels = "SELECT package_name, name, head_operatorbundle_name FROM channel";
    reader.each(channels, &[], |[package, name, head]| {
        if let Some(package) = package.and_then(|package| found.get_mut(&package)) {
            package.channels.insert(name.unwrap_or_default(), head);
        }
        Ok(())
    })?;
    match found.iter().find(|(_, package)| package.channels.is_empty()) {
        Some((name, _)) => Err(reader.wrong(format!("package {name} not found"))),
        None => Ok(found),
    }
}

/// What was read, and the documents so far.
struct Content<'r> {
    reader: &'r Reader,
    bundles: BTreeMap<String, Row>,
    properties: Typed,
    dependencies: Typed,
    images: BTreeMap<String, Vec<String>>,
    entries: BTreeMap<Place, Edges>,
    /// Lines of upstream's tree, below the nodes named.
    faults: Vec<(Vec<String>, String)>,
    declared: CatalogDocuments,
}

impl Content<'_> {
    /// Leaves the entries that a catalog has.
    fn choose(&mut self, packages: &BTreeMap<String, Package>) -> Result<(), DatabaseError> {
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
                Some(known) if !known.channels.contains_key(channel) => {
                    format!("unknown channel {}", quote(channel))
                }
                Some(_) => continue,
            };
            let bundle = quote(bundle);
            return Err(self
                .reader
                .wrong(format!("populate channels: {what} for bundle {bundle}")));
        }
        Ok(())
    }

    fn add(&mut self, line: usize, document: Value) -> Result<(), DatabaseError> {
        let file = self.reader.file().file_name().unwrap_or_default().to_string_lossy();
        let origin = BlobOrigin { file: Arc::from(&*file), line };
        let declared = CatalogDocuments::of([(origin, document)])
            .map_err(|error| self.reader.wrong(error.upstream()))?;
        self.declared.append(declared);
        Ok(())
    }

    /// The documents of bundles. Manifests pass by one bundle at a time.
    fn write_bundles(&mut self) -> Result<(), DatabaseError> {
        let mut wanted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (bundle, package, _) in self.entries.keys() {
            wanted.entry(bundle.clone()).or_default().insert(package.clone());
        }
        let mut line = 0;
        let reader = self.reader;
        reader.each("SELECT name, bundle FROM operatorbundle", &[], |[name, manifests]| {
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
        let pairs = |typed: &Typed| -> Vec<_> { typed.get(name).cloned().unwrap_or_default() };
        let (properties, dependencies) = (pairs(&self.properties), pairs(&self.dependencies));
        let source = Source {
            name,
            package,
            image: row.image.as_deref().unwrap_or_default(),
            version: row.version.as_deref().unwrap_or_default(),
            properties: &properties,
            dependencies: &dependencies,
            manifests,
            images: self.images.get(name).map_or(&[], Vec::as_slice),
        };
        let converted = convert::bundle(&source)
            .map_err(|refusal| self.reader.wrong(format!("populate channels: {refusal}")))?;
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

    /// The documents of a package and its channels.
    fn write_package(
        &mut self,
        name: &str,
        package: &Package,
        entries: &mut BTreeMap<(String, String), Vec<Value>>,
    ) -> Result<(), DatabaseError> {
        let icon = self
            .icon(name, package)
            .map_err(|why| self.reader.wrong(format!("populate package icons: {why}")))?;
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

    /// The icon of a package is that of the head of its default channel.
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
        let read = self.reader.each(query, &[head.as_str()], |[csv]| {
            manifest = csv;
            Ok(())
        });
        read.map_err(|error| no_head(HeadError::Read(Box::new(error))))?;
        icon_of(&manifest.unwrap_or_default())
            .map_err(|source| IconError::ReadCsv { bundle: head.clone(), source })
    }
}

/// The icon of a package cannot be found.
#[derive(Debug, thiserror::Error)]
enum IconError {
    /// The default channel has no head.
    #[error("get default channel head for package {}: {source}", quote(package))]
    FindHead {
        /// The package.
        package: String,
        /// Why not.
        source: HeadError,
    },
    /// The ClusterServiceVersion of the head cannot be read.
    #[error("unmarshal CSV json for bundle {}: {source}", quote(bundle))]
    ReadCsv {
        /// The head.
        bundle: String,
        /// Why not.
        source: CsvError,
    },
}

/// A default channel has no head.
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
    /// The channel has no bundle that is there.
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

/// The ClusterServiceVersion of a bundle cannot be read.
#[derive(Debug, thiserror::Error)]
enum CsvError {
    /// It is no JSON; the words of Go's scanner.
    #[error("{0}")]
    Syntax(String),
    /// It is no JSON.
    #[error(transparent)]
    ParseJson(#[from] serde_json::Error),
    /// A field is of another type.
    #[error(transparent)]
    Convert(#[from] mainstay_bundle::TypeError),
}

/// The first icon in a ClusterServiceVersion, if there is one that can be read.
fn icon_of(csv: &str) -> Result<Option<Value>, CsvError> {
    if let Some(fault) = json_fault(csv.as_bytes()) {
        return Err(CsvError::Syntax(fault));
    }
    let csv: Value = serde_json::from_str(csv)?;
    // The whole of it must be of the type, wherever the icon is.
    mainstay_bundle::csv_metadata(&csv)?;
    let icon = &csv["spec"]["icon"][0];
    let text: String = icon["base64data"].as_str().unwrap_or_default().replace(['\r', '\n'], "");
    let bytes = STANDARD.decode(&text).or_else(|_| STANDARD.decode(text.replace(' ', "")));
    // One that is no base64 is left out, as upstream does.
    let bytes = bytes.unwrap_or_default();
    if bytes.is_empty() {
        return Ok(None);
    }
    let media = icon["mediatype"].as_str().unwrap_or_default();
    Ok(Some(json!({"base64data": STANDARD.encode(bytes), "mediatype": media})))
}
