//! Managed fields: `metadata.managedFields` as in the Kubernetes API.
//!
//! Each write passes this module between the request and the store. [`crate::apply`] computes the
//! fields that managers gain and lose. This module adds the names and times of managers, and the
//! form of the entries.
//!
//! ```text
//! create, update, patch:  entries ─► managers ─► ownership ─► unowned fields stripped ─► time ─►
//!                         at most ten updaters ─► entries
//! apply:                  entries ─► managers (or `before-first-apply`) ─► merge, conflicts ─►
//!                         unowned fields stripped ─► time ─► last-applied annotation ─► entries
//! ```

mod conflict;
mod entry;
mod last_applied;
mod name;
mod pipeline;
mod scale;

pub use entry::{ManagedFields, ManagerIdentity, ManagerOperation, ReadEntriesError};
pub use last_applied::ANNOTATION;
pub use name::{MAX_NAME, entry_errors, manager_of_user_agent, name_errors};
pub use pipeline::{ManagedWrite, describe_object, is_unchanged};
pub use scale::{ReplicasPaths, SCALE_API_VERSION, parent_entries, scale_entries};
