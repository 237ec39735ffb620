//! SQLite databases of index images, as input in place of a catalog.

use super::call::CommandIo;
use super::log::{self, Level};
use mainstay_catalog::CatalogDocuments;
use mainstay_database::DatabaseError;
use std::path::Path;

const DEPRECATED: &str = "catalogs in databases are deprecated and only read; \
    make a file-based catalog of this one with `opm migrate`";

/// The file is not a database with a catalog.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// The file does not exist.
    #[error("unable to open database file: no such file or directory")]
    NoFile,
    /// The database or its catalog is invalid.
    #[error("{}", .0.upstream())]
    Database(DatabaseError),
}

/// Reads the catalog of a database.
///
/// # Errors
/// If the database or the catalog is invalid.
pub(super) fn read(io: &mut CommandIo<'_>, path: &Path) -> Result<CatalogDocuments, ReadError> {
    log::write(io, Level::Warning, DEPRECATED, &[]);
    if !path.is_file() {
        return Err(ReadError::NoFile);
    }
    mainstay_database::read(path).map_err(|error| {
        let (ours, upstream) = (error.to_string(), error.upstream());
        // Upstream's text does not always have the reason.
        if !ours.contains(&upstream) {
            log::write(io, Level::Warning, &ours, &[]);
        }
        ReadError::Database(error)
    })
}
