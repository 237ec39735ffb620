//! Whether clients can tell the embedded API from a real Kubernetes.
//!
//! Scenarios are data: API calls and kubectl invocations in `scenarios/<area>/<file>.yaml`. Each runs
//! against a real Kubernetes once, whose answers are kept in `recorded/<area>/<file>.json`, and
//! against the embedded API whenever somebody asks. Everything is compared that is not masked, and
//! what is masked is one list ([`mask`]).
//!
//! ```text
//! scenarios ─► run ─► server (embedded, or by kubeconfig) ─► answers ─► mask ─► steps ─┐
//!                └► kubectl ─► proxy ─► server                                          ├► compare ─► score
//! recorded ─► steps of the real server ─────────────────────────────────────────────────┘
//! ```
//!
//! Why recordings and not only two servers side by side: the embedded side must be held on machines
//! without Go. For the same reason the requests that kubectl sent are part of a recording: without
//! a kubectl of the recorded minor version they are sent again, and only its text goes unchecked.
//!
//! What this does not do: time anything, or test what is not an answer to a client (memory,
//! durability, the lifecycle controllers).

// In a release nothing is seeded.
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
mod place;
mod proxy;
pub mod recording;
mod replay;
pub mod run;
pub mod scenario;
pub mod score;
pub mod server;
mod vars;
