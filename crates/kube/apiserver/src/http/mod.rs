//! The HTTP side: what a URL, a query and the headers ask for, and how answers travel.
//!
//! Nothing here knows the store or a kind. What it does not do: TLS, authentication, connections;
//! those are in front of the service.

pub(crate) mod answer;
mod body;
pub(crate) mod form;
pub(crate) mod gather;
mod messages;
pub(crate) mod negotiate;
pub(crate) mod path;
pub(crate) mod query;

pub use body::Body;
