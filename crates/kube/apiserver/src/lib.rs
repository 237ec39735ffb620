//! Kubernetes API server as a library: one set of handlers for every kind.
//!
//! A kind is a row ([`mainstay_kinds::KindRow`]), and a small [`mainstay_kinds::Strategy`] holds what
//! is special about it. Handlers, discovery, printing and OpenAPI documents read rows only. The crates
//! below this one hold what needs no server: HTTP, authentication, validation, admission, conversion,
//! outbound calls, streams and tables.
//!
//! The server is a tower service first ([`ApiService`]): controllers and tests of the same process
//! call it without a socket. A TLS port is the same service behind authentication.
//!
//! Data flow: request ─► path and query ─► row ─► handler ─► strategy, schema ─► store ─► bytes,
//! shared by all readers. Other forms (table, metadata only, another version) are made on demand.

mod aggregation;
mod backends;
mod chain;
mod discovery;
mod filter;
mod flow;
mod handlers;
mod messages;
mod metrics;
mod policy_status;
mod routes;
mod server;
mod service;
mod start;
mod version;

pub mod audit;
pub mod health;
pub mod serve;

pub use aggregation::NativeGroup;
pub use health::Readiness;
pub use server::{ApiServer, ApiServerConfig};
pub use service::{ApiService, PortService};
pub use start::StartError;
pub use version::VersionInfo;
