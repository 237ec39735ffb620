//! Who owns which field: `metadata.managedFields` as a Kubernetes API keeps them.
//!
//! Every write goes through here, on its way from what the client sent to what is stored.
//! [`crate::apply`] works out which fields a write takes and gives; this module knows in whose name,
//! since when, and how that is written down.
//!
//! ```text
//! create, update, patch:  entries ─► managers ─► who changed what ─► names stripped ─► time ─►
//!                         at most ten who write ─► entries
//! apply:                  entries ─► managers (or what was there before) ─► merge, conflicts ─►
//!                         names stripped ─► time ─► annotation of client-side apply ─► entries
//! ```

mod conflict;
mod entry;
mod last_applied;
mod name;
mod pipeline;
mod scale;

pub use entry::{Identity, Managed, Operation, ReadEntriesError};
pub use last_applied::ANNOTATION;
pub use name::{MAX_NAME, entry_errors, name_errors, name_of_agent};
pub use pipeline::{Write, is_unchanged, shown};
pub use scale::{ReplicasPaths, SCALE_API_VERSION, of_parent, of_scale};
