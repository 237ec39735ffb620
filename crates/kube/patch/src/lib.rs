//! The four ways to change a part of an object, as a Kubernetes API has them: JSON patch, merge
//! patch, strategic merge patch, and server-side apply ([`apply`]), which has a page of its own.
//!
//! None of the three patches is the textbook's. JSON patch and merge patch have the edges of the Go
//! library behind the API (`evanphx/json-patch`), which is why no crate is used for them; strategic
//! merge patch is Kubernetes' own and is steered by the merge keys in the table of built-in types.
//!
//! Patches are plain functions of values. Nothing is changed when one is refused, apart from the
//! target of [`json_patch`], which the caller then throws away.
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
    ElementError, End, MAX_COPY_BYTES, MAX_OPERATIONS, OperationError, Place, check_operations,
    json_patch,
};
pub use merge::merge_patch;
pub use strategic::{go_text, strategic_merge};
