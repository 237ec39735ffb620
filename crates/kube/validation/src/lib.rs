//! Validation of built-in kinds: a strategy for each, with its defaults, what clients may not set, its
//! rules, and the fields to select by.
//!
//! Everything that all kinds have in common is in the handlers. Built-in kinds are rows again, of plain functions ([`for_kind`]): what a kind
//! defaults, allocates and checks can be read off one table.
//!
//! What this does not do: admission, which has a chain of its own (`kube/admission`); defaults of rarely
//! used volume sources.

mod api_services;
mod certificates;
mod check;
mod core;
pub mod fields;
pub mod flow_defaults;
mod groups;
mod kinds;
pub mod pods;
pub mod quantity;
mod rules;
mod services;
mod signing;
mod warnings;
mod workloads;

pub use self::api_services::local_condition;
pub use self::check::access_review;

use mainstay_kinds::{
    Context, Deletion, Dependents, KindRow, MetadataChecks, ResetFields, StatusMetadata, Strategy,
    WriteTarget,
};
use mainstay_object::Gvk;

/// The strategy of a built-in kind, by the version that is stored.
pub fn for_kind(gvk: &Gvk) -> &'static dyn Strategy {
    kinds::rules(&gvk.group, &gvk.kind)
}
