//! What a cache folder means to a server that needs none.
//!
//! Upstream keeps a database there, with a digest of the catalog it was built from, and refuses to
//! serve when the two do not belong together. Content is never taken from a cache here; but the
//! promise that a pod serves what its image was built with is kept: `--cache-only` writes the digest
//! alone, and a later start compares before anybody is served. What is read later, because files
//! changed under a running server, was meant to change and is not compared. The digest of a database that upstream built covers the
//! database too, so it says nothing here: such a cache is left alone.

use super::super::error::PathError;
use super::super::go;
use mainstay_catalog::{Blob, BlobError, Catalog};
use mainstay_gocompat::json::{Html, Numbers};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The kind of cache that upstream prefers.
const POGREB: &str = "pogreb.v1";

/// A file that every database of that kind has.
const DATABASE: &str = "pogreb.v1/db/main.pix";

/// A cache folder does not do.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum CacheError {
    /// It cannot be looked into.
    #[error("detect cache format: read cache directory: {0}")]
    Detect(PathError),
    /// Something else is in it.
    #[error("cache directory has unexpected contents: {}", names.join(","))]
    UnexpectedContents {
        /// What is in it.
        names: Vec<String>,
    },
    /// It keeps no digest.
    #[error("read existing cache digest: {0}")]
    NoDigest(PathError),
    /// It belongs to another catalog.
    #[error(
        "cache requires rebuild: cache reports digest as {}, but computed digest is {}",
        go::quote(kept),
        go::quote(computed)
    )]
    Stale {
        /// The digest that it keeps.
        kept: String,
        /// That of the catalog.
        computed: String,
    },
    /// A document of the catalog cannot be read back.
    #[error(transparent)]
    Content(#[from] BlobError),
    /// The digest of the catalog cannot be written.
    #[error("store digest: {0}")]
    Store(PathError),
    /// The catalog has no digest to be written.
    #[error("store digest: open {path}: {source}")]
    StoreContent {
        /// Where it would be written.
        path: String,
        /// Why it has none.
        source: BlobError,
    },
}

/// A cache folder of a kind that upstream knows.
#[derive(Clone)]
pub(super) struct Folder {
    path: PathBuf,
    typed: String,
    /// Whether it holds the older kind of cache.
    older: bool,
}

impl Folder {
    /// Looks at a folder, which need not exist.
    ///
    /// # Errors
    /// When it holds something else.
    pub(super) fn find(path: &Path, typed: &str) -> Result<Self, CacheError> {
        let failed = |error| CacheError::Detect(PathError::of("open", typed)(error));
        let mut entries = Vec::new();
        match std::fs::read_dir(path) {
            Ok(found) => {
                for entry in found {
                    let entry = entry.map_err(failed)?;
                    let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                    entries.push((entry.file_name().to_string_lossy().into_owned(), folder));
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        entries.sort();
        let has = |name: &str, folder: bool| {
            entries.iter().any(|(known, is)| known == name && (*is || !folder))
        };
        let newer = entries.is_empty() || has(POGREB, true);
        let older = has("digest", false) && has("cache", true);
        if !(newer || older) {
            let names = entries.into_iter().map(|(name, _)| name).collect();
            return Err(CacheError::UnexpectedContents { names });
        }
        Ok(Self { path: path.to_owned(), typed: typed.to_owned(), older: !newer })
    }

    fn digest_file(&self) -> &'static str {
        if self.older { "digest" } else { "pogreb.v1/digest" }
    }

    /// The digest that is kept.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn kept_digest(&self) -> Result<String, CacheError> {
        let file = self.digest_file();
        let kept = std::fs::read_to_string(self.path.join(file)).map_err(|error| {
            let typed = go::clean(&format!("{}/{file}", self.typed));
            CacheError::NoDigest(PathError::of("open", typed)(error))
        })?;
        Ok(kept.trim().to_owned())
    }

    /// Whether a digest here is one of ours, and not one of a database.
    fn is_ours(&self) -> bool {
        !self.older && !self.path.join(DATABASE).exists()
    }

    /// Whether the catalog is the one whose digest is kept, as far as that can be told.
    ///
    /// # Errors
    /// When it is another one.
    pub(super) fn check(&self, blobs: impl Iterator<Item = Blob>) -> Result<(), CacheError> {
        let kept = self.kept_digest()?;
        if !self.is_ours() {
            return Ok(());
        }
        let computed = digest(blobs)?;
        if kept == computed {
            return Ok(());
        }
        Err(CacheError::Stale { kept, computed })
    }

    /// Keeps the digest of a catalog.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&self, catalog: &Catalog) -> Result<(), CacheError> {
        if !self.is_ours() {
            return Ok(());
        }
        let file = self.path.join(self.digest_file());
        let folder = file.parent().unwrap_or(&self.path);
        let typed = || go::clean(&format!("{}/{}", self.typed, self.digest_file()));
        let failed = |error| CacheError::Store(PathError::of("open", typed())(error));
        std::fs::create_dir_all(folder).map_err(failed)?;
        let digest = digest(catalog.blobs())
            .map_err(|source| CacheError::StoreContent { path: typed(), source })?;
        std::fs::write(&file, digest).map_err(failed)
    }
}

/// The digest of upstream: a 64-bit FNV-1a over all blobs as it writes them, a line each.
fn digest(blobs: impl Iterator<Item = Blob>) -> Result<String, BlobError> {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for blob in blobs {
        let value = blob.value()?;
        let text = mainstay_gocompat::json::value(&value, Html::Plain, Numbers::Float);
        for byte in text.bytes().chain([b'\n']) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
    Ok(sixteen(hash))
}

/// A digest as it is written: always 16 digits.
fn sixteen(hash: u64) -> String {
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_sixteen_digits() {
        assert_eq!(digest(std::iter::empty()).unwrap(), "cbf29ce484222325");
        for (hash, wanted) in [
            (0, "0000000000000000"),
            (0x00ab_cdef, "0000000000abcdef"),
            (u64::MAX, "ffffffffffffffff"),
        ] {
            assert_eq!(sixteen(hash), wanted);
        }
    }
}
