//! A Kubernetes API server as a library: one set of handlers for every kind.
//!
//! A built-in kind is a row of a generated table, a custom resource definition makes the same sort
//! of row at run time ([`mainstay_kinds::KindRow`]), and what is special about a kind is a small [`mainstay_kinds::Strategy`].
//! Handlers, discovery, printing and documents look at rows only.
//!
//! The server is a tower service first ([`ApiService`]): controllers and tests of the same process
//! call it without a socket. A TLS port is the same service behind authentication.
//!
//! Data flow: request ─► path and query ─► row ─► handler ─► strategy, schema ─► store ─► bytes,
//! shared by all readers; other forms (table, metadata only, another version) are made on demand.

mod aggregation;
mod discovery;
mod filter;
mod handlers;
mod limits;
mod metrics;
mod policy_status;
mod server;
mod service;
mod version;

pub mod audit;
pub mod health;
pub mod serve;

pub use aggregation::NativeGroup;
pub use health::Readiness;
pub use server::{ApiServer, Config, StartError};
pub use service::{ApiService, PortService};
pub use version::VersionInfo;
