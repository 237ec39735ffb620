//! The observable behaviour of served catalogs for clients.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod catalogs;
mod documents;
mod client;
mod grpc;
mod http;
mod https;
mod reload;
mod server;
