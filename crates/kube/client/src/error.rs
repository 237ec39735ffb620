//! What can go wrong between a controller and the API.

use mainstay_object::{Reason, Status};

/// A result of talking to the API.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request did not give what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server answered and refused.
    #[error(transparent)]
    Status(Status),
    /// The server could not be reached, or the connection broke.
    #[error("cannot reach the Kubernetes API")]
    Transport(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server answered with something that is not what the API promises.
    #[error("cannot read the answer of the Kubernetes API")]
    Answer(#[source] serde_json::Error),
    /// It would have been a write, and the term in which this process may write is over.
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

    /// Whether the object, or the resource itself, is not there.
    pub fn is_not_found(&self) -> bool {
        self.is(Reason::NotFound)
    }

    /// Whether a precondition did not hold: the object changed meanwhile.
    pub fn is_conflict(&self) -> bool {
        self.is(Reason::Conflict)
    }

    /// Whether the name is taken.
    pub fn is_already_exists(&self) -> bool {
        self.is(Reason::AlreadyExists)
    }

    /// Whether permission is missing, or the namespace is being deleted.
    pub fn is_forbidden(&self) -> bool {
        self.is(Reason::Forbidden)
    }

    /// Whether the object breaks rules: the same request will be refused again.
    pub fn is_invalid(&self) -> bool {
        self.is(Reason::Invalid)
    }

    /// Whether the asked-for history is gone and a new list is needed.
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(|status| status.code == Reason::Expired.code())
    }

    /// Whether nobody has decided anything: the server could not be reached, the connection broke, or
    /// a server or something before it was too busy or not well. The same request may succeed at once.
    /// A failure inside the server that it tells itself, as of a webhook that does not answer, is a
    /// decision.
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

    /// Whether creation was refused because its namespace is being deleted. Retrying is pointless.
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
