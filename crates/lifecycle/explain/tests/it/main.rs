//! What is said about states of clusters.

#![expect(clippy::unwrap_used, reason = "the lint knows test functions only, not their helpers")]

mod recorded;
mod told;
