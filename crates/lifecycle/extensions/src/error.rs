//! Errors of reconciliations.

use mainstay_controller::{ReconcileError, RequestError};

/// Why a reconciliation failed; it is retried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A request to the API failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// An object could not be written as JSON.
    #[error("writing an object as JSON")]
    Encode(#[from] serde_json::Error),
    /// The content of a catalog is not available; the status says why.
    #[error("{0}")]
    Content(String),
}

impl ReconcileError for Error {
    fn request(&self) -> Option<&mainstay_client::Error> {
        match self {
            Self::Request(RequestError { source, .. }) => Some(source),
            _ => None,
        }
    }
}
