//! Errors of reconciliations: which request failed, and when a key is reconciled again.

use mainstay_client::Action;
use std::time::Duration;

/// How long a key waits after a conflict for the caches to catch up.
const AFTER_CONFLICT: Duration = Duration::from_millis(5);

/// How long a key waits whose namespace is being terminated. Deletions in the namespace enqueue it
/// sooner.
const WHILE_TERMINATING: Duration = Duration::from_secs(30);

/// A request to the API that failed, with the operation that it was part of.
#[derive(Debug, thiserror::Error)]
#[error("{operation}")]
pub struct RequestError {
    /// The operation; completes "error while …".
    pub operation: &'static str,
    /// The response of the API, or why there was none.
    pub source: mainstay_client::Error,
}

impl RequestError {
    /// The message of the Status that the API answered with, else the error itself.
    pub fn message(&self) -> String {
        api_message(&self.source)
    }
}

/// The message of the Status that the API answered with, else the error itself.
pub fn api_message(error: &mainstay_client::Error) -> String {
    error.status().map_or_else(|| error.to_string(), |status| status.message.clone())
}

/// Adds to a failed request the operation that it was part of.
pub trait WithOperation<T> {
    /// `operation` completes "error while …".
    ///
    /// # Errors
    /// The failed request.
    fn during(self, operation: &'static str) -> Result<T, RequestError>;
}

impl<T> WithOperation<T> for mainstay_client::Result<T> {
    fn during(self, operation: &'static str) -> Result<T, RequestError> {
        self.map_err(|source| RequestError { operation, source })
    }
}

/// Why a reconciliation could not be finished.
pub trait ReconcileError: std::error::Error + Send + Sync + 'static {
    /// The failed request, if a request is the reason.
    fn request(&self) -> Option<&mainstay_client::Error>;

    /// Whether another client wrote the object meanwhile, so that the key has to be reconciled again.
    fn is_conflict(&self) -> bool {
        self.request().is_some_and(mainstay_client::Error::is_conflict)
    }
}

/// Requeues a key after a conflict, and while its namespace is being terminated: neither is a
/// failure, and nothing can be created in such a namespace. Other errors stay errors.
///
/// # Errors
/// The error of the reconciliation, if it is neither of the two.
pub fn requeue_on_conflict<E: ReconcileError>(outcome: Result<Action, E>) -> Result<Action, E> {
    match outcome {
        Err(error) if error.is_conflict() => Ok(Action::After(AFTER_CONFLICT)),
        Err(error)
            if error.request().is_some_and(mainstay_client::Error::is_namespace_terminating) =>
        {
            Ok(Action::After(WHILE_TERMINATING))
        }
        other => other,
    }
}
