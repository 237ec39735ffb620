//! Why a reconciliation could not be finished.

use mainstay_client::Action;
use mainstay_object::NamespacedName;
use std::time::Duration;

/// How long to wait for a cache to catch up after a conflict.
const AGAIN: Duration = Duration::from_millis(5);

/// How long to wait before it is looked whether a namespace that is being terminated is gone. What goes
/// with it brings us back sooner.
const TERMINATING: Duration = Duration::from_secs(30);

/// Why a reconciliation could not be finished; it is tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A request to the API.
    #[error("{what}")]
    Api {
        /// What was being done.
        what: &'static str,
        /// What the API said.
        source: mainstay_client::Error,
    },
    /// An object of ours is not of the shape of its kind.
    #[error("reading an object")]
    Decode(#[from] mainstay_api::DecodeError),
    /// A status could not be written as JSON.
    #[error("writing an object as JSON")]
    Encode(#[from] serde_json::Error),
    /// What a group targets cannot be told.
    #[error("selecting the target namespaces of {0}")]
    Targets(NamespacedName, #[source] crate::operator_group::targets::TargetError),
    /// The API refused a Deployment; the status says so, and it is tried again.
    #[error("installing {0}: {1}")]
    Refused(NamespacedName, String),
    /// The API refused a plan for what it is; the Subscriptions say so, and it is tried again.
    #[error("creating a plan")]
    PlanRefused {
        /// The name that it should have got, which is another one each time.
        name: String,
        source: mainstay_client::Error,
    },
    /// Work off the async threads did not come back.
    #[error("waiting for work on another thread")]
    Join(#[from] tokio::task::JoinError),
}

impl Error {
    /// Whether somebody else wrote meanwhile, so that it has to be decided again.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Api { source, .. } if source.is_conflict())
    }

    /// Whether something was refused because its namespace is being terminated.
    fn is_namespace_terminating(&self) -> bool {
        let (Self::Api { source, .. } | Self::PlanRefused { source, .. }) = self else {
            return false;
        };
        source.is_namespace_terminating()
    }

    /// Whether the API takes nothing of that size, however often it is sent.
    pub(crate) fn is_too_large(&self) -> bool {
        matches!(self, Self::Api { source, .. } if source.status().is_some_and(|it| it.code == 413))
    }

    /// What the API said, if it was the API, else what is wrong.
    pub(crate) fn said(&self) -> String {
        match self {
            Self::Api { source, .. } => said(source),
            // The same refusal is told in the same words.
            Self::PlanRefused { name, source } => said(source).replace(&format!(" \"{name}\""), ""),
            other => other.to_string(),
        }
    }
}

fn said(error: &mainstay_client::Error) -> String {
    error.status().map_or_else(|| error.to_string(), |it| it.message.clone())
}

/// A conflict is no failure: the answer is to look again, soon. Nor is a namespace that is being
/// terminated: nothing can be made in it any more.
pub(crate) fn settle(outcome: Result<Action, Error>) -> Result<Action, Error> {
    match outcome {
        Err(error) if error.is_conflict() => Ok(Action::After(AGAIN)),
        Err(error) if error.is_namespace_terminating() => Ok(Action::After(TERMINATING)),
        other => other,
    }
}

/// Says what was being done when the API refused or was away.
pub(crate) trait Doing<T> {
    /// `what` completes "error while …".
    fn doing(self, what: &'static str) -> Result<T, Error>;
}

impl<T> Doing<T> for mainstay_client::Result<T> {
    fn doing(self, what: &'static str) -> Result<T, Error> {
        self.map_err(|source| Error::Api { what, source })
    }
}
