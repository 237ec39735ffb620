//! The embedded API against the recordings of a real one.

/// Held by tests that run many clusters: beside each other they would wait for what a busy machine brings
/// late.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

mod bundles;
mod classic;
mod faults;
mod opm;
mod recordings;
mod walks;
