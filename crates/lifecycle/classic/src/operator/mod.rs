//! Operators: the objects of kind `Operator`, which list all components of an operator over all
//! namespaces.
//!
//! The label `operators.coreos.com/<package>.<namespace>` makes an object a component. First a
//! Subscription gets it, then its CSV and InstallPlan, then the objects of that CSV and the
//! CustomResourceDefinitions that it provides. The Operator of that name lists all components with
//! their conditions. It exists as long as there are any.

mod components;
mod controller;
mod decide;

pub(crate) use controller::register;
