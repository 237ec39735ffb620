//! Text formats: names, image references, URLs, IP addresses and networks, durations, regular
//! expressions, and the string formats of OpenAPI schemas.
//!
//! Each parser follows Kubernetes, and its errors are those of Kubernetes or Go, because they
//! become part of API messages. Schema validation and CEL rules share these parsers.
//! [`edit_distance`] suggests names for misspelled ones.

pub mod address;
pub mod destination;
pub mod duration;
pub mod edit_distance;
pub mod names;
pub mod reference;
pub mod regexp;
mod string_format;
pub mod url;

pub use string_format::StringFormat;
