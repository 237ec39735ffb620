//! Conformance of OLM v1: replays the recorded behaviour of operator-controller and catalogd.
//!
//! ```text
//! answers/NAME.tar.xz ─► recorded cases ─┐
//!                                        ├─ compare ─► differences ── lists of them ─► passed or failed
//! our crates ─► our results ─────────────┘
//! ```
//!
//! Each module replays one archive, or one part of it. The recordings, which are not part of the project,
//! are of the original programs on a real Kubernetes API.

pub mod cases;
pub mod catalog_http;
pub mod crd_safety;
pub mod differences;

use std::path::PathBuf;

/// The folder with the lists of this crate.
pub fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The result of a case.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// The area and the name of the case: `crd-safety/p0001`.
    pub name: String,
    /// What the case is about.
    pub title: String,
    /// The differences; empty if there are none.
    pub differences: Vec<String>,
}
