//! Tests of the public functions of the crate.
#![expect(clippy::unwrap_used, reason = "a panic is a test failure")]

mod builtin;
mod crd;
mod openapi;
mod properties;
mod protobuf;
mod rules;
mod strict;
mod structural;
