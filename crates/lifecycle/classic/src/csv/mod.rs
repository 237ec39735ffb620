//! `ClusterServiceVersions`: from a description to a running operator.

pub(crate) mod controller;
pub(crate) mod deployment;
pub(crate) mod health;
mod hold;
pub(crate) mod observe;
pub(crate) mod phase;
pub(crate) mod reach;
pub(crate) mod requirements;
pub(crate) mod serving;
pub(crate) mod status;
