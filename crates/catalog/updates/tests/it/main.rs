//! Tests of the update graph: tables of examples, and properties of random graphs.
#![cfg(test)]

mod catalog;
mod chain;
mod dsl;
mod large;
mod laws;
mod paths;
mod rules;
