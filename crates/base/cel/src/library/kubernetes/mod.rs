//! The functions that Kubernetes adds to the language.

pub mod quantity;
