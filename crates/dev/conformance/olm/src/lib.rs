//! Conformance of OLM classic: replays recorded cases of the original and compares every field.
//!
//! The recorded cases (`answers/olm-classic.tar.xz`, not part of the project) list step by step the
//! commands of an administrator, and the objects and events once the original was idle. Each case
//! runs in a cluster of its own in this process: API server, workloads, simulated nodes and the
//! controllers of `lifecycle/classic`.
//!
//! ```text
//! catalog-*.yaml ─► servers ─► CatalogSource ┐
//! command.txt, input.yaml ─► command ────────┴► case_cluster ─► wait_condition ─► normalize ─┐
//! objects.json, events.json ─────────────────────────────────────────────────────────────────┴► compare ─► differences
//! ```
//!
//! Commands that only read are replayed for packages alone (`kubectl_get`): PackageManifests are
//! computed, and no object holds them.
//!
//! Every recorded field counts, unless the notes on the recordings call it random (`normalize`).
//! Expected differences are listed in `olm/differences.txt`, each with case, object, field and
//! citation ([`differences`]).

pub mod assertions;
pub mod case;
mod case_cluster;
pub mod compare;
pub mod differences;
mod inferred_catalog;
mod kubectl_get;
mod normalize;
pub mod report;
pub mod run;
mod servers;
mod wait_condition;

use std::path::PathBuf;

/// The folder with the lists of this crate.
pub fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
