//! Integration tests of the binary: started as a process, and used over TLS.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests stop at the first surprise, and read where the test data is"
)]

mod by_image;
mod catalogs;
mod certified;
mod cluster_catalogs;
mod controller_pods;
mod crash;
mod documented;
mod harness;
mod helm;
mod images;
mod kube_controller;
mod kube_rs;
mod kubectl;
mod manager;
mod packages;
mod resolve;
mod run;
mod run_packages;
mod scripts;
mod serve;
mod shared_machine;
mod start;
mod uninstall;
mod why;
