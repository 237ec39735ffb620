//! Tests of client and workload controllers on the embedded API.

#![expect(clippy::unwrap_used, reason = "the lint knows test functions only, not their helpers")]

mod client;
mod collector;
mod election;
mod helpers;
mod namespaces;
mod quotas;
mod rollout;
mod running;
