//! Conformance tests of OLM classic.

mod classic;
