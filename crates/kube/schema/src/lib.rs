//! Schemas of Kubernetes: built-in types, CustomResourceDefinitions, OpenAPI documents.
//!
//! * [`builtin`]: built-in kinds, and their Go types in one generated table.
//! * [`strict`]: decoding of objects of these types, with Go's errors.
//! * [`form`], [`gojson`], [`protobuf`]: the encodings of these types.
//! * [`structural`]: structural schemas, which prune, default and validate custom objects.
//! * [`crd`]: parsing and validation of CustomResourceDefinitions.
//! * [`webhook`]: validation of the destinations of webhooks.
//! * [`openapi`]: OpenAPI documents of kinds.
//!
//! All of it is pure functions: no storage, no I/O.

mod paths;
mod trail;

pub mod builtin;
pub mod crd;
pub mod form;
pub mod gojson;
pub mod openapi;
pub mod protobuf;
pub mod strict;
pub mod structural;
pub mod webhook;

pub use mainstay_quantity::canonical as canonical_quantity;
