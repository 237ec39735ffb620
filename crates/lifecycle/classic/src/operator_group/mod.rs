//! OperatorGroups: which namespaces the operators of a namespace serve.

pub(crate) mod apis;
pub(crate) mod modes;
pub(crate) mod targets;
