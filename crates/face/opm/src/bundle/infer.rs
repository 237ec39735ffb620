//! Package and channels of a bundle, inferred from the package manifests format: a package is a folder
//! with a package manifest and a folder for each version.

use super::super::call::CommandIo;
use super::super::error::PathError;
use super::super::go;
use super::error::{CsvError, InferError, ManifestError, NotPackageManifest};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The maximum size of a file in bytes.
const MAX_FILE_BYTES: u64 = 32 << 20;

/// The inferred package and channels.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InferredMetadata {
    /// The package.
    pub(super) package: String,
    /// The channels with an upgrade path from their head to the bundle, by name.
    pub(super) channels: Vec<String>,
    /// The default channel; may be empty.
    pub(super) default: String,
}

/// Infers package and channels from the folder above the folder of a bundle. Paths are absolute.
///
/// # Errors
/// If a file is missing or invalid.
pub(super) fn infer(io: &CommandIo<'_>, folder: &str) -> Result<InferredMetadata, InferError> {
    let (name, _) = read_csv(io, folder).map_err(InferError::Csv)?;
    let above = go::clean(&format!("{folder}/.."));
    let replaced_csvs = replaced_csvs(io, &above)?;
    let find_package_manifest = find_package_manifest(io, &above).map_err(InferError::Manifest)?;
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let entries =
        find_package_manifest["channels"].as_array().map(Vec::as_slice).unwrap_or_default();
    // Of two channels with one name the last one counts.
    let heads: BTreeMap<String, String> = entries
        .iter()
        .map(|channel| (text(channel, "name"), text(channel, "currentCSV")))
        .collect();
    let leads_to_bundle = |head: &String| {
        let mut visited = BTreeSet::new();
        let mut next = vec![head];
        while let Some(at) = next.pop() {
            if visited.insert(at) {
                next.extend(replaced_csvs.get(at).into_iter().flatten());
            }
        }
        visited.contains(&name)
    };
    let channels =
        heads.iter().filter(|(_, head)| leads_to_bundle(head)).map(|(channel, _)| channel.clone());
    let default = match (text(&find_package_manifest, "defaultChannel"), entries) {
        (default, [only]) if default.is_empty() => text(only, "name"),
        (default, _) => default,
    };
    Ok(InferredMetadata {
        package: text(&find_package_manifest, "packageName"),
        channels: channels.collect(),
        default,
    })
}

/// The sorted names in a folder, each with whether it is a folder.
fn list_names(io: &CommandIo<'_>, folder: &str) -> Result<Vec<(String, bool)>, PathError> {
    let entries = fs::read_dir(io.resolve_path(folder)).map_err(PathError::of("open", folder))?;
    let mut list_names: Vec<(String, bool)> = entries
        .flatten()
        .map(|entry| {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            (entry.file_name().to_string_lossy().into_owned(), is_folder)
        })
        .collect();
    list_names.sort();
    Ok(list_names)
}

/// The first document of a file.
fn first_document(io: &CommandIo<'_>, path: &str) -> Option<Value> {
    let place = io.resolve_path(path);
    let about = fs::metadata(&place).ok()?;
    if !about.is_file() || about.len() > MAX_FILE_BYTES {
        return None;
    }
    let bytes = fs::read(place).ok()?;
    let options = mainstay_yaml::Options::default();
    mainstay_yaml::documents(&bytes, &options)
        .next()?
        .ok()
        .map(|first_document| first_document.value)
}

/// The only ClusterServiceVersion of a folder, with its name.
fn read_csv(io: &CommandIo<'_>, folder: &str) -> Result<(String, Value), CsvError> {
    let entries = list_names(io, folder)
        .map_err(|source| CsvError::Read { folder: folder.to_owned(), source })?;
    let mut found = None;
    for (name, _) in entries.iter().filter(|(_, is_folder)| !is_folder) {
        let Some(value) = first_document(io, &go::join(folder, name)) else { continue };
        if value["kind"] != "ClusterServiceVersion" {
            continue;
        }
        if found.is_some() {
            return Err(CsvError::Several);
        }
        let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        found = Some((name, value));
    }
    found.ok_or_else(|| CsvError::NotFound { folder: folder.to_owned() })
}

/// The CSVs that each CSV of a package replaces or skips, without `skipRange`.
fn replaced_csvs(
    io: &CommandIo<'_>,
    folder: &str,
) -> Result<BTreeMap<String, Vec<String>>, InferError> {
    let entries = list_names(io, folder)
        .map_err(|source| InferError::Package { folder: folder.to_owned(), source })?;
    let mut all = BTreeMap::new();
    for (name, _) in entries.iter().filter(|(_, is_folder)| *is_folder) {
        let (name, read_csv) = read_csv(io, &go::join(folder, name)).map_err(InferError::Csvs)?;
        let spec = &read_csv["spec"];
        let skips = spec["skips"].as_array().into_iter().flatten();
        let skips = skips.chain([&spec["replaces"]]).filter_map(Value::as_str);
        all.insert(name, skips.filter(|name| !name.is_empty()).map(str::to_owned).collect());
    }
    Ok(all)
}

/// The package manifest: the first file that is one.
fn find_package_manifest(io: &CommandIo<'_>, folder: &str) -> Result<Value, ManifestError> {
    let entries = list_names(io, folder).map_err(ManifestError::Read)?;
    let mut files = Vec::new();
    for (name, _) in entries.iter().filter(|(_, is_folder)| !is_folder) {
        let path = go::join(folder, name);
        let is_object = match first_document(io, &path) {
            Some(value) if value["packageName"].as_str().is_some_and(|name| !name.is_empty()) => {
                return Ok(value);
            }
            found => matches!(found, Some(Value::Object(_))),
        };
        files.push(NotPackageManifest { path, is_object });
    }
    Err(ManifestError::NotFound { folder: folder.to_owned(), files })
}
