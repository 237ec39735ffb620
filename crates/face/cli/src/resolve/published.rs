//! Published catalogs that a universe names: folders, or archives as they are handed around.

use crate::catalog::plain;
use crate::config::reason;
use lzma_rust2::XzReader;
use mainstay_catalog::{Catalog, Files, Folder, Keep, LoadOptions};
use mainstay_cause::{Cause, Place};
use mainstay_resolver::Snapshot;
use mainstay_resolver::universe::RealCatalog;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Most bytes that an archive may unpack to.
const MOST_BYTES: u64 = 1 << 30;
/// Most memory that unpacking may take, in KiB: what `xz -9` asks for, and some.
const MOST_MEMORY: u32 = 128 << 10;

/// Loads a published catalog from the folder of all of them: `catalog-NAME/`, or
/// `catalog-NAME.tar.xz`, which is unpacked in memory.
///
/// # Errors
/// If it is not there or cannot be loaded.
pub(super) fn load(root: Option<&Path>, name: &str) -> Result<RealCatalog, Cause> {
    let sober = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '-' | '_');
    if !name.chars().all(sober) {
        return Err(Cause::new(
            "the name of a published catalog has letters, digits, `.`, `-` and `_` only",
        )
        .remedy("correct the name"));
    }
    let root = root.ok_or_else(|| {
        Cause::new("it is not said where the published catalogs are")
            .remedy("name their folder with --published DIR, or in MAINSTAY_TESTDATA")
    })?;
    let folder = root.join(format!("catalog-{name}"));
    let archive = root.join(format!("catalog-{name}.tar.xz"));
    let options = LoadOptions { keep: Keep::Facts, ..LoadOptions::default() };
    let (place, loaded) = if folder.is_dir() {
        let loaded = Catalog::load_from(&Folder::new(&folder), &options);
        (folder, loaded)
    } else {
        let files = unpack(&archive).map_err(|error| {
            Cause::new(format!("the archive cannot be read: {}", reason(&error)))
                .at(Place::file(&archive))
                .remedy("put the catalog there, as a folder or packed, or name another folder with --published DIR")
        })?;
        (archive, Catalog::load_from(&files, &options))
    };
    let catalog = loaded.map_err(|error| {
        Cause::new("the catalog cannot be used")
            .at(Place::file(place))
            .because(Cause::new(plain(&error.headline())))
    })?;
    let snapshot = Snapshot::of(&catalog);
    Ok(RealCatalog { catalog, snapshot })
}

/// The regular files of an archive.
fn unpack(path: &Path) -> io::Result<Files> {
    let packed = BufReader::new(File::open(path)?);
    let bytes = XzReader::new_mem_limit(packed, true, MOST_MEMORY).take(MOST_BYTES + 1);
    let mut archive = tar::Archive::new(bytes);
    let mut files = Vec::new();
    let mut total = 0;
    for entry in archive.entries()? {
        let mut entry = entry?;
        total += entry.size();
        if total > MOST_BYTES {
            return Err(io::Error::other(format!(
                "it unpacks to more than {} MiB",
                MOST_BYTES >> 20
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
