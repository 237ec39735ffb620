//! Conformance of OLM v1: replays the recorded behaviour of operator-controller and catalogd.
//!
//! The recordings (`answers/olm-v1.tar.xz`, not part of the project) are of the original programs on a
//! real Kubernetes API.

pub mod cases;
pub mod catalog_http;
