//! Tests of CEL: parser, checker, evaluator, costs and libraries.
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
