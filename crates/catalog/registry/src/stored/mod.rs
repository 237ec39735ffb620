//! Stored documents: a folder with the documents of a catalog and their names, for the next start.
//!
//! ```text
//! blobs ─► documents.jsonl + index.json (temporary folder) ─ rename ─► ServedDocuments
//!                                          folder, after a restart ──────┘
//! ```
//!
//! A folder under its final name is complete. It is opened without parsing any document: only the index
//! is read, and content is read from the file by ranges while it is sent.
//!
//! What this module does not do: parse, or decide which folder belongs to which catalog.

mod index;
mod write;

pub use write::StoreCatalogError;

use crate::ServedDocuments;
use index::Index;
use mainstay_catalog::Blob;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The file with one document a line.
const DOCUMENTS: &str = "documents.jsonl";

/// Why a folder has no usable stored documents: it was removed, damaged, or written by another version.
#[derive(Debug, thiserror::Error)]
#[error("the stored catalog {} cannot be used: {why}", folder.display())]
pub struct OpenStoredError {
    /// The folder.
    pub folder: PathBuf,
    /// Why it cannot be used.
    pub why: String,
}

/// Writes documents into a new folder, and opens it. A folder that exists already is opened instead if it
/// can be used, and else replaced. `modified` is the `Last-Modified` time of HTTP.
///
/// The folder appears under its name when it is complete, so the process may be killed at any time. Blocks
/// on files.
///
/// # Errors
/// If a file cannot be written.
pub fn create(
    folder: &Path,
    documents: impl IntoIterator<Item = Blob>,
    modified: SystemTime,
) -> Result<ServedDocuments, StoreCatalogError> {
    if let Ok(stored) = open(folder) {
        return Ok(stored);
    }
    write::write(folder, documents, modified)?;
    open(folder).map_err(StoreCatalogError::Open)
}

/// Opens a folder that [`create`] wrote. Reads the index, not the documents.
///
/// # Errors
/// If the folder is missing, incomplete or damaged.
pub fn open(folder: &Path) -> Result<ServedDocuments, OpenStoredError> {
    let refused = |why: String| OpenStoredError { folder: folder.to_owned(), why };
    let unreadable = |error: io::Error| refused(mainstay_gocompat::io_error_text(&error));
    let index = Index::read(folder).map_err(refused)?;
    let documents = File::open(folder.join(DOCUMENTS)).map_err(unreadable)?;
    let size = documents.metadata().map_err(unreadable)?.len();
    if size != index.size() {
        let expected = index.size();
        return Err(refused(format!("{DOCUMENTS} has {size} bytes, not {expected}")));
    }
    // What is compressed for clients is written to a file without a name, which ends with the process.
    let compressed = mainstay_files::create_unnamed(folder).map_err(unreadable)?;
    Ok(index.into_documents(documents, compressed))
}

#[cfg(test)]
mod tests;
