//! `ValidatingAdmissionPolicy`: CEL expressions, their evaluation and the result of a policy.
//!
//! * [`ExpressionScope`] declares the variables of admission and compiles expressions.
//! * [`evaluate`] evaluates them within the cost budgets of Kubernetes.
//! * [`validator`] combines them into the result of a policy.
//! * [`matching`] decides which requests a policy, a binding or a webhook applies to.
//! * [`type_checking`] finds expressions that do not fit the schemas of the kinds in the policy.
//!
//! This crate reads no store and receives no request: admission passes both as data.

mod compile;
mod declarations;
pub mod evaluate;
pub mod matching;
pub mod type_checking;
mod types;
pub mod validator;

pub use compile::{CompileError, PolicyExpression, ReturnType};
pub use declarations::ExpressionScope;
