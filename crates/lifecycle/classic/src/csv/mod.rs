//! `ClusterServiceVersions`: from a description to a running operator.

mod chain;
pub(crate) mod controller;
pub(crate) mod deployment;
pub(crate) mod health;
mod hold;
pub(crate) mod observe;
pub(crate) mod phase;
pub(crate) mod rbac;
pub(crate) mod reach;
pub(crate) mod requirements;
pub(crate) mod serving;
#[cfg(test)]
mod stage;
pub(crate) mod status;
mod upgradeable;
mod watches;

pub(crate) use watches::register;
