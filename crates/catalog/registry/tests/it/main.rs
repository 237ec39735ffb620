//! The observable behaviour of served catalogs for clients.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod catalogs;
mod client;
mod documents;
mod grpc;
mod http;
mod https;
mod reload;
mod server;
