//! The update graph of a package as a value: who follows whom, and how to get to the head.

mod chain;

pub use chain::{Link, Unordered, chain};
