//! Admission policies: rules that are expressions.
//!
//! ```text
//! policies, bindings (store) ─► index ─► Hooks, compiled once for each generation
//!                                          │
//! request ─► matching ─► params ─► judge: conditions, validations, messages, notes
//!                                          │ evaluate: variables, budgets
//! refusal, warnings ◄──────────────────────┘
//! ```
//!
//! A policy that is written is judged with the same declarations and the same compiler
//! ([`mainstay_policy::Scope`]); what is suspicious about it, by the schemas of the kinds that it names, is told in
//! its status (`mainstay_policy::hints`).
//!
//! `MutatingAdmissionPolicy` is not served: Kubernetes 1.35 does not by default.

mod dispatch;
mod index;
mod params;
mod permissions;
pub(crate) mod request;

pub(crate) use dispatch::ValidatingAdmissionPolicy;
pub use index::POLICIES;
pub(crate) use index::Policies;
pub(crate) use permissions::ParameterPermissions;
