//! Recorded scenarios of an administrator: replays them and compares what becomes of each step.
//!
//! The cases (`answers/olm-v1.tar.xz`, not part of the project) list step by step the commands of an
//! administrator, the images that a registry serves, and the objects, outputs and responses of the
//! catalog server once the original was idle. Each case runs against a system of its own: API server,
//! simulated nodes and the controllers of `lifecycle/extensions`. Or all run one after the other on an
//! existing cluster, with the controllers in this process (`remote`).
//!
//! ```text
//! images.yaml ─► images ─► registry ─► network ─► controllers ┐
//! command, input.yaml ─► kubectl (harness) ───────────────────┴► replay ─► normalize ─┐
//! objects.json, output.txt, http.json ────────────────────────────────────────────────┴► compare ─► differences
//! ```
//!
//! Everything that was recorded counts, unless a rule leaves it out: events and layer digests
//! (`normalize`), and what follows from the original's webhook (`webhook`). Single differences are
//! listed in `cases-differences.txt` ([`differences`]), steps in which ours is meant to do something else in
//! `cases-facts.txt` ([`facts`]).
//!
//! What this does not do: Helm charts as bundles.

pub mod case;
pub mod compare;
mod condition;
mod controllers;
pub mod differences;
pub mod facts;
mod images;
mod network;
mod normalize;
mod placeholders;
mod registry;
mod remote;
mod replay;
pub mod report;
pub mod run;
mod secrets;
mod system;
mod unready_pods;
mod webhook;

pub use system::CaseClusters;

use regex::Regex;
use std::path::PathBuf;

/// The folder with the lists of this crate.
pub fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Compiles a constant pattern.
fn pattern(text: &str) -> Regex {
    #[expect(clippy::expect_used, reason = "patterns are constants, and tests use each")]
    Regex::new(text).expect("a good pattern")
}
