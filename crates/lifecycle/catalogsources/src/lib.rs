//! CatalogSources of OLM classic: the controller and the content of the catalogs.
//!
//! A CatalogSource names a folder of this process, an image, a ConfigMap, or the address of a
//! registry server. The store loads the catalog, follows its changes and keeps the last good
//! content. The controller writes the state of the catalog into the status of the CatalogSource.
//!
//! ```text
//! folder, image, ConfigMap, registry server ─► CatalogStore ─┬─► SourceContent ─► resolution, PackageManifests
//! CatalogSource ── follow_source ───────────────────┘        └─► SourceState ─► status and Events
//!       └──► Pod, Service, NetworkPolicies …, where the catalog runs as a pod
//! ```
//!
//! Catalogs in images and ConfigMaps are read in the process ([`CatalogMode::InProcess`]), or run
//! as pods as upstream's do and are read over gRPC ([`CatalogMode::Pods`]). [`CatalogMode::Auto`]
//! decides by the content of the image. On simulated nodes no process listens in a pod: the store
//! reads the content that the pod would serve from the pod's ConfigMaps or image.
//!
//! The controller runs in a subsystem with other controllers. The subsystem gives it clients,
//! caches and the store as a [`CatalogContext`], and registers it with [`register`].
//!
//! This crate does not choose the bundles to install, and does not serve PackageManifests.

mod address;
mod config_map;
mod contents;
mod context;
mod controller;
mod error;
mod follow;
mod images;
mod local_address;
mod mode;
mod pod_content;
mod pods;
mod simulated;
mod status;
mod store;
mod store_options;
mod template;

pub use contents::CatalogContents;
pub use context::{CatalogCaches, CatalogContext, NamespaceLabels, OwnedObject, SharedCaches};
pub use controller::register;
pub use images::requester;
pub use mode::{CatalogMode, CatalogPods};
pub use status::{FOLDER_ADDRESS, NoContent, content, is_healthy};
pub use store::{CatalogStore, SourceContent, SourceState};
pub use store_options::{FolderCatalog, RegistryEndpoints, ServedAt, StoreOptions};
