//! Integration tests of the resolver.

mod answers;
mod data;
mod universe;
