//! Conformance of the embedded API: runs scenarios, and compares the responses with those of a real
//! Kubernetes.
//!
//! Scenarios are data: API calls and kubectl commands in `scenarios/<area>/<file>.yaml`. Each runs
//! once against a real Kubernetes, whose responses are stored in `recorded/<area>/<file>.json`, and
//! against the embedded API in every test run. Everything is compared except what the list of masks
//! excludes ([`mask`]).
//!
//! ```text
//! scenarios ─► run ─► server (embedded, or by kubeconfig) ─► responses ─► mask ─► steps ─┐
//!                └► kubectl ─► proxy ─► server                                           ├► compare ─► score
//! recorded ─► steps of the real server ──────────────────────────────────────────────────┘
//! ```
//!
//! Recordings make the embedded API testable on machines without Go, where no real Kubernetes can
//! run. For the same reason recordings contain the requests of kubectl: without a kubectl of the
//! recorded minor version these are sent again, and only its output stays unchecked.
//!
//! Not covered: timing, and anything that is no response to a client (memory, durability, the
//! lifecycle controllers).

// Release builds seed no faults.
use mainstay_fault as _;

pub mod backend;
pub mod check;
pub mod compare;
pub mod differences;
mod exchange;
pub mod faults;
pub mod kubectl;
pub mod mask;
mod parse;
mod proxy;
pub mod recording;
mod references;
mod replay;
pub mod run;
pub mod scenario;
pub mod score;
pub mod server;
mod vars;
