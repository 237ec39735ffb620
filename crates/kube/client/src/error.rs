//! Errors of API requests.

use mainstay_object::{Reason, Status};

/// The result of an API request.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server refused the request.
    #[error(transparent)]
    Status(Status),
    /// The server is unreachable, or the connection broke.
    #[error("cannot reach the Kubernetes API")]
    Transport(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The response violates the API.
    #[error("cannot read the answer of the Kubernetes API")]
    Answer(#[source] serde_json::Error),
    /// The request would have been a write after the end of the term in which this process may
    /// write.
    #[error("nothing is written any more: the lease is over, and another process may work by now")]
    Over,
}

impl Error {
    /// The refusal, if the server refused.
    pub const fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) => Some(status),
            _ => None,
        }
    }

    fn is(&self, reason: Reason) -> bool {
        self.status().is_some_and(|status| status.reason == reason)
    }

    /// Whether the object or the resource does not exist.
    pub fn is_not_found(&self) -> bool {
        self.is(Reason::NotFound)
    }

    /// Whether a precondition failed: the object changed meanwhile.
    pub fn is_conflict(&self) -> bool {
        self.is(Reason::Conflict)
    }

    /// Whether the name is taken.
    pub fn is_already_exists(&self) -> bool {
        self.is(Reason::AlreadyExists)
    }

    /// Whether a permission is missing, or the namespace is being deleted.
    pub fn is_forbidden(&self) -> bool {
        self.is(Reason::Forbidden)
    }

    /// Whether the object is invalid: the same request will be refused again.
    pub fn is_invalid(&self) -> bool {
        self.is(Reason::Invalid)
    }

    /// Whether the requested revision is too old and a new list is needed.
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(|status| status.code == Reason::Expired.code())
    }

    /// Whether the error is transient: the server was unreachable, the connection broke, or a
    /// server or proxy was overloaded or unhealthy. The same request may succeed at once. An
    /// internal failure that the server itself reports, as of a webhook that does not respond, is
    /// not transient.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Transport(_) | Self::Answer(_) | Self::Over => true,
            Self::Status(status) => match status.code {
                429 | 502..=504 => true,
                500 => status.reason == Reason::Unknown,
                _ => false,
            },
        }
    }

    /// Whether a creation was refused because its namespace is being deleted. A retry is pointless.
    pub fn is_namespace_terminating(&self) -> bool {
        self.status().is_some_and(|status| {
            status.reason == Reason::Forbidden
                && status.details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
        })
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::Transport(Box::new(error))
    }
}
