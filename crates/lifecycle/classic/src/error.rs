//! Errors of a reconciliation.

use mainstay_controller::{ReconcileError, RequestError, api_message};
use mainstay_object::NamespacedName;

/// Why a reconciliation failed. The controller retries it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A request to the API failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// An object is not valid for its kind.
    #[error("reading an object")]
    Decode(#[from] mainstay_api::ObjectDecodeError),
    /// A status cannot be serialized.
    #[error("writing an object as JSON")]
    Encode(#[from] serde_json::Error),
    /// The target namespaces of an OperatorGroup cannot be selected.
    #[error("selecting the target namespaces of {0}")]
    Targets(NamespacedName, #[source] crate::membership::targets::TargetError),
    /// The API refused an object of a CSV. The status of the CSV reports it.
    #[error("installing {0}: {1}")]
    Refused(NamespacedName, String),
    /// The API refused the content of an InstallPlan. The Subscriptions report it.
    #[error("creating an InstallPlan")]
    PlanRefused {
        /// The name of the refused InstallPlan, which differs between attempts.
        name: String,
        source: mainstay_client::Error,
    },
    /// A blocking task panicked or was cancelled.
    #[error("waiting for work on another thread")]
    Join(#[from] tokio::task::JoinError),
}

impl ReconcileError for Error {
    fn request(&self) -> Option<&mainstay_client::Error> {
        match self {
            Self::Request(RequestError { source, .. }) | Self::PlanRefused { source, .. } => {
                Some(source)
            }
            _ => None,
        }
    }
}

impl Error {
    /// Whether the API refuses the request for its size.
    pub(crate) fn is_too_large(&self) -> bool {
        matches!(self, Self::Request(RequestError { source, .. })
            if source.status().is_some_and(|status| status.code == 413))
    }

    /// The message of the API if a request failed, else the error itself.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Request(error) => error.message(),
            // Without the name, the message of the same refusal stays the same.
            Self::PlanRefused { name, source } => {
                api_message(source).replace(&format!(" \"{name}\""), "")
            }
            other => other.to_string(),
        }
    }
}
