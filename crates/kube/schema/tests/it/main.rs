//! The rules of the crate, told by what goes in and what comes out.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod builtin;
mod crd;
mod openapi;
mod properties;
mod protobuf;
mod rules;
mod strict;
mod structural;
