//! Default catalogs, and the `OperatorHub` that says which of them a cluster has.
//!
//! ```text
//! definitions of defaults, OperatorHub `cluster`, `CatalogSources` of the global namespace
//!     ─► hub::decide ─► `CatalogSources` as their definitions say, or gone ─► OperatorHub status
//! ```
//!
//! A default that is wanted is as its definition says, whoever changes or deletes it, and carries
//! the annotation `operatorframework.io/managed-by: marketplace-operator`. One that is not wanted is
//! removed if it carries that; a CatalogSource that somebody made under the same name stays. On
//! OpenShift the marketplace operator does this, by the same rules.

mod controller;
mod decide;

pub(crate) use controller::register;
