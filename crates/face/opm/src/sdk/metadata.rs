//! Search for the annotations of a bundle.

use super::super::call::CommandIo;
use super::super::error::PathError;
use super::super::go;
use mainstay_bundle::FirstDocumentError;
use mainstay_bundle::validate::read_sdk_annotations;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};

/// The maximum number of bytes of a file.
const MAX_FILE_BYTES: u64 = 32 << 20;
/// The maximum number of files, and the maximum depth of folders.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 64;

type Annotations = BTreeMap<String, String>;

/// The annotations of a bundle are missing or invalid. The texts are upstream's.
#[derive(Debug, thiserror::Error)]
pub(super) enum MetadataError {
    /// An operation on a file or a folder failed.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The annotations file is invalid.
    #[error("error unmarshalling potential bundle metadata {path}: {source}")]
    Parse {
        /// The file.
        path: String,
        /// The error.
        source: FirstDocumentError,
    },
    /// No file has annotations.
    #[error("metadata not found in {folder}")]
    NotFound {
        /// The folder of the bundle.
        folder: String,
    },
}

/// The annotations of the bundle in a folder: from the usual file, or else from the first file with
/// annotations.
///
/// # Errors
/// If there are none.
pub(super) fn find(io: &CommandIo<'_>, folder: &str) -> Result<Annotations, MetadataError> {
    let usual = go::join(folder, "metadata/annotations.yaml");
    match read(io, &usual) {
        Ok(Some(found)) if !found.is_empty() => return Ok(found),
        Ok(_) => {}
        Err(why) => return Err(why),
    }
    let mut remaining = MAX_FILES;
    let found = walk(io, folder, 0, &mut remaining)?;
    found.ok_or_else(|| MetadataError::NotFound { folder: folder.to_owned() })
}

/// The annotations of a file; none if it does not exist.
fn read(io: &CommandIo<'_>, path: &str) -> Result<Option<Annotations>, MetadataError> {
    let file = match fs::File::open(io.resolve_path(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(PathError::of("open", path)(error).into()),
        Ok(file) => file,
    };
    let about = file.metadata().map_err(PathError::of("stat", path))?;
    if !about.is_file() && !about.is_dir() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(PathError::of("read", path))?;
    read_sdk_annotations(&bytes)
        .map(Some)
        .map_err(|source| MetadataError::Parse { path: path.to_owned(), source })
}

/// Searches all files, in the order of their paths. Unreadable files are ignored.
fn walk(
    io: &CommandIo<'_>,
    path: &str,
    depth: usize,
    remaining: &mut usize,
) -> Result<Option<Annotations>, MetadataError> {
    let about =
        fs::symlink_metadata(io.resolve_path(path)).map_err(PathError::of("lstat", path))?;
    if !about.is_dir() {
        if path.starts_with('.') || *remaining == 0 {
            return Ok(None);
        }
        *remaining -= 1;
        return Ok(read(io, path).ok().flatten().filter(|found| !found.is_empty()));
    }
    if depth > MAX_DEPTH {
        return Ok(None);
    }
    let entries = fs::read_dir(io.resolve_path(path)).map_err(PathError::of("open", path))?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    for name in names {
        if let Some(found) = walk(io, &go::join(path, &name), depth + 1, remaining)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}
