//! Copies of versions: who works in a namespace sees by them which operators of other namespaces
//! watch it.
//!
//! Each namespace that a version's group targets has a copy of it, under the same name, with the
//! label `olm.copiedFrom`, without what is nobody's business there, and with a status that says so.
//!
//! ```text
//! version (its facts, with hashes of what its copies say) ─┐
//! namespaces ──────────────────────────────────────────────┼─► decide ─► tasks ─► a few writes at a time
//! copies (uid and two hashes each) ────────────────────────┘
//! OLMConfig ─► whether copies are wanted of what watches all namespaces
//! ```
//!
//! * A copy is as large as its version, and there are many, so none is kept: of each the cache has
//!   its uid and two hashes, one of what its owner may write and one of its status. Whether
//!   anything is to be written is told without reading an object, and where nothing is, nothing is
//!   read: a restart costs one list.
//! * What is to be written is made once for all copies of a version.
//! * Phases that pass in a moment are not told to hundreds of namespaces ([`decide::Passing`]).
//!
//! Where this differs from the original: a copy whose mark was taken off is marked again; there it
//! becomes a version of its own. Copies in namespaces that are no targets any more go whatever the
//! group became. Nothing waits for a resync.

mod config;
mod controller;
mod decide;
mod watches;

pub(crate) use watches::register;
