//! What objects take of a namespace's quotas, and what limits of a namespace ask of them.
//!
//! Functions of plain objects, for whoever admits writes and for whoever keeps the sums:
//!
//! * [`pod`]: what a Pod requests, and how much it may take at most.
//! * [`Counted`]: which kinds of objects use which resources, and how much.
//! * [`charge`]: whether a write fits into quotas, and what is used then; [`total`]: what is used.
//! * [`limits`]: defaults and bounds by `LimitRanges`.
//!
//! The rules are those of Kubernetes' quota evaluators and of its plugins `ResourceQuota` and
//! `LimitRanger`. What this does not do: devices of resource claims are not counted.

mod amounts;
mod charge;
mod scope;
mod usage;

pub mod limits;
pub mod pod;

pub use amounts::Amounts;
pub use charge::{QuotaError, Write, charge, is_current, total};
pub use usage::Counted;
