//! The rules of the language, told by expressions and what comes of them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod branches;
mod check;
mod cost;
mod environment;
mod eval;
mod libraries;
mod library;
mod properties;
mod recorded;
mod spec;
mod syntax;
mod tagged;
mod type_text;
mod values;
