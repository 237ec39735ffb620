//! The decision log: one line for each decision, when its result has been written.
//!
//! A line names the kind of the object, the object, the decision and its reason. A reconciliation that
//! changes nothing logs nothing.

use std::fmt::Display;

/// The `tracing` target of these lines, for filters.
pub const TARGET: &str = "mainstay::decision";

/// Logs a decision about an object, after the write that carries it out.
pub fn log(kind: &str, object: impl Display, decision: impl Display, reason: &str) {
    tracing::info!(target: "mainstay::decision", kind, %object, %decision, why = reason);
}
