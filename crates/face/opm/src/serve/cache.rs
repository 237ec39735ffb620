//! Cache folder of `opm serve`: only the digest of the catalog.
//!
//! Upstream keeps a database there, with the digest of its catalog, and does not serve if the two do not
//! match. This server takes no content from a cache. It keeps the promise that a pod serves the content
//! that its image was built with: `--cache-only` writes the digest, and a later start compares it before
//! the first request. Files that change while the server runs are meant to change and are not compared.
//! The digest of a database that upstream built also covers the database, so it cannot be compared: such
//! a cache stays as it is.

use super::super::error::PathError;
use super::super::go;
use mainstay_catalog::{Blob, BlobError, Catalog};
use mainstay_gocompat::json::{Html, Numbers};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Upstream's current cache format.
const POGREB: &str = "pogreb.v1";

/// A file that every cache of this format has.
const DATABASE: &str = "pogreb.v1/db/main.pix";

/// A cache folder is unusable.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum CacheError {
    /// The folder cannot be read.
    #[error("detect cache format: read cache directory: {0}")]
    Detect(PathError),
    /// The folder has other content.
    #[error("cache directory has unexpected contents: {}", names.join(","))]
    UnexpectedContents {
        /// The names in the folder.
        names: Vec<String>,
    },
    /// The folder has no digest.
    #[error("read existing cache digest: {0}")]
    NoDigest(PathError),
    /// The digest is that of another catalog.
    #[error(
        "cache requires rebuild: cache reports digest as {}, but computed digest is {}",
        go::quote(stored),
        go::quote(computed)
    )]
    Stale {
        /// The stored digest.
        stored: String,
        /// The digest of the catalog.
        computed: String,
    },
    /// A document of the catalog is not readable.
    #[error(transparent)]
    Content(#[from] BlobError),
    /// The digest of the catalog cannot be written.
    #[error("store digest: {0}")]
    Store(PathError),
    /// The digest of the catalog cannot be computed.
    #[error("store digest: open {path}: {source}")]
    StoreContent {
        /// The file of the digest.
        path: String,
        /// The error.
        source: BlobError,
    },
}

/// A cache folder in one of upstream's formats.
#[derive(Clone)]
pub(super) struct CacheFolder {
    path: PathBuf,
    typed: String,
    /// Whether it has the older format.
    older: bool,
}

impl CacheFolder {
    /// Detects the format of a folder, which need not exist.
    ///
    /// # Errors
    /// If it has other content.
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

    /// The stored digest.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn stored_digest(&self) -> Result<String, CacheError> {
        let file = self.digest_file();
        let stored = std::fs::read_to_string(self.path.join(file)).map_err(|error| {
            let typed = go::clean(&format!("{}/{file}", self.typed));
            CacheError::NoDigest(PathError::of("open", typed)(error))
        })?;
        Ok(stored.trim().to_owned())
    }

    /// Whether the digest is one of ours, and not one of a database.
    fn is_ours(&self) -> bool {
        !self.older && !self.path.join(DATABASE).exists()
    }

    /// Compares the catalog with the stored digest, if the digest is one of ours.
    ///
    /// # Errors
    /// If it is the digest of another catalog.
    pub(super) fn check(&self, blobs: impl Iterator<Item = Blob>) -> Result<(), CacheError> {
        let stored = self.stored_digest()?;
        if !self.is_ours() {
            return Ok(());
        }
        let computed = digest(blobs)?;
        if stored == computed {
            return Ok(());
        }
        Err(CacheError::Stale { stored, computed })
    }

    /// Writes the digest of a catalog.
    ///
    /// # Errors
    /// If the write fails.
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

/// Upstream's digest: 64-bit FNV-1a over all blobs as JSON, one line each.
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
    Ok(format_digest(hash))
}

/// The text of a digest: always 16 digits.
fn format_digest(hash: u64) -> String {
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_sixteen_digits() {
        assert_eq!(digest(std::iter::empty()).unwrap(), "cbf29ce484222325");
        for (hash, expected) in [
            (0, "0000000000000000"),
            (0x00ab_cdef, "0000000000abcdef"),
            (u64::MAX, "ffffffffffffffff"),
        ] {
            assert_eq!(format_digest(hash), expected);
        }
    }
}
