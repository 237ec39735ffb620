//! Asking another registry for all that it has, and noticing when that may have changed.
//!
//! ```text
//! Address ─► Connection ─┬─► bundles, packages ─► documents ─► Catalog
//!                        └─► changed: the server says so, or the connection ends
//! ```
//!
//! A registry has no version of its content that one could ask for. What changes does so because its
//! server is another one, which ends the connection, or because a server like this crate's has new
//! content, which it tells to those who watch its health. So a connection is kept open and nothing
//! is asked in between: whoever follows a connection waits for either. That the other machine is gone
//! without a word is noticed by the system's keepalive of idle connections, which no server hears of.
//!
//! What goes wrong is said in the words of Go's gRPC client, because people and scripts know those.

mod connection;
mod documents;
mod fault;

pub use connection::{Address, Connection, prepare};
pub use documents::{Documents, Unread};
pub use fault::Fault;
