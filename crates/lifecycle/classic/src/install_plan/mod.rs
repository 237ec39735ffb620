//! InstallPlans: the controller that runs their steps.

mod controller;
pub(crate) mod crd;
pub(crate) mod decide;
pub(crate) mod execute;
mod labels;
pub(crate) mod user_authored;

pub(crate) use controller::register;
