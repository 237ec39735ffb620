//! The three patches, told by what goes in and what comes out.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod apply;
mod json;
mod managed;
mod merge;
mod strategic;
