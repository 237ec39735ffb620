//! OLM v1: the subsystem `extensions`.
//!
//! ```text
//! ClusterCatalog ─► resolve the tag ─► pull ─► stored catalog ─┬─► HTTP API (/catalogs/NAME/api/v1)
//!                     (poll: nothing new, nothing else)        └─► status, Events, metrics
//!
//! ClusterExtension ─► resolve in those catalogs ─► pull, render ─┬─► objects, release, status
//!                                                                └─► ClusterObjectSet ─► objects, status
//! ```
//!
//! A digest is pulled and parsed once. Its content stays in a folder that the next start opens
//! without parsing, so that catalogs are served before any registry is asked.
//!
//! What this crate does not do: answer HTTP requests, which `mainstay_registry::http` does with the
//! catalogs in [`Options::served`].

mod account_client;
mod account_watches;
mod cluster_catalog;
mod cluster_extension;
mod context;
mod error;
mod features;
mod image_texts;
mod info;
mod object_set;
mod resources;
mod start;

pub use cluster_catalog::folder_reference;
pub use features::{Features, TrustMode, WebhookCertificates};
pub use info::{SUBSYSTEM, subsystem};
pub use start::{Extensions, Options};
