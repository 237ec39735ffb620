//! The binary as its users meet it: started as a process, asked over TLS.

mod catalogs;
mod certified;
mod crash;
mod harness;
mod kube_rs;
mod kubectl;
mod start;
