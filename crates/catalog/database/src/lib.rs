//! SQLite catalogs: the index format before file-based catalogs, converted to one.
//!
//! ```text
//! file ─► checked, read-only ─► rows ─┬─► entries ─► replaces and skips ─┬─► CatalogDocuments
//!                                     └─► bundles, one at a time ────────┘
//! ```
//!
//! [`read`] returns the documents of `opm render` (operator-registry 1.73). Checks, migrations, lists
//! and serving are then those of file-based catalogs.
//!
//! Upstream migrates an old database in its file before it reads it. This crate never writes: it
//! derives the content of later migration levels while it reads. So a database may be read-only, and
//! no files appear next to it.
//!
//! A database is untrusted. All of it is checked before a row is read. Views, triggers and functions
//! of its schema do not run, and the file's size bounds work and memory.
//!
//! Migration levels from 4 on are read; `migration_level` says how.

mod convert;
mod documents;
mod edges;
mod error;
#[cfg(feature = "fixture")]
pub mod fixture;
mod migration_level;
mod open;
mod rows;

pub use error::DatabaseError;

use mainstay_catalog::{Catalog, CatalogDocuments};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

/// The first bytes of every SQLite file.
const MAGIC: [u8; 16] = *b"SQLite format 3\0";

/// Whether a file begins like a database. Only its first bytes are read.
pub fn is_database(path: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    // The first bytes of a pipe could not be read again.
    let opened = || path.is_file().then(|| File::open(path).ok()).flatten();
    opened().is_some_and(|mut file| file.read_exact(&mut start).is_ok() && start == MAGIC)
}

/// Reads the catalog documents of a database: packages, channels, and bundles with their manifests.
/// The call blocks on the file; its time grows with the file's size.
///
/// # Errors
/// If the file is not a valid database, or upstream refuses its catalog.
pub fn read(path: &Path) -> Result<CatalogDocuments, DatabaseError> {
    documents::read_documents(&rows::DatabaseReader::open(path)?)
}

/// Reads a database as a catalog. The call blocks, as [`read`] does.
///
/// # Errors
/// If the file is not a valid database, or does not hold a valid catalog.
pub fn load(path: &Path) -> Result<Arc<Catalog>, DatabaseError> {
    read(path)?.check().map_err(|error| {
        let more = match error.problems.len().saturating_sub(1) {
            0 => String::new(),
            1 => "; and 1 more problem".to_owned(),
            more => format!("; and {more} more problems"),
        };
        // Documents of a database have no line.
        let first = error.problems.first().map(|problem| problem.message.replace('\n', " "));
        let message = format!("{}{more}", first.unwrap_or_default());
        DatabaseError::Content { file: path.to_owned(), message }
    })
}
