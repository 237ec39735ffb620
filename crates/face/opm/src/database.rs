//! Databases of indexes, where a catalog may be given.

use super::call::CommandIo;
use super::log::{self, Level};
use mainstay_catalog::Declared;
use mainstay_database::DatabaseError;
use std::path::Path;

const DEPRECATED: &str = "catalogs in databases are deprecated and only read; \
    make a file-based catalog of this one with `opm migrate`";

/// A file is no database with a catalog.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// There is no such file.
    #[error("unable to open database file: no such file or directory")]
    NoFile,
    /// What is in it is no sound database, or no catalog.
    #[error("{}", .0.upstream())]
    Database(DatabaseError),
}

/// What a database declares.
///
/// # Errors
/// If it is no catalog.
pub(super) fn read(io: &mut CommandIo<'_>, path: &Path) -> Result<Declared, ReadError> {
    log::write(io, Level::Warning, DEPRECATED, &[]);
    if !path.is_file() {
        return Err(ReadError::NoFile);
    }
    mainstay_database::read(path).map_err(|error| {
        let (ours, upstream) = (error.to_string(), error.upstream());
        // Upstream's words do not always say what is the matter.
        if !ours.contains(&upstream) {
            log::write(io, Level::Warning, &ours, &[]);
        }
        ReadError::Database(error)
    })
}
