//! HTTP of the Kubernetes API: paths, queries, content negotiation, request and response bodies.
//!
//! This crate reads neither the store nor kinds. TLS, authentication and connections belong to the
//! layers in front of it.

mod audit;
mod body;
mod headers;
pub mod malformed;
pub mod messages;
pub mod negotiate;
pub mod path;
pub mod query;
pub mod request_body;
pub mod response;
mod warnings;
pub mod yaml;

pub use audit::AuditAnnotations;
pub use body::Body;
pub use headers::header_text;
pub use warnings::Warnings;
