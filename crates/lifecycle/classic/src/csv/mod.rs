//! ClusterServiceVersions: the controller that installs operators and reports their phase.

mod api_roles;
mod chain;
pub(crate) mod controller;
mod debounce;
pub(crate) mod deployment;
mod finalizer;
pub(crate) mod health;
pub(crate) mod observe;
pub(crate) mod phase;
pub(crate) mod rbac;
pub(crate) mod requirements;
#[cfg(test)]
mod scenario;
pub(crate) mod serving;
pub(crate) mod status;
mod upgradeable;
mod watches;

pub(crate) use watches::register;
