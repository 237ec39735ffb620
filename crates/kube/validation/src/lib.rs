//! Strategies of the built-in kinds: defaults, preparation, validation, warnings and selectable fields.
//!
//! A strategy is a row of plain functions ([`for_kind`]), so one table shows what a kind defaults,
//! allocates and validates. The handlers contain what all kinds have in common.
//!
//! Not part of this crate: admission (`kube/admission`) and the defaults of rarely used volume sources.

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

/// The strategy of a built-in kind, by its storage version.
pub fn for_kind(gvk: &Gvk) -> &'static dyn Strategy {
    kinds::strategy(&gvk.group, &gvk.kind)
}
