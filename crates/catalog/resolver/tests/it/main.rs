//! Integration tests of the resolver.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod answers;
mod dsl;
mod explanations;
mod extension;
mod folders;
mod hostile;
mod laws;
mod laws_inputs;
mod rules;
mod scenarios;

mod updates;
