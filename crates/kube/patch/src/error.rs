//! Patch errors.

use crate::json::OperationError;
use mainstay_object::{Reason, Status};

/// A patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch is malformed: status 400.
    #[error("{0}")]
    Malformed(String),
    /// A JSON patch has too many operations: 413.
    #[error(
        "Request entity too large: The allowed maximum operations in a JSON patch is {limit}, got {found}"
    )]
    TooManyOperations {
        /// The most operations of a patch.
        limit: usize,
        /// The number of operations.
        found: usize,
    },
    /// The operations of a JSON patch move too many elements: 413.
    #[error(
        "Request entity too large: The operations of the JSON patch move more than {limit} elements; replace the lists as a whole, or split the patch"
    )]
    TooMuchWork {
        /// The most elements that the operations of a patch may move.
        limit: usize,
    },
    /// An operation does not apply to the object: 422. As in Kubernetes, the client gets a fixed
    /// text; this one is for logs.
    #[error(transparent)]
    DoesNotApply(#[from] OperationError),
    /// A strategic merge patch has lists of lists: 422.
    #[error("lists of lists are not supported")]
    ListsOfLists,
    /// A strategic merge patch breaks its rules, for example by an element without its merge key.
    /// Kubernetes has status 500 with this text.
    #[error("{0}")]
    Unmergeable(String),
}

impl PatchError {
    /// The status for the client.
    pub fn to_status(&self) -> Status {
        match self {
            Self::Malformed(text) => Status::bad_request(text.clone()),
            Self::TooManyOperations { .. } | Self::TooMuchWork { .. } => {
                Status::new(Reason::RequestEntityTooLarge, self.to_string())
            }
            Self::DoesNotApply(_) | Self::ListsOfLists => Status::new(
                Reason::Invalid,
                "the server rejected our request due to an error in our request",
            )
            .with_empty_details(),
            Self::Unmergeable(text) => Status::new(Reason::Unknown, text.clone()),
        }
    }
}
