//! `opm` as scripts meet it: arguments in, text and exit code out; and beside it the commands of
//! `mainstay` that work on the same catalogs and bundles.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod acceptance;
mod fbc;
mod help;
mod opm_folder;
mod sdk;
mod write_errors;
