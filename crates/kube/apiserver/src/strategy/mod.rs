//! What is special about single kinds: defaults, what clients may not set, validation, fields to
//! select by.
//!
//! Everything that all kinds have in common is in the handlers; a kind without anything special
//! has [`Plain`]. Built-in kinds are rows again, of plain functions ([`for_kind`]): what a kind
//! defaults, allocates and checks can be read off one table.
//!
//! What this does not do: admission, which has a chain of its own (`crate::admission`); defaults of rarely
//! used volume sources.

mod certificates;
mod check;
mod core;
pub(crate) mod fields;
mod groups;
mod kinds;
pub(crate) mod pods;
pub(crate) mod quantity;
mod rules;
mod services;
mod signing;
mod warnings;
mod workloads;

pub(crate) use self::check::access_review;

use mainstay_kinds::{Context, Metadata, Strategy, Target};
use mainstay_object::Gvk;

/// The strategy of a built-in kind, by the version that is stored.
pub fn for_kind(gvk: &Gvk) -> &'static dyn Strategy {
    kinds::rules(&gvk.group, &gvk.kind)
}

#[cfg(test)]
pub(crate) mod tests;
