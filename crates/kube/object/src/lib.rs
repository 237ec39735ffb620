//! Kubernetes objects without Go types: the vocabulary that server, controllers and tools share.
//!
//! An [`Object`] is a JSON object with accessors for what every Kubernetes object has. Nothing here
//! knows a particular kind, does I/O or needs a runtime; a kind is a [`Resource`] value, built in
//! or made from a custom resource definition.
//!
//! Data flow: bytes ─► [`Object`] ─► accessors and [`selector`]s ─► decisions; every refusal is a
//! [`Status`], the one error type that clients of a Kubernetes API understand.

mod field;
mod meta;
mod object;
mod objects;
mod resource;
mod status;

pub mod duration;
mod errors;
pub mod fnv;
pub mod known;
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
pub use status::{Cause, Details, Reason, Status};
