//! Patches of Kubernetes objects: JSON patch, merge patch, strategic merge patch, and server-side
//! apply ([`apply`]).
//!
//! The first two differ from their RFCs as the Go library behind the API does
//! (`evanphx/json-patch`), so no existing crate fits. Strategic merge patch is Kubernetes' own;
//! merge keys in the table of built-in types control it.
//!
//! Patches are plain functions of values. After an error the input is unchanged, except for the
//! target of [`json_patch`], which the caller must discard.
//!
//! ```text
//! object + patch (+ type) ─► patched object | PatchError ─► Status
//! ```

pub mod apply;
mod depth;
mod error;
mod json;
pub mod managed;
mod merge;
mod strategic;

pub use depth::MAX_DEPTH;
pub use error::PatchError;
pub use json::{
    ElementError, ErrorLocation, MAX_COPY_BYTES, MAX_OPERATIONS, OperationError, PathMember,
    check_operations, json_patch,
};
pub use merge::merge_patch;
pub use strategic::{go_text, strategic_merge};
