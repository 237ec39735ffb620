//! The Common Expression Language (CEL) with Kubernetes' libraries, types and limits.
//!
//! ```text
//! text ─ syntax ─► Parsed ─ check ─► Checked ─ eval ─► Program ─ with values ─► Value, cost
//!                                       └───── cost ─► estimate, with the sizes of a schema
//! ```
//!
//! * [`syntax`]: lexer, parser, macros, and unparsing;
//! * [`types`], [`check`]: types and the type checker, with an environment ([`Env`]) of variables,
//!   functions and macros from the sets in [`library`];
//! * [`value`], [`eval`]: values, which borrow from objects, and programs;
//! * [`cost`]: the estimated and the actual cost of an expression;
//! * [`kubernetes`]: schemas as types and values, Kubernetes' environment and limits.
//!
//! Rules, names and messages are those of cel-go 0.26 and Kubernetes 1.35. They are API: CRDs are
//! accepted, and rejected with the same messages. The depth of trees is limited, so every function
//! may recurse over them.

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
