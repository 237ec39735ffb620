//! Catalogs: where bundles come from, and what their CatalogSource says about that.
//!
//! A catalog is a folder that the process was told of; its CatalogSource names it. The store loads
//! the folder, follows its changes and keeps the last good content; the controller writes what the
//! store knows onto the CatalogSource. Catalogs behind an address, an image or a ConfigMap are not
//! served, and their `CatalogSources` say so.

pub(crate) mod controller;
pub(crate) mod source;
mod store;

pub use source::FOLDER_ADDRESS;
pub(crate) use store::{CatalogStore, Content, State};
pub use store::{FolderCatalog, ServedAt};
