//! Catalogs in SQLite databases: the index format from before file-based catalogs, read once and
//! made into one.
//!
//! ```text
//! file ─► checked, read-only ─► rows ─┬─► entries ─► replaces and skips ─┬─► Declared
//!                                     └─► bundles, one at a time ────────┘
//! ```
//!
//! [`read`] makes of a database the documents that `opm render` of operator-registry 1.73 makes of it, so
//! that everything behind it (checks, migrations, lists, serving) is that of file-based catalogs.
//! Upstream brings an old database up to date in its file before it reads it. This crate never writes:
//! what the later levels would have added is worked out while reading, so a database may be anywhere that
//! can be read, and nothing is left beside it.
//!
//! A database is a program's data in a file from somewhere else. It is checked as a whole before a row is
//! read; views, triggers and functions of its schema do not run; work and memory are bounded by its size.
//!
//! Which levels: from 4 on. What a level adds is in `levels`.

mod convert;
mod documents;
mod edges;
mod error;
#[cfg(feature = "fixture")]
pub mod fixture;
mod levels;
mod open;
mod rows;

pub use error::DatabaseError;

use mainstay_catalog::{Catalog, CatalogDocuments};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

/// What the file of every database begins with.
const BEGINNING: [u8; 16] = *b"SQLite format 3\0";

/// Whether a file says of itself that it is a database. Nothing else of it is looked at.
pub fn is_database(path: &Path) -> bool {
    let mut start = [0; BEGINNING.len()];
    // A pipe would not give its first bytes again.
    let opened = || path.is_file().then(|| File::open(path).ok()).flatten();
    opened().is_some_and(|mut file| file.read_exact(&mut start).is_ok() && start == BEGINNING)
}

/// Reads a database of any level and gives the documents of the catalog in it: packages, channels and
/// bundles with their manifests. Blocks on the file and takes as long as its size makes it.
///
/// # Errors
/// A file that is no sound database, or what upstream finds wrong with the catalog in it.
pub fn read(path: &Path) -> Result<CatalogDocuments, DatabaseError> {
    documents::all(&rows::Reader::open(path)?)
}

/// Reads a database and puts its documents together to a catalog. Blocks, as [`read`] does.
///
/// # Errors
/// A file that is no sound database, or does not hold a sound catalog.
pub fn load(path: &Path) -> Result<Arc<Catalog>, DatabaseError> {
    read(path)?.check().map_err(|error| {
        let more = match error.problems.len().saturating_sub(1) {
            0 => String::new(),
            1 => "; and 1 more problem".to_owned(),
            more => format!("; and {more} more problems"),
        };
        // Documents of a database stand on no line.
        let first = error.problems.first().map(|problem| problem.message.replace('\n', " "));
        let message = format!("{}{more}", first.unwrap_or_default());
        DatabaseError::Content { file: path.to_owned(), message }
    })
}
