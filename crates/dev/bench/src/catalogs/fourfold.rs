//! A large catalog: copies of a catalog with renamed packages, as one JSON file.

use anyhow::{Context, Result};
use mainstay_yaml::{Options, documents};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Writes so many copies of the catalog in `folder` to `file`, each with other package names: a
/// sequence of JSON values, indented as opm renders them.
///
/// # Errors
/// The catalog cannot be read, or the file cannot be written.
pub(super) fn write(folder: &Path, file: &Path, times: usize) -> Result<()> {
    let mut paths = Vec::new();
    files(folder, &mut paths)?;
    paths.sort();
    let out = File::create(file).with_context(|| format!("creating {}", file.display()))?;
    let mut out = BufWriter::with_capacity(1 << 20, out);
    for time in 0..times {
        for path in &paths {
            let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
            for document in documents(&bytes, &Options::default()) {
                let mut value = document.with_context(|| path.display().to_string())?.value;
                rename(&mut value, time);
                let format = serde_json::ser::PrettyFormatter::with_indent(b"    ");
                let mut serializer = serde_json::Serializer::with_formatter(&mut out, format);
                serde::Serialize::serialize(&value, &mut serializer)?;
                out.write_all(b"\n")?;
            }
        }
    }
    out.flush().context("writing the large catalog")
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

/// Renames the package of a blob in all its fields.
fn rename(blob: &mut Value, time: usize) {
    let own = if blob["schema"] == "olm.package" { "name" } else { "package" };
    append(blob.get_mut(own), time);
    let Some(Value::Array(properties)) = blob.get_mut("properties") else { return };
    for property in properties {
        if property["type"] == "olm.package" {
            append(property.pointer_mut("/value/packageName"), time);
        }
    }
}

fn append(name: Option<&mut Value>, time: usize) {
    if let Some(name) = name
        && let Value::String(text) = name
    {
        *name = Value::String(format!("{text}-{time}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_catalog_copy_has_its_own_package_names() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = folder.path().join("catalog/deep");
        fs::create_dir_all(&catalog).unwrap();
        let blobs = "schema: olm.package\nname: kiwi\n---\nschema: olm.bundle\npackage: kiwi\n\
                     name: kiwi.v1\nproperties:\n- type: olm.package\n  value: {packageName: kiwi}\n";
        fs::write(catalog.join("a.yaml"), blobs).unwrap();
        let file = folder.path().join("all.json");
        write(&folder.path().join("catalog"), &file, 2).unwrap();
        let bytes = fs::read(&file).unwrap();
        let blobs: Vec<Value> = documents(&bytes, &Options::default())
            .map(|document| document.unwrap().value)
            .collect();
        assert_eq!(blobs.len(), 4);
        assert_eq!(blobs[0]["name"], "kiwi-0");
        assert_eq!(blobs[3]["package"], "kiwi-1");
        assert_eq!(blobs[3]["name"], "kiwi.v1");
        assert_eq!(blobs[3]["properties"][0]["value"]["packageName"], "kiwi-1");
    }
}
