//! HTTP of the Kubernetes API: paths, queries, content negotiation, request and response bodies.
//!
//! Nothing here knows the store or a kind. Not covered: TLS, authentication, connections; those are
//! in front of the service.

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
