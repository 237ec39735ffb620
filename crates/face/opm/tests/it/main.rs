//! Tests of `opm` as scripts use it, by arguments, output and exit code, together with the commands of
//! `mainstay` for the same catalogs and bundles.

#![expect(clippy::unwrap_used, reason = "test helpers may panic")]

mod acceptance;
mod fbc;
mod opm_folder;
mod sdk;
mod write_errors;
