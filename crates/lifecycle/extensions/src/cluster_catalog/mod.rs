//! ClusterCatalogs: pulled, stored, served, reported.
//!
//! ```text
//! ClusterCatalog, record of the last attempt ─ decide ─┬─► withdraw: stop serving, forget content
//!                                                      ├─► load: resolve, pull if new, store, serve
//!                                                      └─► wait for the next poll
//! ```
//!
//! A catalog that cannot be loaded keeps serving its last content. All state is on the object and in
//! the content folder; a killed process resumes from both.

mod content;
mod controller;
mod decide;
mod failure;
mod load;
mod metrics;
mod replica;

pub(crate) use content::Contents;
pub(crate) use controller::register;
pub use load::folder_reference;
pub(crate) use metrics::{LoadCounters, write as write_metrics};
pub(crate) use replica::{caught_up, register as register_replica};
