//! Kinds of the API server: one row for each kind and version, and the registry of all rows.
//!
//! A built-in kind is a row of a generated table, a CustomResourceDefinition makes the same sort of
//! row at run time ([`KindRow`]), and what is special about a kind is its [`Strategy`]. Handlers,
//! discovery, printing and documents look at rows only. The strategies of built-in kinds are handed
//! to [`Registry::new`]; none is known here.

pub mod allocator;
mod builtins;
mod custom;
mod derived;
mod order;
mod registry;
mod row;
mod strategy;

pub use custom::{Claims, CustomKind, NOT_YET, rows_of};
pub use derived::Derived;
pub use registry::{Group, GroupVersion, Kinds, Registry};
pub use row::{Custom, KindRow, PrinterColumn, Source, Subresource};
pub use strategy::{
    Context, Deletion, Dependents, Metadata, Plain, ResetFields, StatusMetadata, Strategy,
    StrategyOf, Target,
};
