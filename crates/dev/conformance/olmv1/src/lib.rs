//! Conformance of OLM v1: compares the recorded behaviour of the original with ours.

pub mod cases;
