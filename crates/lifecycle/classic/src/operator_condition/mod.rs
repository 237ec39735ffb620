//! `OperatorConditions`: what operators say about themselves.
//!
//! Each version that is no copy has one, with its name; a role of the same name lets the accounts of
//! the version write it. What an operator says in `spec.conditions` is taken over into the status
//! with the generation it was said at. Whether a version may be replaced is decided with the next
//! version (`csv::upgradeable`).

mod controller;
mod decide;

pub(crate) use controller::register;
