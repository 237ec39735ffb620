//! `OperatorGroups`: which namespaces the operators of a namespace serve.

pub(crate) mod apis;
pub(crate) mod controller;
pub(crate) mod decide;
pub(crate) mod modes;
pub(crate) mod roles;
pub(crate) mod targets;
