//! `ValidatingAdmissionPolicy`: admission rules as CEL expressions.
//!
//! ```text
//! policies, bindings (store) ─► index ─► PolicyHooks, compiled once for each generation
//!                                          │
//! request ─► matching ─► params ─► validator: conditions, validations, messages, audit annotations
//!                                          │ evaluate: variables, budgets
//! denial, warnings ◄───────────────────────┘
//! ```
//!
//! The validation of a policy uses the same declarations and the same compiler
//! ([`mainstay_policy::ExpressionScope`]). The status of a policy has warnings of type checking
//! ([`mainstay_policy::type_checking`]).
//!
//! `MutatingAdmissionPolicy` is not served, as by default in Kubernetes 1.35.

mod dispatch;
mod index;
mod params;
mod permissions;
pub(crate) mod request;

pub(crate) use dispatch::ValidatingAdmissionPolicy;
pub use index::POLICIES;
pub(crate) use index::Policies;
pub(crate) use permissions::ParameterPermissions;
