//! Stored catalogs: the documents of a catalog in a folder, with an index, for the HTTP API of OLM v1.
//!
//! ```text
//! CatalogDocuments ─► documents.jsonl + index.json (temporary folder) ─ rename ─► StoredCatalog
//!                                                     folder, after a restart ──────┘
//! ```
//!
//! catalogd serves documents that make no catalog, such as channels without a package, and the
//! order of the files stays. So this store has the documents as lines, and an index of their
//! schemas, packages and names. Only the index is in memory; content is read from the file by
//! ranges while it is sent. A folder under its final name is complete. Compressed copies are
//! created beside it on first use, once.
//!
//! What this module does not do: parse, or decide which folder belongs to which ClusterCatalog.

mod compressed;
mod index;
mod write;

pub use compressed::ContentEncoding;
pub use write::StoreCatalogError;

use index::Index;
use mainstay_catalog::CatalogDocuments;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// The file with one document a line.
const DOCUMENTS: &str = "documents.jsonl";

/// The documents of a catalog in a folder, and their index in memory.
#[derive(Debug)]
pub struct StoredCatalog {
    folder: PathBuf,
    documents: File,
    index: Index,
    /// Held while a compressed copy is created.
    compressing: Mutex<()>,
}

/// The selection of documents by exact `schema`, `package` and `name`; `None` selects all values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentSelector<'s> {
    /// The value of the field `schema`.
    pub schema: Option<&'s str>,
    /// The value of the field `package`; `olm.package` documents usually have none.
    pub package: Option<&'s str>,
    /// The value of the field `name`.
    pub name: Option<&'s str>,
}

/// Why a folder has no usable stored catalog: it was removed, damaged, or written by another version.
#[derive(Debug, thiserror::Error)]
#[error("the stored catalog {} cannot be used: {why}", folder.display())]
pub struct OpenStoredError {
    /// The folder.
    pub folder: PathBuf,
    /// Why it cannot be used.
    pub why: String,
}

impl StoredCatalog {
    /// Writes the documents into a new folder, and opens it. A folder that exists already is opened
    /// instead if it can be used, and else replaced.
    ///
    /// The folder appears under its name when it is complete, so the process may be killed at any
    /// time. Blocks on files.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn create(
        folder: &Path,
        documents: &CatalogDocuments,
        modified: SystemTime,
    ) -> Result<Self, StoreCatalogError> {
        write::write(folder, documents, modified)?;
        Self::open(folder).map_err(StoreCatalogError::Open)
    }

    /// Opens a folder that [`StoredCatalog::create`] wrote. Reads the index, not the documents.
    ///
    /// # Errors
    /// If the folder is missing, incomplete or damaged.
    pub fn open(folder: &Path) -> Result<Self, OpenStoredError> {
        let refused = |why: String| OpenStoredError { folder: folder.to_owned(), why };
        let unreadable = |error: io::Error| refused(mainstay_gocompat::io_error_text(&error));
        let index = Index::read(folder).map_err(refused)?;
        let documents = File::open(folder.join(DOCUMENTS)).map_err(unreadable)?;
        let size = documents.metadata().map_err(unreadable)?.len();
        if size != index.size() {
            let expected = index.size();
            return Err(refused(format!("{DOCUMENTS} has {size} bytes, not {expected}")));
        }
        Ok(Self { folder: folder.to_owned(), documents, index, compressing: Mutex::default() })
    }

    /// The SHA-256 of all lines, in hexadecimal.
    pub fn digest(&self) -> &str {
        self.index.digest()
    }

    /// When the content was stored.
    pub fn modified(&self) -> SystemTime {
        self.index.modified()
    }

    /// The number of documents.
    pub fn count(&self) -> usize {
        self.index.count()
    }

    /// The size of all lines, in bytes.
    pub fn size(&self) -> u64 {
        self.index.size()
    }

    /// The packages that documents name, sorted.
    pub fn packages(&self) -> impl Iterator<Item = &str> {
        self.index.packages()
    }

    /// The byte ranges of the selected documents, each with its line feed, in order. Adjacent ranges
    /// are merged.
    pub fn select(&self, selector: DocumentSelector<'_>) -> Vec<Range<u64>> {
        self.index.select(selector)
    }

    /// Reads a range of the lines.
    ///
    /// # Errors
    /// If the file cannot be read, or has become shorter.
    pub fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let length = usize::try_from(range.end.saturating_sub(range.start))
            .map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let mut bytes = vec![0; length];
        self.documents.read_exact_at(&mut bytes, range.start)?;
        Ok(bytes)
    }

    /// All lines in a compressed form, and its size in bytes. The first call compresses and keeps
    /// the result beside the documents; it blocks and uses the CPU.
    ///
    /// # Errors
    /// If the copy can neither be read nor written.
    pub fn compressed(&self, encoding: ContentEncoding) -> io::Result<(File, u64)> {
        let _one_at_a_time = self.compressing.lock().unwrap_or_else(PoisonError::into_inner);
        compressed::open_or_create(&self.folder, &self.documents, self.size(), encoding)
    }

    /// The compressed form, if it was created already.
    pub fn existing_compressed(&self, encoding: ContentEncoding) -> Option<(File, u64)> {
        compressed::open(&self.folder, encoding)
    }
}

#[cfg(test)]
mod tests;
