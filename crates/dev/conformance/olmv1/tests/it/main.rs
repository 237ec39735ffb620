//! Replay of the recorded behaviour of OLM v1.

mod cases;
mod catalog_http;
mod crd_safety;
