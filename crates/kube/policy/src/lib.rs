//! Validating admission policies: the expressions that they consist of, and their decisions.
//!
//! A policy's expressions are compiled with the variables that admission declares ([`Scope`]),
//! evaluated within the budgets of the original ([`evaluate`]), and combined into a decision
//! ([`judge`]). What is suspicious about a policy, by the schemas of the kinds that it names, is
//! found by [`hints`]. Nothing here reads the store or knows a request: admission hands in both.

mod compile;
mod declarations;
pub mod evaluate;
pub mod hints;
pub mod judge;
pub mod matching;
mod types;

pub use compile::{Broken, Gives, Ready};
pub use declarations::Scope;
