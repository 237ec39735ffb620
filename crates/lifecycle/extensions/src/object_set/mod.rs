//! ClusterObjectSets: their objects are applied in phases, probed, repaired, and torn down.
//!
//! ```text
//! spec, Secrets ─► objects ─► digests ─┬─► active: dry run, apply, probe ─► next phase ─► status
//!                                      └─► archived: phases in reverse ─► delete, release ─► status
//! ```
//!
//! All rules are in [`mainstay_objectsets`]; this module reads and writes the cluster. A killed process
//! resumes from the objects: each reconciliation reads all of them.
//!
//! What this does not do: compare objects of custom kinds by their schema. The API compares them, in a dry
//! run of the apply.

mod attempt;
mod controller;
mod rollout;
mod teardown;
mod watches;

pub(crate) use attempt::object_values;
pub(crate) use controller::{is_reported_archived, object_set_cache, register};
pub(crate) use watches::ObjectWatches;
