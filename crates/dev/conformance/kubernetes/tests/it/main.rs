//! Conformance tests of the embedded API.

mod faults;
mod recordings;
