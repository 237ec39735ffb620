//! The Common Expression Language as Kubernetes speaks it.
//!
//! ```text
//! text ─ syntax ─► Parsed ─ check ─► Checked ─ eval ─► Program ─ with values ─► Value, cost
//!                                       └───── cost ─► estimate, with the sizes of a schema
//! ```
//!
//! * [`syntax`]: lexer, parser, macros, and back to text;
//! * [`types`], [`check`]: types and the checker, with an environment ([`Env`]) of variables,
//!   functions and macros, which [`library`] has by the set;
//! * [`value`], [`eval`]: values that borrow from the objects they stand for, and programs;
//! * [`cost`]: what an expression may cost at most, and what it has cost;
//! * [`kubernetes`]: schemas as types and values, Kubernetes' environment and limits.
//!
//! Rules, names and texts are those of cel-go 0.26 and of Kubernetes 1.35, which are API: rules of
//! CRDs are accepted and refused with the same words. Trees are limited in depth, so every walk
//! may recurse.

pub mod check;
pub mod cost;
mod env;
pub mod eval;
pub mod kubernetes;
pub mod library;
mod source;
pub mod syntax;
pub mod types;
pub mod value;

pub use env::{Env, EnvOptions};
pub use eval::{Activation, CostBudget, Program};
pub use source::{CompileIssue, ExpressionSource, Issues, SourceLocation};
