//! Integration tests of the resolver.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests"
)]

mod answers;
mod data;
mod dsl;
mod scenes;
mod universe;
