//! Server-side apply: the ownership of fields, and the merge of an applied configuration. It
//! behaves as `structured-merge-diff`, which Kubernetes uses for it.
//!
//! Each manager that set a field to its present value owns it. A manager that changes a field takes
//! it from all others; an apply may do so only with `force`. A field that a manager applied before
//! and omits now is removed, unless another manager owns it.
//!
//! | Part | Purpose |
//! |---|---|
//! | [`ObjectPath`], [`FieldSet`] | paths of fields, sets, and their stored form (`fieldsV1`) |
//! | [`TypeRef`] | the topology of a type: atomic, set, map by keys |
//! | [`field_set`], [`compare`], [`merge`], [`remove`], [`validate`] | typed traversals of values |
//! | [`Updater`] | ownership after a write, and the object after an apply |
//!
//! This module does not read or write `metadata.managedFields`.
//!
//! Traversals recurse through value and type, as deep as the value. Parsed values are at most
//! [`crate::MAX_DEPTH`] deep.

mod compare;
mod fields;
mod fieldset;
mod filter;
mod lists;
mod merge;
mod path;
mod problems;
mod prune;
mod reconcile;
mod remove;
mod scalar;
mod set;
mod types;
mod updater;
mod validate;

pub use compare::{FieldComparison, compare};
pub use fields::FieldsError;
pub use fieldset::field_set;
pub use filter::{FieldFilter, PathPattern};
pub use merge::merge;
pub use path::{ObjectPath, PathElement};
pub use problems::{TypeProblem, TypeProblems};
pub use remove::remove;
pub use set::FieldSet;
pub use types::TypeRef;
pub use updater::{
    ApplyError, ApplyResult, ConversionError, FieldConflict, Managers, Updater, VersionConverter,
    VersionedSet,
};
pub use validate::{Duplicates, validate};
