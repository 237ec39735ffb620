//! CRD upgrade safety: replays the recorded pairs of CRDs (`answers/crd-safety.tar.xz`).
//!
//! ```text
//! pairs.jsonl ─► RecordedPair ─┬─ old, new, or two files of bundles-249.tar.xz ─► mainstay-crdsafety ─┐
//!                              └─ preflight, findings, configError, error ───────► differences ◄──────┘
//! ```
//!
//! Every recorded field is compared. Three things vary from run to run upstream and are made equal on
//! both sides: blanks, addresses of memory, and the order of lines and findings.

mod compare;
mod pair;

pub use pair::{RecordedPair, read_pairs};

use crate::CaseResult;
use std::path::Path;

/// The area of these cases in `differences.txt`.
pub const AREA: &str = "crd-safety";

/// Compares all pairs. `bundles` is the folder of the published bundles, for the real pairs.
///
/// # Errors
/// A pair of published CRDs cannot be read.
pub fn run(pairs: &[RecordedPair], bundles: &Path) -> anyhow::Result<Vec<CaseResult>> {
    pairs.iter().map(|pair| compare::replay(pair, bundles)).collect()
}
