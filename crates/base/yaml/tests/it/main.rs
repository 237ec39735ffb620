//! Integration tests of the YAML crate.

mod decoder;
