//! Integration tests of the resolver.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod answers;
mod dsl;
mod scenarios;
mod scenes;
