//! Replay of the recorded behaviour of OLM v1.

mod catalog_http;
