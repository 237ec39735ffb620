//! Registry client: reads the whole content of another registry and notices changes.
//!
//! ```text
//! Address ─► RegistryConnection ─┬─► bundles, packages ─► documents ─► Catalog
//!                                └─► changed: the server reports it, or the connection ends
//! ```
//!
//! The registry API has no version of the content to ask for. Content changes in two ways: another
//! server replaces the old one, which ends the connection; or a server like this crate's gets new
//! content, and reports that to watchers of its health. So the client keeps one connection open,
//! polls nothing, and waits for either. The TCP keepalive of the idle connection detects a machine
//! that is gone; no server sees it.
//!
//! Errors have the words of Go's gRPC client, because people and scripts know those.

mod connection;
mod documents;
mod error;

pub use connection::{Address, RegistryConnection, prepare};
pub use documents::{DocumentCollector, ReadCatalogError};
pub use error::RpcError;
