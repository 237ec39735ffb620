//! Load errors with the texts of upstream's server, which loads a catalog package by package.

use super::super::go;
use super::Settings;
use super::cache::CacheError;
use mainstay_catalog::{CatalogDocuments, FolderSource, LoadError, LoadOptions};
use std::collections::BTreeMap;
use std::error::Error;
use std::io;

/// Prefixes of errors in the documents of one package.
const OF_PACKAGES: [&str; 5] = [
    "parse package: ",
    "parse channel: ",
    "parse bundle: ",
    "parse deprecation: ",
    "read bundle objects: ",
];

/// Upstream does not serve a valid catalog.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Unservable {
    /// Upstream's text.
    pub(super) message: String,
}

/// A folder cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadFailure {
    /// The path is empty.
    #[error("stat .: os: DirFS with empty root")]
    NoName,
    /// The folder does not exist or is not accessible.
    #[error("stat .: {}", mainstay_gocompat::io_error_text(.0))]
    Stat(io::Error),
    /// The path is not a folder.
    #[error("stat .: not a directory")]
    NoFolder,
    /// A document has no schema.
    #[error("invalid custom schema meta: invalid schema: must not be empty")]
    NoSchema,
    /// A package is invalid.
    #[error("build package index: process package {}: {}", go::quote(package), source.upstream())]
    Package {
        /// The package.
        package: String,
        /// The error in its documents.
        source: LoadError,
    },
    /// The cache belongs to another catalog.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// Upstream does not serve a document.
    #[error(transparent)]
    Unservable(#[from] Unservable),
    /// The catalog is invalid.
    #[error("{}", .0.upstream())]
    Catalog(LoadError),
}

/// The cache error in an error, if it is one.
pub(super) fn cache_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e CacheError> {
    match error.downcast_ref() {
        Some(LoadFailure::Cache(error)) => Some(error),
        Some(_) => None,
        None => error.downcast_ref(),
    }
}

/// The error that upstream would return for a folder that cannot be loaded.
pub(super) fn explain_load_error(settings: &Settings, error: LoadError) -> LoadFailure {
    if settings.typed.is_empty() {
        return LoadFailure::NoName;
    }
    match std::fs::metadata(&settings.folder) {
        Err(error) => return LoadFailure::Stat(error),
        Ok(found) if !found.is_dir() => return LoadFailure::NoFolder,
        Ok(_) => {}
    }
    let package = |name: &str, source| LoadFailure::Package { package: name.to_owned(), source };
    let declared =
        match CatalogDocuments::read(&FolderSource::new(&settings.folder), &LoadOptions::default())
        {
            Ok(declared) => declared,
            Err(error) => {
                // Upstream first checks that each document is a blob, and its fields with its package.
                let message = error.upstream();
                let blob = error.problems.iter().find_map(|problem| problem.blob.as_ref());
                let typed = OF_PACKAGES.iter().any(|words| message.starts_with(words));
                return match blob {
                    _ if message.starts_with("object '")
                        && message.ends_with("is missing root schema field") =>
                    {
                        LoadFailure::NoSchema
                    }
                    Some(blob) if typed => {
                        let package_name =
                            if &*blob.schema == "olm.package" { &blob.name } else { &blob.package };
                        package(package_name, error.clone())
                    }
                    _ => LoadFailure::Catalog(error),
                };
            }
        };
    if let Some(cache) = settings.cache.as_ref().filter(|_| settings.enforce)
        && let Err(error) = cache.check(declared.blobs())
    {
        // The digest is checked before the fields of the documents.
        return error.into();
    }
    let mut packages = BTreeMap::<_, Vec<_>>::new();
    for blob in declared.blobs() {
        if let Some(message) = mainstay_registry::unserved_blob_reason(&blob) {
            return Unservable { message }.into();
        }
        let name = if &**blob.schema() == "olm.package" { blob.name() } else { blob.package() };
        let Ok(value) = blob.value() else { continue };
        packages.entry(name.clone()).or_default().push((blob.origin().clone(), value));
    }
    for (name, documents) in packages {
        let alone = CatalogDocuments::of(documents).and_then(CatalogDocuments::check);
        if let Err(error) = alone {
            return package(&name, error);
        }
    }
    LoadFailure::Catalog(error)
}
