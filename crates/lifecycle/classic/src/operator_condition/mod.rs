//! `OperatorConditions`: what operators say about themselves, and whether they may be replaced.
//!
//! Each version that is no copy has one, with its name; a role of the same name lets the accounts of
//! the version write it. What an operator says in `spec.conditions` is taken over into the status
//! with the generation it was said at. What an administrator says in `spec.overrides` goes first.

pub(crate) mod controller;
pub(crate) mod decide;
