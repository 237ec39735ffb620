//! Default CatalogSources: created, restored and deleted as the `OperatorHub` says.
//!
//! ```text
//! manifests of defaults, OperatorHub `cluster`, CatalogSources of the global namespace
//!     ─► operator_hub::decide ─► CatalogSources as in their manifests, or none ─► OperatorHub status
//! ```
//!
//! An enabled default matches its manifest, even after a client edits or deletes it, and has the
//! annotation `operatorframework.io/managed-by: marketplace-operator`. A disabled default is
//! deleted if it has that annotation, so a CatalogSource that a user created under the same name
//! stays. On OpenShift the marketplace operator follows the same rules.

mod controller;
mod decide;

pub(crate) use controller::register;
