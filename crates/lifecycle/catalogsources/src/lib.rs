//! CatalogSources of OLM classic: their controller, and the content of their catalogs.
//!
//! A CatalogSource names a folder of this process, an image, a ConfigMap, or the address of a registry
//! server. The store loads what it names, follows its changes and keeps the last good content; the
//! controller writes what the store knows onto the status of the CatalogSource.
//!
//! ```text
//! folder, image, ConfigMap, registry server ─► CatalogStore ─┬─► CatalogContent ─► resolution, PackageManifests
//! CatalogSource ── follow_source ───────────────────┘        └─► CatalogState ─► status and Events
//!       └──► Pod, Service, NetworkPolicies …, where the catalog runs as a pod
//! ```
//!
//! Images and `ConfigMaps` are read in the process ([`CatalogMode::InProcess`]), or run as pods as in
//! the original and are read from there ([`CatalogMode::Pods`]), or the one or the other, by what is in
//! the image ([`CatalogMode::Auto`]). On simulated nodes nothing listens in a pod: what its program would
//! serve is read from the `ConfigMaps` or the image that it has.
//!
//! The controller runs in a subsystem that has more controllers. It gets what it uses as a
//! [`CatalogContext`], and the subsystem registers it with [`register`].
//!
//! What this crate does not do: choose what is installed of a catalog, or show its packages.

mod address;
mod config_map;
mod contents;
mod context;
mod controller;
mod error;
mod follow;
mod images;
mod mode;
mod pods;
mod program;
mod sibling;
mod simulated;
mod source;
mod store;
mod template;

pub use contents::CatalogContents;
pub use context::{CatalogCaches, CatalogContext, NamespaceLabels, OwnedObject, SharedCaches};
pub use controller::register;
pub use images::requester;
pub use mode::{CatalogMode, CatalogPods};
pub use source::{FOLDER_ADDRESS, NoContent, content, is_healthy};
pub use store::{
    CatalogContent, CatalogState, CatalogStore, FolderCatalog, Serve, ServedAt, StoreOptions,
};
