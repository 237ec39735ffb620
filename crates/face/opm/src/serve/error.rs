//! Errors of the serve commands, with the texts of upstream.

use super::super::database;
use super::super::error::PathError;
use super::super::go;
use super::address::AddressError;
use super::cache::CacheError;
use mainstay_catalog::LoadError;
use std::io;
use tokio::task::JoinError;

/// A catalog cannot be served, or the server ended.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum ServeError {
    /// The address for profiles is invalid.
    #[error("could not start pprof endpoint: {0}")]
    Profiles(AddressError),
    /// Cache integrity is required without a cache folder.
    #[error("--cache-dir must be specified with --cache-enforce-integrity")]
    NoCacheDir,
    /// The cache folder is unusable.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The cache folder has no digest.
    #[error("integrity check failed: {0}")]
    Integrity(CacheError),
    /// Upstream would not serve the catalog.
    #[error("{message}")]
    Refused {
        /// Upstream's text.
        message: String,
    },
    /// The catalog is not readable.
    #[error("{reason}")]
    Unread {
        /// The reason.
        reason: String,
    },
    /// Signal handlers cannot be installed.
    #[error("{}", mainstay_gocompat::io_error_text(.0))]
    Signals(io::Error),
    /// The server cannot listen on the port.
    #[error("failed to listen: {0}")]
    Listen(AddressError),
    /// The server ended unexpectedly.
    #[error("serving ended unexpectedly{}", ending(.0.as_ref()))]
    Ended(Option<JoinError>),
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] PathError),
    /// The database is not a regular file.
    #[error("{file} is not a regular file")]
    NoFile {
        /// Its path.
        file: String,
    },
    /// The file is not a valid database.
    #[error(transparent)]
    Database(#[from] database::ReadError),
    /// The database has no valid catalog.
    #[error("{}", .0.upstream())]
    Catalog(LoadError),
    /// The timeout is invalid.
    #[error("strconv.ParseUint: parsing {}: {fault}", go::quote(text))]
    Timeout {
        /// The given text.
        text: String,
        /// The error.
        fault: &'static str,
    },
}

fn ending(error: Option<&JoinError>) -> String {
    error.map(|error| format!(": {error}")).unwrap_or_default()
}
