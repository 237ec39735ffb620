//! What is said about states of clusters.

#![expect(clippy::unwrap_used, reason = "the lint knows test functions only, not their helpers")]

mod events;
mod explanations;
mod recorded;
