//! `OperatorGroups`: which namespaces the operators of a namespace serve.

pub(crate) mod apis;
mod controller;
mod decide;
pub(crate) mod modes;
pub(crate) mod roles;
pub(crate) mod targets;

pub(crate) use controller::register;
