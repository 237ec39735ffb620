//! Replay of the recorded behaviour of OLM v1.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod cases;
mod catalog_http;
mod crd_safety;
