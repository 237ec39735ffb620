//! Integration tests of the server: HTTP requests and responses, without a socket.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "the lints know test functions only, and the harness is helpers"
)]

mod access;
mod addresses;
mod admission;
mod aggregated;
mod aggregation;
mod apply;
mod crds;
mod crud;
mod custom;
mod deletes;
mod discovery;
mod evictions;
mod harness;
mod hostile;
mod limits;
mod lists;
mod long_lists;
mod messages;
mod patches;
mod policies;
mod port;
mod quotas;
mod replay;
mod rules;
mod services;
mod sizes;
mod streams;
mod subresources;
mod watches;
mod webhooks;
