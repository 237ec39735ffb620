//! Walks of published and of generated packages.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod bundles;
mod walks;
