//! OLM classic against recorded behaviour.

mod classic;
