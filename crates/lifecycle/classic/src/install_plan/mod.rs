//! `InstallPlans`: objects to make, step by step.

pub(crate) mod by_hand;
pub(crate) mod controller;
pub(crate) mod decide;
pub(crate) mod definition;
pub(crate) mod execute;
mod labels;
