//! Conformance tests of `opm`.

mod opm;
