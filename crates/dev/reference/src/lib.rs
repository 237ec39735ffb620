//! Reference resolver: a second, simple implementation of the resolver's rules, to test the fast
//! one against.
//!
//! * [`rules`] states the variables and constraints of an input. It loops over all entries, has no
//!   indexes, and decodes properties again from their JSON.
//! * [`check`] lists the errors of an outcome, however it was found.
//! * [`solve`] finds the answer by exhaustive search in the documented order, without propagation;
//!   for small inputs.
//!
//! It shares with the resolver the input and the output ([`ResolutionInput`], [`Resolution`], and the entries of
//! a snapshot as plain data), versions, ranges and CEL, but no algorithm.
//!
//! What this crate does not do: resolve fast, or explain failures.

mod answer;
mod candidates;
mod channel;
mod check;
mod entries;
pub mod hostile;
mod json;
mod properties;
mod requirement;
mod rules;
mod search;
mod solve;

pub use check::check;
pub use rules::{ConstraintRule, InputRules, ReferenceConstraint, UnresolvableNamespace, rules};
pub use search::TooLong;
pub use solve::{ReferenceResolution, Stopped, solve};

#[cfg(doc)]
use mainstay_resolver::{Resolution, ResolutionInput};
