//! Kinds of the API server: one row for each kind and version, and the registry of all rows.
//!
//! A built-in kind has a row in a generated table; a CustomResourceDefinition gets the same type of
//! row at run time ([`KindRow`]). Handlers, discovery, printing and documents read rows only. The
//! rules of one kind are its [`Strategy`].
//!
//! This crate has no strategy of a built-in kind: [`KindRegistry::new`] takes them as an argument.

pub mod allocator;
mod builtins;
mod custom;
mod derived;
mod registry;
mod row;
mod strategy;

pub use custom::{ClaimedNames, CustomKind, NOT_STORED, custom_kind};
pub use derived::Derived;
pub use registry::{Group, GroupVersion, KindRegistry, Kinds};
pub use row::{CustomVersion, KindRow, KindSource, PrinterColumn, Subresource};
pub use strategy::{
    Context, DefaultStrategy, Deletion, Dependents, MetadataChecks, ResetFields, StatusMetadata,
    Strategy, StrategyOf, WriteTarget,
};
