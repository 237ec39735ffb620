//! Why a catalog is not served, or not any more.

use super::super::database;
use super::super::error::PathError;
use super::super::go;
use super::address::AddressError;
use super::cache::CacheError;
use mainstay_catalog::LoadError;
use std::io;
use tokio::task::JoinError;

/// A catalog is not served, or not any more.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum ServeError {
    /// The address for profiles is none.
    #[error("could not start pprof endpoint: {0}")]
    Profiles(AddressError),
    /// A cache is asked for that has no folder.
    #[error("--cache-dir must be specified with --cache-enforce-integrity")]
    NoCacheDir,
    /// The cache folder does not do.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The cache folder keeps no digest.
    #[error("integrity check failed: {0}")]
    Integrity(CacheError),
    /// The catalog is none that upstream would serve.
    #[error("{said}")]
    Refused {
        /// What upstream says to it.
        said: String,
    },
    /// The process cannot read the catalog.
    #[error("{reason}")]
    Unread {
        /// Why not.
        reason: String,
    },
    /// The system tells of no signals.
    #[error("{}", go::reason(.0))]
    Signals(io::Error),
    /// Nobody can listen on the port.
    #[error("failed to listen: {0}")]
    Listen(AddressError),
    /// The server ended by itself.
    #[error("serving ended unexpectedly{}", ending(.0.as_ref()))]
    Ended(Option<JoinError>),
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] PathError),
    /// The database is no file.
    #[error("{file} is not a regular file")]
    NoFile {
        /// Its path.
        file: String,
    },
    /// The database is none.
    #[error(transparent)]
    Database(#[from] database::ReadError),
    /// The database holds no sound catalog.
    #[error("{}", .0.upstream())]
    Catalog(LoadError),
    /// The time to serve is none.
    #[error("strconv.ParseUint: parsing {}: {fault}", go::quote(text))]
    Timeout {
        /// What was given.
        text: String,
        /// What is wrong with it.
        fault: &'static str,
    },
}

fn ending(error: Option<&JoinError>) -> String {
    error.map(|error| format!(": {error}")).unwrap_or_default()
}
