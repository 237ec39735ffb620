//! The command line `mainstay`: arguments, checked configuration, progress, output and exit codes.
//!
//! Arguments have two levels: [`args`] holds the typed words, [`config`] their meaning, checked against
//! the machine before a command changes anything. [`report`] prints progress, [`output`] remembers
//! errors of standard output, [`exit`] names the exit codes. [`catalog`] works on file-based catalogs,
//! [`bundle`] on bundle folders, [`image`] on images ([`machine`] reads the registry settings of this
//! machine). [`crd`] compares CustomResourceDefinitions, [`resolve`] shows what would be installed, [`why`] explains what prevents an installation,
//! [`uninstall`] removes an operator. [`extension`] works with ClusterExtensions of OLM v1.
//!
//! No business logic lives here. The command line of upstream, `opm`, is a crate of its own.

pub mod args;
pub mod bundle;
pub mod catalog;
pub mod cluster;
pub mod config;
pub mod crd;
pub mod defaults;
mod examples;
pub mod exit;
pub mod extension;
pub mod image;
pub mod machine;
pub mod output;
pub mod report;
pub mod resolve;
mod serving;
pub mod uninstall;
pub mod upstream;
mod validation;
pub mod why;
