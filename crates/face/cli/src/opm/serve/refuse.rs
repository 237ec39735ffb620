//! Why a catalog is not served, in upstream's words. It looks at a catalog package by package here,
//! and at more than when it validates.

use super::super::go;
use super::Settings;
use mainstay_catalog::{Catalog, Declared, Folder, LoadError, LoadOptions};
use std::collections::BTreeMap;

/// What is wrong with a folder that could not be loaded.
pub(super) fn broken(settings: &Settings, error: &LoadError) -> String {
    if settings.typed.is_empty() {
        return "stat .: os: DirFS with empty root".to_owned();
    }
    match std::fs::metadata(&settings.folder) {
        Err(error) => return format!("stat .: {}", go::reason(&error)),
        Ok(found) if !found.is_dir() => return "stat .: not a directory".to_owned(),
        Ok(_) => {}
    }
    let said = error.upstream();
    let package = |name: &str, why: &str| {
        format!("build package index: process package {}: {why}", go::quote(name))
    };
    let declared = match Declared::read(&Folder::new(&settings.folder), &LoadOptions::default()) {
        Ok(declared) => declared,
        Err(error) => {
            // What a document means is judged with its package, whether it is one before.
            let said = error.upstream();
            let of = error.problems.iter().find_map(|problem| problem.blob.as_ref());
            let typed = ["package", "channel", "bundle", "deprecation"];
            let typed = typed.iter().any(|kind| said.starts_with(&format!("parse {kind}: ")));
            return match of {
                Some(blob) if typed => {
                    let of =
                        if &*blob.schema == "olm.package" { &blob.name } else { &blob.package };
                    package(of, &said)
                }
                _ => said,
            };
        }
    };
    let mut packages = BTreeMap::<_, Vec<_>>::new();
    for blob in declared.blobs() {
        if let Err(why) = custom(blob.schema(), blob.package()) {
            return why;
        }
        let name = if &**blob.schema() == "olm.package" { blob.name() } else { blob.package() };
        let Ok(value) = blob.value() else { continue };
        packages.entry(name.clone()).or_default().push((blob.origin().clone(), value));
    }
    for (name, documents) in packages {
        let alone = Declared::of(documents).and_then(Declared::check);
        if let Err(error) = alone {
            return package(&name, &error.upstream());
        }
    }
    said
}

/// What keeps a sound catalog from being served.
///
/// # Errors
/// Why.
pub(super) fn unservable(catalog: &Catalog) -> Result<(), String> {
    for blob in catalog.others() {
        custom(blob.schema(), blob.package())?;
    }
    for package in catalog.packages() {
        for bundle in package.bundles() {
            let count = bundle.metadata_count();
            if count > 1 {
                let name = go::quote(&package.name);
                return Err(format!(
                    "build package index: process package {name}: parse properties: expected at most 1 property of type \"olm.csv.metadata\", found {count}"
                ));
            }
        }
    }
    Ok(())
}

/// Whether documents of that schema and package can be asked for.
fn custom(schema: &str, package: &str) -> Result<(), String> {
    const KNOWN: [&str; 4] = ["olm.package", "olm.channel", "olm.bundle", "olm.deprecations"];
    if KNOWN.contains(&schema) {
        return Ok(());
    }
    let allowed = |text: &str| {
        let start = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        start && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    for (what, text) in [("schema", schema), ("packageName", package)] {
        let unnamed = what == "packageName" && text.is_empty();
        if !(unnamed || allowed(text)) {
            let text = go::quote(text);
            return Err(format!(
                "invalid custom schema meta: invalid {what} {text}: must match ^[a-zA-Z0-9][a-zA-Z0-9._-]*$"
            ));
        }
    }
    Ok(())
}
