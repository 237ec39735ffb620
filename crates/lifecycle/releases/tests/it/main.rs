//! Integration tests of the crate for Helm releases.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod helm_fixture;
mod recorded;
mod recorded_history;
mod recorded_releases;
mod secrets;
