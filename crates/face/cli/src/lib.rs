//! The command line `mainstay`: its arguments, and their checked configuration.
//!
//! Arguments have two levels: [`args`] holds the typed words, [`config`] their meaning, checked against
//! the machine before a command changes anything. [`upstream`] has the flags of upstream's programs,
//! [`defaults`] the catalogs of a new cluster.
//!
//! The commands themselves are in `mainstay-content` and `mainstay-operators`, what they share in
//! `mainstay-command`. The command line of upstream, `opm`, is a crate of its own.

pub mod args;
pub mod config;
pub mod defaults;
mod examples;
mod serving;
pub mod upstream;
