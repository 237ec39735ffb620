//! Explanations of cluster states.

#![expect(clippy::unwrap_used, reason = "the lint knows test functions only, not their helpers")]

mod catalogs;
mod events;
mod explanations;
mod olm_v1;
mod recorded;
