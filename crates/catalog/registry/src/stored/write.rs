//! Writing of stored documents: complete under their name, or not there.

use super::index::IndexWriter;
use super::{DOCUMENTS, OpenStoredError};
use crate::documents::{DocumentName, hash_of, hex, name_of};
use mainstay_catalog::{Blob, BlobError};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The size of the write buffer, in bytes.
const BUFFER: usize = 256 << 10;

/// Why a catalog cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreCatalogError {
    /// A file or folder cannot be written.
    #[error("cannot write {}: {}", path.display(), mainstay_gocompat::io_error_text(source))]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why it cannot be written.
        source: io::Error,
    },
    /// A document was read without its content, or is damaged in memory.
    #[error(transparent)]
    Document(#[from] BlobError),
    /// What was written cannot be opened.
    #[error(transparent)]
    Open(OpenStoredError),
}

/// A temporary folder; it is removed unless it was renamed.
struct Unfinished<'f>(&'f Path);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        // After the rename there is no folder of this name. Leftovers are replaced by the next write.
        let _ = fs::remove_dir_all(self.0);
    }
}

/// Writes the documents and their index into `folder`, and replaces what is there.
pub(super) fn write(
    folder: &Path,
    documents: impl IntoIterator<Item = Blob>,
    modified: SystemTime,
) -> Result<(), StoreCatalogError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| StoreCatalogError::Write { path, source }
    };
    let temporary = folder.with_extension("unfinished");
    let remove = |path: &Path| match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path)(error)),
        _ => Ok(()),
    };
    remove(&temporary)?;
    fs::create_dir_all(&temporary).map_err(failed(&temporary))?;
    let unfinished = Unfinished(&temporary);
    let path = temporary.join(DOCUMENTS);
    let file = File::create(&path).map_err(failed(&path))?;
    let mut out = io::BufWriter::with_capacity(BUFFER, file);
    let (mut hash, mut index) = (Sha256::new(), IndexWriter::default());
    for blob in documents {
        let json = blob.json()?;
        hash.update(hash_of(&blob)?);
        out.write_all(&json).and_then(|()| out.write_all(b"\n")).map_err(failed(&path))?;
        let DocumentName { schema, package, name } = name_of(&blob)?;
        index.add(json.len() as u64 + 1, schema, package, name);
    }
    let file = out.into_inner().map_err(|error| failed(&path)(error.into_error()))?;
    file.sync_all().map_err(failed(&path))?;
    index.write(&temporary, hex(&hash.finalize()), modified).map_err(failed(&temporary))?;
    remove(folder)?;
    fs::rename(&temporary, folder).map_err(failed(folder))?;
    drop(unfinished);
    Ok(())
}
