//! What the update graph says of channels, in tables and as properties.
#![cfg(test)]

mod catalog;
mod chain;
mod dsl;
mod large;
mod laws;
mod rules;
mod ways;
