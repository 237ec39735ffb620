//! Why a patch was refused.

use crate::json::OperationError;
use mainstay_object::{Reason, Status};

/// Why a patch was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch is not a patch: 400.
    #[error("{0}")]
    Malformed(String),
    /// A JSON patch with too many operations: 413.
    #[error(
        "Request entity too large: The allowed maximum operations in a JSON patch is {limit}, got {found}"
    )]
    TooManyOperations {
        /// How many operations a patch may have.
        limit: usize,
        /// How many this one has.
        found: usize,
    },
    /// A JSON patch whose operations move too much of the object about: 413.
    #[error(
        "Request entity too large: The operations of the JSON patch move more than {limit} elements; replace the lists as a whole, or split the patch"
    )]
    TooMuchWork {
        /// How many elements the operations of a patch may move.
        limit: usize,
    },
    /// The patch does not fit the object: 422. The original tells its clients only that; this text
    /// is for logs.
    #[error(transparent)]
    DoesNotApply(#[from] OperationError),
    /// A strategic merge patch of lists of lists: 422, as before.
    #[error("lists of lists are not supported")]
    ListsOfLists,
    /// A strategic merge patch that breaks its own rules, such as an element without its merge
    /// key. The original answers 500 with this text.
    #[error("{0}")]
    Unmergeable(String),
}

impl PatchError {
    /// The refusal that clients get.
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
