//! Errors of the start of a server.

use mainstay_object::Status;

/// An error of the start of a server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A namespace that every cluster has could not be created.
    #[error("creating the namespace {name}: {status}")]
    CreateNamespace {
        /// Name of the namespace.
        name: String,
        /// The refusal.
        status: Status,
    },
    /// A `FlowSchema` or `PriorityLevelConfiguration` that every cluster has could not be created.
    #[error("creating flow schemas and priority levels: {0}")]
    Flow(Status),
    /// The `ServiceCIDR` could not be created.
    #[error("creating the ServiceCIDR kubernetes: {0}")]
    ServiceRange(Status),
    /// An `APIService` of a built-in group could not be created.
    #[error("creating APIServices: {0}")]
    Groups(Status),
    /// A role or binding that every cluster has could not be created.
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
