//! Why a catalog cannot be loaded, in the words of upstream's server, which looks at a catalog package
//! by package.

use super::super::go;
use super::Settings;
use super::cache::CacheError;
use mainstay_catalog::{CatalogDocuments, FolderSource, LoadError, LoadOptions};
use std::collections::BTreeMap;
use std::error::Error;
use std::io;

/// How errors begin that are found when the documents of one package are looked at.
const OF_PACKAGES: [&str; 5] = [
    "parse package: ",
    "parse channel: ",
    "parse bundle: ",
    "parse deprecation: ",
    "read bundle objects: ",
];

/// Upstream does not serve a catalog that is sound.
#[derive(Debug, thiserror::Error)]
#[error("{said}")]
pub(super) struct NotServed {
    /// What it says.
    pub(super) said: String,
}

/// A folder could not be loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    /// No folder is named.
    #[error("stat .: os: DirFS with empty root")]
    NoName,
    /// The folder is not there, or nobody may look.
    #[error("stat .: {}", go::reason(.0))]
    Stat(io::Error),
    /// It is no folder.
    #[error("stat .: not a directory")]
    NoFolder,
    /// A document has no schema.
    #[error("invalid custom schema meta: invalid schema: must not be empty")]
    NoSchema,
    /// A package is none.
    #[error("build package index: process package {}: {}", go::quote(package), source.upstream())]
    Package {
        /// The package.
        package: String,
        /// What is wrong with its documents.
        source: LoadError,
    },
    /// The catalog is not the one that the cache belongs to.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A document is one that upstream does not serve.
    #[error(transparent)]
    NotServed(#[from] NotServed),
    /// The catalog is none.
    #[error("{}", .0.upstream())]
    Catalog(LoadError),
}

/// What is wrong with a cache, if that is why a catalog is not served.
pub(super) fn cache_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e CacheError> {
    match error.downcast_ref() {
        Some(Broken::Cache(error)) => Some(error),
        Some(_) => None,
        None => error.downcast_ref(),
    }
}

/// What is wrong with a folder that could not be loaded.
pub(super) fn broken(settings: &Settings, error: LoadError) -> Broken {
    if settings.typed.is_empty() {
        return Broken::NoName;
    }
    match std::fs::metadata(&settings.folder) {
        Err(error) => return Broken::Stat(error),
        Ok(found) if !found.is_dir() => return Broken::NoFolder,
        Ok(_) => {}
    }
    let package = |name: &str, source| Broken::Package { package: name.to_owned(), source };
    let declared =
        match CatalogDocuments::read(&FolderSource::new(&settings.folder), &LoadOptions::default())
        {
            Ok(declared) => declared,
            Err(error) => {
                // What a document means is judged with its package, whether it is one before.
                let said = error.upstream();
                let of = error.problems.iter().find_map(|problem| problem.blob.as_ref());
                let typed = OF_PACKAGES.iter().any(|words| said.starts_with(words));
                return match of {
                    _ if said.starts_with("object '")
                        && said.ends_with("is missing root schema field") =>
                    {
                        Broken::NoSchema
                    }
                    Some(blob) if typed => {
                        let of =
                            if &*blob.schema == "olm.package" { &blob.name } else { &blob.package };
                        package(of, error.clone())
                    }
                    _ => Broken::Catalog(error),
                };
            }
        };
    if let Some(cache) = settings.cache.as_ref().filter(|_| settings.enforce)
        && let Err(error) = cache.check(declared.blobs())
    {
        // Whether the digest fits is looked at before what the documents mean.
        return error.into();
    }
    let mut packages = BTreeMap::<_, Vec<_>>::new();
    for blob in declared.blobs() {
        if let Some(said) = mainstay_registry::unserved_blob_reason(&blob) {
            return NotServed { said }.into();
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
    Broken::Catalog(error)
}
