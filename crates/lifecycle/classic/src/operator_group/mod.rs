//! OperatorGroups: the controller that selects the target namespaces of the operators in a
//! namespace.

mod controller;
mod decide;

pub(crate) use controller::register;
