//! Operators: everything that belongs to an operator, over namespaces.
//!
//! A label `operators.coreos.com/<package>.<namespace>` says of an object that it is a part of an
//! operator. A Subscription carries it first, then the version and the plan that it names, then
//! what that version owns and the definitions that it provides. The object `Operator` of that name
//! lists all parts with their conditions; as long as there are any, it is there.

mod components;
mod controller;
mod decide;

pub(crate) use controller::register;
