//! Published catalogs that a recorded resolution input names: folders, or `.tar.xz` archives.

use lzma_rust2::XzReader;
use mainstay_catalog::{Catalog, FolderSource, KeptContent, LoadOptions, MemorySource};
use mainstay_resolver::Snapshot;
use mainstay_resolver::fixture::RealCatalog;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// Most bytes that an archive may unpack to.
const MAX_BYTES: u64 = 1 << 30;
/// Most memory that unpacking may take, in KiB: `xz -9` needs 64 MiB.
const MAX_MEMORY_KIB: u32 = 128 << 10;

/// Why a published catalog cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// The name would leave the folder.
    #[error("the name of a published catalog has letters, digits, `.`, `-` and `_` only")]
    CheckName,
    /// The archive cannot be unpacked.
    #[error("the archive cannot be read: {source}")]
    Unpack {
        /// The archive.
        archive: PathBuf,
        /// The error of the file system or of the decoder.
        source: io::Error,
    },
    /// The catalog has errors.
    #[error("the catalog cannot be used")]
    Load {
        /// The folder or archive.
        path: PathBuf,
        /// The first error.
        headline: String,
    },
}

/// Checks the name of a published catalog.
///
/// # Errors
/// If the name could lead out of the folder of published catalogs.
pub fn check_published_name(name: &str) -> Result<(), PublishedError> {
    let is_allowed = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '-' | '_');
    if name.chars().all(is_allowed) { Ok(()) } else { Err(PublishedError::CheckName) }
}

/// Loads a published catalog from the folder of all of them: `catalog-NAME/`, or
/// `catalog-NAME.tar.xz`, which is unpacked in memory.
///
/// # Errors
/// If the catalog does not exist or has errors.
pub fn load_published(root: &Path, name: &str) -> Result<RealCatalog, PublishedError> {
    check_published_name(name)?;
    let folder = root.join(format!("catalog-{name}"));
    let archive = root.join(format!("catalog-{name}.tar.xz"));
    let options = LoadOptions { keep: KeptContent::Facts, ..LoadOptions::default() };
    let (path, loaded) = if folder.is_dir() {
        let loaded = Catalog::load_from(&FolderSource::new(&folder), &options);
        (folder, loaded)
    } else {
        let files = match unpack(&archive) {
            Ok(files) => files,
            Err(source) => return Err(PublishedError::Unpack { archive, source }),
        };
        (archive, Catalog::load_from(&files, &options))
    };
    let catalog =
        loaded.map_err(|error| PublishedError::Load { path, headline: error.headline() })?;
    let snapshot = Snapshot::of(&catalog);
    Ok(RealCatalog { catalog, snapshot })
}

/// The regular files of an archive.
fn unpack(path: &Path) -> io::Result<MemorySource> {
    let packed = BufReader::new(File::open(path)?);
    let bytes = XzReader::new_mem_limit(packed, true, MAX_MEMORY_KIB).take(MAX_BYTES + 1);
    let mut archive = tar::Archive::new(bytes);
    let mut files = Vec::new();
    let mut total = 0;
    for entry in archive.entries()? {
        let mut entry = entry?;
        total += entry.size();
        if total > MAX_BYTES {
            return Err(io::Error::other(format!(
                "it unpacks to more than {} MiB",
                MAX_BYTES >> 20
            )));
        }
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path()?.to_string_lossy().into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        files.push((path, bytes));
    }
    Ok(files.into_iter().collect())
}
