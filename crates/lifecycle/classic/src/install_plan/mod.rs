//! `InstallPlans`: objects to make, step by step.

pub(crate) mod by_hand;
mod controller;
pub(crate) mod decide;
pub(crate) mod definition;
pub(crate) mod execute;
mod labels;

pub(crate) use controller::register;
