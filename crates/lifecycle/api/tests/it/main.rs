//! Integration tests of the API.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod crds;
mod olm_v1;
mod olm_v1_rules;
mod olm_v1_validation;
mod views;
