//! Integration tests of the YAML crate.

mod decoder;
mod emitter;
mod robust;
mod streams;
