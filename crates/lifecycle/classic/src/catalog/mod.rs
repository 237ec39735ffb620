//! Catalogs: where bundles come from, and what their CatalogSource says about that.
//!
//! A catalog is a folder that the process was told of, whose CatalogSource names it, or what a
//! CatalogSource names: an image, or the address of a registry server. The store loads it, follows its
//! changes and keeps the last good content; the controller writes what the store knows onto the
//! CatalogSource. Catalogs in a ConfigMap are not served, and their `CatalogSources` say so.

mod address;
pub(crate) mod controller;
mod follow;
pub(crate) mod images;
pub(crate) mod source;
mod store;

pub use source::FOLDER_ADDRESS;
pub(crate) use store::{ByImage, CatalogStore, Content, State};
pub use store::{FolderCatalog, Serve, ServedAt};
