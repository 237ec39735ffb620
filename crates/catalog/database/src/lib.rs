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
mod levels;
mod open;
mod rows;

pub use error::DatabaseError;

use mainstay_catalog::Declared;
use std::path::Path;

/// Reads a database of any level and gives the documents of the catalog in it: packages, channels and
/// bundles with their manifests. Blocks on the file and takes as long as its size makes it.
///
/// # Errors
/// A file that is no sound database, or what upstream finds wrong with the catalog in it.
pub fn read(path: &Path) -> Result<Declared, DatabaseError> {
    documents::all(&rows::Reader::open(path)?)
}
