//! Why a reconciliation could not be finished.

use mainstay_controller::{ReconcileError, RequestError, api_message};
use mainstay_object::NamespacedName;

/// Why a reconciliation could not be finished; it is tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A request to the API.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// An object of ours is not of the shape of its kind.
    #[error("reading an object")]
    Decode(#[from] mainstay_api::DecodeError),
    /// A status could not be written as JSON.
    #[error("writing an object as JSON")]
    Encode(#[from] serde_json::Error),
    /// The target namespaces of an OperatorGroup cannot be selected.
    #[error("selecting the target namespaces of {0}")]
    Targets(NamespacedName, #[source] crate::membership::targets::TargetError),
    /// The API refused a Deployment; the status says so, and it is tried again.
    #[error("installing {0}: {1}")]
    Refused(NamespacedName, String),
    /// The API refused an InstallPlan for its content; the Subscriptions say so, and it is tried
    /// again.
    #[error("creating a plan")]
    PlanRefused {
        /// The name that the InstallPlan should have got, which is another one each time.
        name: String,
        source: mainstay_client::Error,
    },
    /// Work off the async threads did not come back.
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
    /// Whether the API takes nothing of that size, however often it is sent.
    pub(crate) fn is_too_large(&self) -> bool {
        matches!(self, Self::Request(RequestError { source, .. })
            if source.status().is_some_and(|status| status.code == 413))
    }

    /// The message of the API, if a request failed, else the error itself.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Request(error) => error.message(),
            // The same refusal has the same words each time.
            Self::PlanRefused { name, source } => {
                api_message(source).replace(&format!(" \"{name}\""), "")
            }
            other => other.to_string(),
        }
    }
}
