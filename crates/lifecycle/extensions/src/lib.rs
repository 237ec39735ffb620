//! OLM v1: the subsystem `extensions`.
//!
//! ```text
//! ClusterCatalog ─► pull ─► stored catalog ─┬─► HTTP API (/catalogs/NAME/api/v1)
//!                                           └─► status, events, metrics
//! ```
//!
//! What this crate does not do: serve the HTTP API, which is [`mainstay_registry::http`] over the
//! content that this subsystem stores.

mod start;

pub use start::{Extensions, Options, SUBSYSTEM};
