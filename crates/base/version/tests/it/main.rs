//! Tests of versions, version sets, ranges and constraints.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod display;
mod laws;
mod strategies;
