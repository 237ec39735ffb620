//! Integration tests of the crate for ClusterObjectSets.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod cases;
mod collisions;
mod recorded_conditions;
mod recorded_sets;
