//! `OperatorGroups`: which namespaces the operators of a namespace serve.

mod controller;
mod decide;

pub(crate) use controller::register;
