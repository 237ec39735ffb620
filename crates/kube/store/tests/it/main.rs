//! Integration tests of the store's public API.
#![expect(
    clippy::unwrap_used,
    reason = "in tests, of which clippy knows only the functions marked so"
)]

mod batch;
mod contract;
mod folder;
mod kill;
mod replay;
mod support;
mod views;
