//! Serving catalogs: one shared, immutable index behind every API that asks for content.
//!
//! ```text
//! Catalog ─► Index ─► Served (a name, and what it holds now) ─► Shelf ─┬─► gRPC registry API
//!                                                                     └─► HTTP catalog API
//! ```
//!
//! A [`Served`] catalog is there before its content is: whoever asks too early is told so, and a
//! reload swaps one pointer. Readers hold the index they began with until they are done.

pub mod http;
mod index;
pub mod reload;
pub mod server;
mod shelf;

pub use index::Index;
pub use shelf::{Served, Shelf, State};
