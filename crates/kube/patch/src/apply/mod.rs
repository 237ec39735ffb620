//! Server-side apply: who owns which field of an object, and what an applied configuration makes of
//! it. Behaves as `structured-merge-diff` does, which Kubernetes uses for it.
//!
//! A field belongs to every manager that set it to its present value. Whoever changes it takes it
//! from all others; an applied configuration may do so only if it is forced. What a manager applied
//! and leaves out later goes, if nobody else owns it.
//!
//! | Part | What it does |
//! |---|---|
//! | [`Path`], [`Set`] | names of fields, sets of them, and how those are stored (`fieldsV1`) |
//! | [`TypeRef`] | what a type says of lists and objects: atomic, set, map by keys |
//! | [`set_of`], [`compare`], [`merge`], [`remove`], [`validate`] | walks over values with a type |
//! | [`Updater`] | ownership after a write, and the object after an apply |
//!
//! What is stored in `metadata.managedFields`, when, and in whose name, is not known here.
//!
//! Walks go down value and type together, and are as deep as the value; values that were parsed
//! are at most [`crate::MAX_DEPTH`] deep.

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

pub use compare::{Comparison, compare};
pub use fields::FieldsError;
pub use fieldset::set_of;
pub use filter::{Filter, Pattern};
pub use merge::merge;
pub use path::{Path, PathElement};
pub use problems::{Problem, Problems};
pub use remove::remove;
pub use set::Set;
pub use types::TypeRef;
pub use updater::{
    Applied, ApplyError, Conflict, ConversionError, Managers, Owned, Updater, Versions,
};
pub use validate::{Duplicates, validate};
