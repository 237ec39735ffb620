//! Where the annotations of a bundle are.

use super::super::call::CommandIo;
use super::super::error::PathError;
use super::super::go;
use mainstay_bundle::DocumentError;
use mainstay_bundle::validate::sdk_annotations;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};

/// How many bytes of a file are read.
const MAX_FILE_BYTES: u64 = 32 << 20;
/// How many files are looked at, and how deep folders may lie in each other.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 64;

type Annotations = BTreeMap<String, String>;

/// There are no annotations of a bundle, in upstream's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum MetadataError {
    /// A file or a folder is refused.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The file that should have them is none.
    #[error("error unmarshalling potential bundle metadata {path}: {source}")]
    Parse {
        /// The file.
        path: String,
        /// Why it is none.
        source: DocumentError,
    },
    /// No file has any.
    #[error("metadata not found in {folder}")]
    NotFound {
        /// The folder of the bundle.
        folder: String,
    },
}

/// The annotations of the bundle in a folder: in the usual file, or else in the first that has some.
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

/// What a file says; none if it is not there.
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
    sdk_annotations(&bytes)
        .map(Some)
        .map_err(|source| MetadataError::Parse { path: path.to_owned(), source })
}

/// Looks in all files, in the order of their paths. Files that cannot be read count for nothing.
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
