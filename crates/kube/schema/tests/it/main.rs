//! The rules of the crate, told by what goes in and what comes out.

mod builtin;
mod strict;
mod structural;
