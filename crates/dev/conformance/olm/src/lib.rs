//! Whether administrators can tell our OLM classic from the real one.
//!
//! The recorded cases (`answers/olm-classic.tar.xz`, not part of the project) say step by step what
//! an administrator did and which objects and events there were when the original had come to rest.
//! Each case runs in a cluster of its own in this process: API server, workloads, simulated nodes
//! and the controllers of `lifecycle/classic`.
//!
//! ```text
//! catalog-*.yaml ─► registry ─► CatalogSource ┐
//! command.txt, input.yaml ─► command ─────────┴► cluster ─► until, quiet ─► normal ─┐
//! objects.json, events.json ────────────────────────────────────────────────────────┴► compare ─► listed
//! ```
//!
//! Of commands that only read, those about packages are asked again (`shown`): what they print is
//! no object.
//!
//! Every recorded field counts, unless the notes on the recordings call it random (`normal`).
//! Differences that are wanted stand in `olm/differences.txt`, each with its case, object and field
//! and with a citation ([`listed`]).

pub mod assertions;
pub mod case;
mod command;
pub mod compare;
pub mod listed;
mod normal;
mod place;
pub mod report;
pub mod run;
mod servers;
mod shown;
mod unrecorded;
mod until;

use std::path::PathBuf;

/// The folder with the lists of this crate.
pub fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
