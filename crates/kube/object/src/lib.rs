//! Untyped Kubernetes objects: the types that server, controllers and tools share.
//!
//! An [`Object`] is a JSON object with accessors for the fields of every Kubernetes object. A kind
//! is a [`Resource`] value, built in or made from a CustomResourceDefinition. An API error is a
//! [`Status`], the error type that each client of a Kubernetes API reads.
//!
//! ```text
//! bytes ─► Object ─► accessors, selectors ─► decision, or a Status
//! ```
//!
//! This crate has no code for a particular kind, does no I/O and needs no runtime.

mod field;
mod meta;
mod object;
mod objects;
mod resource;
mod status;

pub mod builtin;
pub mod duration;
mod errors;
pub mod fnv;
pub mod metadata;
pub mod selector;
pub mod size;

pub use errors::FieldErrors;
pub use field::{FieldError, FieldErrorKind, FieldPath, PrintedKind};
pub use mainstay_formats::names;
pub use meta::{NamespacedName, OwnerReference};
pub use object::{NotAnObject, Object, value_at};
pub use objects::Objects;
pub use resource::{Gvk, Resource, Scope};
pub use status::{Reason, Status, StatusCause, StatusDetails};
