//! Patches, managed fields and server-side apply, by inputs and results.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod apply;
mod json;
mod managed;
mod merge;
mod strategic;
