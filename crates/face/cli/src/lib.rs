//! What people type and what they read.
//!
//! Arguments go through two levels: [`args`] is what was typed, [`config`] is what it means, checked
//! against the machine before anything is touched. [`report`] prints progress, [`exit`] names the
//! exit codes. [`catalog`] is about file-based catalogs, [`bundle`] about bundle folders, [`resolve`]
//! about what would be installed from catalogs; [`machine`] is how images are got from here; [`opm`] is the other command line, the one of upstream.
//! No business logic lives here.

pub mod args;
pub mod bundle;
pub mod catalog;
pub mod config;
pub mod exit;
pub mod machine;
pub mod opm;
mod outlet;
pub mod report;
pub mod resolve;
