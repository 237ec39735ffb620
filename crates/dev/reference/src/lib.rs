//! Resolution written a second time, straight from its rules and without any haste, to hold the quick one to.
//!
//! * [`rules`] lists what may be in the answer of a world and every constraint on it: loops over all
//!   entries, no indexes, properties read again from their JSON.
//! * [`check`] tells everything that is wrong with an outcome, however it was found.
//! * [`solve`] finds the answer by trying one choice after the other in the documented order, without
//!   concluding anything; for small worlds.
//!
//! It shares with the resolver what goes in and comes out ([`World`], [`Outcome`], and the entries of a
//! snapshot as plain data), versions, ranges, and the expression language; no algorithm.
//!
//! What this does not do: hurry, or explain.

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
pub use rules::{Broken, Constraint, Rule, Rules, rules};
pub use search::TooLong;
pub use solve::{Answer, Stopped, solve};

#[cfg(doc)]
use mainstay_resolver::{Outcome, World};
