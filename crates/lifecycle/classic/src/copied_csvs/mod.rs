//! Copied CSVs: copies of a ClusterServiceVersion that show users of a namespace which operators of
//! other namespaces watch it.
//!
//! Each target namespace of a CSV's OperatorGroup has a copied CSV of the same name. It has the
//! label `olm.copiedFrom` and a status that names the original, and lacks the annotations and
//! labels that only concern the original.
//!
//! ```text
//! CSV (its fields, with hashes of the content of its copies) ─┐
//! namespaces ─────────────────────────────────────────────────┼─► decide ─► actions ─► a few writes at a time
//! copied CSVs (uid and two hashes each) ──────────────────────┘
//! OLMConfig ─► whether global operators have copied CSVs
//! ```
//!
//! * A copied CSV is as large as its original, and there are many. So the cache keeps only the uid
//!   and two hashes of each: one of labels, annotations and spec, one of the status. They show
//!   without a read whether a copied CSV must be written, so a restart costs one list request.
//! * The request bodies are serialized once for all copied CSVs of an original.
//! * Transient phases are not written to hundreds of namespaces ([`decide::StatusDebounce`]).
//!
//! Differences from upstream: a copied CSV that lost its label gets it back; upstream it becomes a
//! CSV of its own. Copied CSVs in namespaces that are no longer targets are always
//! deleted, whatever the OperatorGroup became. No change waits for a resync.

mod config;
mod controller;
mod decide;
mod watches;

pub(crate) use watches::register;
