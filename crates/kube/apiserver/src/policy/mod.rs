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
//! ([`Scope`]); what is suspicious about it, by the schemas of the kinds that it names, is told in
//! its status (`hints`).
//!
//! `MutatingAdmissionPolicy` is not served: Kubernetes 1.35 does not by default.

mod compile;
mod declarations;
mod dispatch;
pub(crate) mod evaluate;
mod hints;
mod index;
pub(crate) mod judge;
pub(crate) mod matching;
mod params;
mod permissions;
pub(crate) mod request;
mod status;
mod types;

pub(crate) use compile::{Broken, Gives};
pub(crate) use declarations::Scope;
pub(crate) use dispatch::ValidatingAdmissionPolicy;
pub(crate) use index::Policies;
pub(crate) use permissions::ParameterPermissions;
pub(crate) use status::keep as keep_status;
