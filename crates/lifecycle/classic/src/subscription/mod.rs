//! Subscriptions: what is wanted, what was found, and the plans in between.

pub(crate) mod conditions;
pub(crate) mod controller;
mod course;
mod debounce;
mod deprecation;
mod input;
mod making;
pub(crate) mod plan;
pub(crate) mod resolution;
pub(crate) mod standing;
mod succession;
mod tell;
pub(crate) mod unpack;
mod watches;

pub(crate) use watches::register;
