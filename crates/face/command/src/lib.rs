//! What every command line needs: exit codes, output, the environment, and the cluster that it works on.
//!
//! [`io`] is the environment of a command and how it ends, with the codes of [`exit`]. [`text`] prints
//! answers, [`report`] progress; [`output`] remembers errors of standard output. [`environment`] reads
//! variables, [`machine`] the registry settings of this machine. [`cluster`] is the handle through which
//! commands use a remote cluster, [`profile`] the standard namespaces of a cluster.

pub mod cluster;
pub mod environment;
pub mod exit;
pub mod io;
pub mod machine;
pub mod output;
pub mod profile;
pub mod report;
pub mod text;
