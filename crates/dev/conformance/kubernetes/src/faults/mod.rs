//! The proof of the harness: faults that are seeded one by one, each of which a scenario or a test must
//! find.
//!
//! ```text
//! faults.yaml ─► list ─┬─► scenarios: the embedded API with a fault, held against the recordings ─┐
//!                      └─► suites: test programs that are started with a fault ──────────────────┴─► report
//! ```
//!
//! Where a fault is in the code is where `mainstay_fault::is_on` is asked for its name. It is found by what
//! passes without it and fails with it, twice. What is in Kubernetes is hunted with scenarios, what is in
//! operators and their content with tests of the crates it is in.

pub mod list;
#[cfg(debug_assertions)]
pub mod processes;
#[cfg(debug_assertions)]
pub mod report;
#[cfg(debug_assertions)]
pub mod scenarios;
#[cfg(debug_assertions)]
pub mod suites;
