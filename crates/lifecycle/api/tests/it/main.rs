//! Integration tests of the API.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod crds;
mod olm_v1;
mod views;
