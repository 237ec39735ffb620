//! Conformance tests of OLM v1.

mod crd_safety;
