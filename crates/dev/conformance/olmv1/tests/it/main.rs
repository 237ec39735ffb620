//! Conformance tests of OLM v1.

mod cases;
