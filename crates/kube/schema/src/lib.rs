//! What Kubernetes types look like: built-in kinds, custom resource definitions, their documents.
//!
//! Seven subjects: [`builtin`] kinds and their types as one generated table; [`strict`] decoding of
//! objects of those types and JSON as Go writes them ([`gojson`]); [`structural`] schemas, which prune,
//! default and validate custom objects, also by rules that are expressions; custom resource definitions
//! themselves ([`crd`]); where [`webhook`]s are reached; and [`openapi`] documents of kinds.
//!
//! Nothing here stores, serves or waits: it is plain functions of plain values.

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
