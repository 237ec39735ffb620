//! Why a server did not start.

use mainstay_object::Status;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A namespace that every cluster has could not be made.
    #[error("creating the namespace {name}: {status}")]
    CreateNamespace {
        /// Name of the namespace.
        name: String,
        /// The refusal.
        status: Status,
    },
    /// A flow schema or priority level that every cluster has could not be made.
    #[error("creating flow schemas and priority levels: {0}")]
    Flow(Status),
    /// The range of addresses of Services could not be made.
    #[error("creating the ServiceCIDR kubernetes: {0}")]
    ServiceRange(Status),
    /// An `APIService` of a group that is built in could not be made.
    #[error("creating APIServices: {0}")]
    Groups(Status),
    /// A role or binding that every cluster has could not be made.
    #[error("creating the {kind} {name}: {status}")]
    CreateRole {
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        name: String,
        /// The refusal.
        status: Status,
    },
}
