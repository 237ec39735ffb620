//! Subscriptions: the controller that resolves them, creates their InstallPlans and reports their
//! status.

mod catalogs;
pub(crate) mod conditions;
pub(crate) mod controller;
mod create_plan;
mod debounce;
mod deprecation;
mod input;
pub(crate) mod plan;
mod report;
pub(crate) mod resolution;
pub(crate) mod status;
mod succession;
pub(crate) mod unpack;
mod upgrades;
mod watches;

pub(crate) use watches::register;
