//! Schemas as values of the Go types that upstream compares.
//!
//! ```text
//! openAPIV3Schema ── decode ─► Value (Struct, Slice, Map, …) ─┬─► dump    texts as `String()` and `%v` give them
//!                              along a `Type`                 └─► godiff  texts as `cmp.Diff` gives them
//! ```
//!
//! The texts of upstream print these types: field names, the order of fields, nil or empty. So a
//! schema is decoded along a table of the types, and all texts walk the decoded values.
//!
//! This module does not validate schemas: the API server does.

mod decode;
mod dump;
mod types;
mod value;

pub(crate) use decode::decode_schema;
pub(crate) use dump::{Addresses, dump_schema, dump_struct, has_address};
pub(crate) use types::{Kind, SCHEMA, SCHEMA_POINTER, Type, field};
pub(crate) use value::{Schema, Value, View};
