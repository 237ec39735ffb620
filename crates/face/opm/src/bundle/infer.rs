//! What a folder of bundles says of one of them: the old format, in which a package is a folder with
//! a manifest of the package and a folder for each version.

use super::super::call::Io;
use super::super::error::PathError;
use super::super::go;
use super::error::{CsvError, FileFault, InferError, ManifestError};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// How many bytes of a file are read.
const LONGEST: u64 = 32 << 20;

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inferred {
    /// The package.
    pub(super) package: String,
    /// The channels that lead to the bundle, by name.
    pub(super) channels: Vec<String>,
    /// The default channel; may be empty.
    pub(super) default: String,
}

/// Reads what the folder above a bundle's folder says of it. Paths are absolute.
///
/// # Errors
/// If that cannot be told.
pub(super) fn infer(io: &Io<'_>, folder: &str) -> Result<Inferred, InferError> {
    let (name, _) = csv(io, folder).map_err(InferError::Csv)?;
    let above = go::clean(&format!("{folder}/.."));
    let replaced = replaced(io, &above)?;
    let manifest = manifest(io, &above).map_err(InferError::Manifest)?;
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let listed = manifest["channels"].as_array().map(Vec::as_slice).unwrap_or_default();
    // Of two of one name the last counts.
    let heads: BTreeMap<String, String> =
        listed.iter().map(|channel| (text(channel, "name"), text(channel, "currentCSV"))).collect();
    let leads = |head: &String| {
        let mut seen = BTreeSet::new();
        let mut next = vec![head];
        while let Some(at) = next.pop() {
            if seen.insert(at) {
                next.extend(replaced.get(at).into_iter().flatten());
            }
        }
        seen.contains(&name)
    };
    let channels = heads.iter().filter(|(_, head)| leads(head)).map(|(channel, _)| channel.clone());
    let default = match (text(&manifest, "defaultChannel"), listed) {
        (default, [only]) if default.is_empty() => text(only, "name"),
        (default, _) => default,
    };
    Ok(Inferred { package: text(&manifest, "packageName"), channels: channels.collect(), default })
}

/// The names in a folder in order, with whether each is a folder.
fn names(io: &Io<'_>, folder: &str) -> Result<Vec<(String, bool)>, PathError> {
    let entries = fs::read_dir(io.at(folder)).map_err(PathError::of("open", folder))?;
    let mut names: Vec<(String, bool)> = entries
        .flatten()
        .map(|entry| {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            (entry.file_name().to_string_lossy().into_owned(), is_folder)
        })
        .collect();
    names.sort();
    Ok(names)
}

/// The first document of a file.
fn document(io: &Io<'_>, path: &str) -> Option<Value> {
    let place = io.at(path);
    let about = fs::metadata(&place).ok()?;
    if !about.is_file() || about.len() > LONGEST {
        return None;
    }
    let bytes = fs::read(place).ok()?;
    let options = mainstay_yaml::Options::default();
    mainstay_yaml::documents(&bytes, &options).next()?.ok().map(|document| document.value)
}

/// The only ClusterServiceVersion of a folder, and its name.
fn csv(io: &Io<'_>, folder: &str) -> Result<(String, Value), CsvError> {
    let listed =
        names(io, folder).map_err(|source| CsvError::Read { folder: folder.to_owned(), source })?;
    let mut found = None;
    for (name, _) in listed.iter().filter(|(_, is_folder)| !is_folder) {
        let Some(value) = document(io, &go::join(folder, name)) else { continue };
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

/// What each version of a package replaces or skips. Ranges count for nothing here.
fn replaced(io: &Io<'_>, folder: &str) -> Result<BTreeMap<String, Vec<String>>, InferError> {
    let listed = names(io, folder)
        .map_err(|source| InferError::Package { folder: folder.to_owned(), source })?;
    let mut all = BTreeMap::new();
    for (name, _) in listed.iter().filter(|(_, is_folder)| *is_folder) {
        let (name, csv) = csv(io, &go::join(folder, name)).map_err(InferError::Csvs)?;
        let spec = &csv["spec"];
        let skips = spec["skips"].as_array().into_iter().flatten();
        let skips = skips.chain([&spec["replaces"]]).filter_map(Value::as_str);
        all.insert(name, skips.filter(|name| !name.is_empty()).map(str::to_owned).collect());
    }
    Ok(all)
}

/// The manifest of the package: the first file that is one.
fn manifest(io: &Io<'_>, folder: &str) -> Result<Value, ManifestError> {
    let listed = names(io, folder).map_err(ManifestError::Read)?;
    let mut files = Vec::new();
    for (name, _) in listed.iter().filter(|(_, is_folder)| !is_folder) {
        let path = go::join(folder, name);
        let is_object = match document(io, &path) {
            Some(value) if value["packageName"].as_str().is_some_and(|name| !name.is_empty()) => {
                return Ok(value);
            }
            found => matches!(found, Some(Value::Object(_))),
        };
        files.push(FileFault { path, is_object });
    }
    Err(ManifestError::NotFound { folder: folder.to_owned(), files })
}
