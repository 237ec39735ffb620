//! What people type and what they read.
//!
//! Arguments go through two levels: [`args`] is what was typed, [`config`] is what it means, checked
//! against the machine before anything is touched. [`report`] prints progress, [`exit`] names the
//! exit codes. [`catalog`] is about file-based catalogs, [`bundle`] about bundle folders, [`image`]
//! about images ([`machine`] is how they are got from here), [`resolve`] about what would be installed
//! from catalogs, [`why`] about what is in the way of what was asked for, [`uninstall`] about the way out; [`opm`] is the other command line, the one of upstream.
//! No business logic lives here.

pub mod args;
pub mod bundle;
pub mod catalog;
pub mod cluster;
pub mod config;
pub mod defaults;
mod examples;
pub mod exit;
pub mod image;
pub mod machine;
pub mod opm;
mod output;
pub mod report;
pub mod resolve;
mod serving;
pub mod uninstall;
pub mod upstream;
mod validation;
pub mod why;
