//! What a cache folder means to a server that needs none.
//!
//! Upstream keeps a database there, with a digest of the catalog it was built from, and refuses to
//! serve when the two do not belong together. Content is never taken from a cache here; but the
//! promise that a pod serves what its image was built with is kept: `--cache-only` writes the digest
//! alone, and a later start compares before anybody is served. What is read later, because files
//! changed under a running server, was meant to change and is not compared. The digest of a database that upstream built covers the
//! database too, so it says nothing here: such a cache is left alone.

use super::super::go;
use mainstay_catalog::{Blob, Catalog};
use mainstay_gocompat::json::{Html, Numbers};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The kind of cache that upstream prefers.
const POGREB: &str = "pogreb.v1";

/// A file that every database of that kind has.
const DATABASE: &str = "pogreb.v1/db/main.pix";

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
    pub(super) fn find(path: &Path, typed: &str) -> Result<Self, String> {
        let failed = |error: std::io::Error| {
            let why = go::reason(&error);
            format!("detect cache format: read cache directory: open {typed}: {why}")
        };
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
            let names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
            return Err(format!("cache directory has unexpected contents: {}", names.join(",")));
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
    pub(super) fn kept_digest(&self) -> Result<String, String> {
        let file = self.digest_file();
        let kept = std::fs::read_to_string(self.path.join(file)).map_err(|error| {
            let typed = go::clean(&format!("{}/{file}", self.typed));
            format!("read existing cache digest: open {typed}: {}", go::reason(&error))
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
    pub(super) fn check(&self, blobs: impl Iterator<Item = Blob>) -> Result<(), String> {
        let kept = self.kept_digest()?;
        if !self.is_ours() {
            return Ok(());
        }
        let computed = digest(blobs)?;
        if kept == computed {
            return Ok(());
        }
        let (kept, computed) = (go::quote(&kept), go::quote(&computed));
        Err(format!(
            "cache requires rebuild: cache reports digest as {kept}, but computed digest is {computed}"
        ))
    }

    /// Keeps the digest of a catalog.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&self, catalog: &Catalog) -> Result<(), String> {
        if !self.is_ours() {
            return Ok(());
        }
        let file = self.path.join(self.digest_file());
        let folder = file.parent().unwrap_or(&self.path);
        let written = std::fs::create_dir_all(folder)
            .map_err(|error| go::reason(&error))
            .and_then(|()| digest(catalog.blobs()))
            .and_then(|digest| std::fs::write(&file, digest).map_err(|error| go::reason(&error)));
        written.map_err(|why| {
            format!(
                "store digest: open {}: {why}",
                go::clean(&format!("{}/{}", self.typed, self.digest_file()))
            )
        })
    }
}

/// The digest of upstream: a 64-bit FNV-1a over all blobs as it writes them, a line each.
fn digest(blobs: impl Iterator<Item = Blob>) -> Result<String, String> {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for blob in blobs {
        let value = blob.value().map_err(|error| error.to_string())?;
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
        assert_eq!(digest(std::iter::empty()).as_deref(), Ok("cbf29ce484222325"));
        for (hash, wanted) in [
            (0, "0000000000000000"),
            (0x00ab_cdef, "0000000000abcdef"),
            (u64::MAX, "ffffffffffffffff"),
        ] {
            assert_eq!(sixteen(hash), wanted);
        }
    }
}
