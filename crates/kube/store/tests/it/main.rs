//! The store as its users see it, on every engine.

mod contract;
mod support;
