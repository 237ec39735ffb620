//! Seeded faults: a mutation test of the conformance tests. Faults are seeded one by one, and a
//! scenario or a test must detect each.
//!
//! ```text
//! faults.yaml ─► list ─┬─► scenarios: the embedded API with a fault, compared with the recordings ─┐
//!                      └─► suites: test programs that are started with a fault ────────────────────┴─► report
//! ```
//!
//! The code asks `mainstay_fault::is_on` for the name of a fault where it would occur. A scenario
//! or test detects a fault if it passes without it, and fails with it twice. Scenarios detect
//! faults in the behaviour of Kubernetes; tests detect faults in operators and their content.

pub mod list;
#[cfg(debug_assertions)]
pub mod processes;
#[cfg(debug_assertions)]
pub mod report;
#[cfg(debug_assertions)]
pub mod scenarios;
#[cfg(debug_assertions)]
pub mod suites;
