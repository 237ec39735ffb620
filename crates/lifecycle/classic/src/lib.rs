//! wip
mod gojson;
mod hash;
