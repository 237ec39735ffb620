//! Commands about operators in a cluster: [`extension`] works with ClusterExtensions of OLM v1,
//! [`uninstall`] removes an operator of either generation of OLM, [`why`] explains what prevents an
//! installation.

mod examples;
pub mod extension;
pub mod uninstall;
pub mod why;
