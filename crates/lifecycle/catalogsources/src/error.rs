//! Errors of the reconciliation of a CatalogSource.

use mainstay_controller::{ReconcileError, RequestError};

/// Why a reconciliation failed; it is retried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A request to the API failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A CatalogSource is not of the shape of its kind.
    #[error("reading an object")]
    Decode(#[from] mainstay_api::ObjectDecodeError),
    /// A status could not be written as JSON.
    #[error("writing an object as JSON")]
    Encode(#[from] serde_json::Error),
}

impl ReconcileError for Error {
    fn request(&self) -> Option<&mainstay_client::Error> {
        match self {
            Self::Request(RequestError { source, .. }) => Some(source),
            _ => None,
        }
    }
}

impl Error {
    /// The message of the API if a request failed, otherwise the error.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Request(error) => error.message(),
            other => other.to_string(),
        }
    }
}
