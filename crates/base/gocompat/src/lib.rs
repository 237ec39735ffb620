//! Go's text formats, byte for byte: `%q`, `%v`, `encoding/json`, base64 and `sort.Slice`.
//!
//! Kubernetes, OLM and opm are written in Go, and their messages, hashes and files follow Go's rules.
//! Clients and recorded answers compare these bytes, so one crate has the rules: [`quote()`] for `%q`,
//! [`values`] for `%v` and type names, [`io_error_text`] for errors of the operating
//! system, [`json`] for `encoding/json`, [`decode_base64`], and
//! [`sort_slice`] for the order of Go's unstable sort.
//!
//! This crate does not know the types of an API. The fields of a Go struct and their order belong to the
//! code that reads or writes the struct.

mod bytes;
mod errors;
pub mod json;
mod quote;
mod sort;
pub mod values;

pub use bytes::{Base64Error, decode_base64};
pub use errors::io_error_text;
pub use quote::{is_printable, quote, quote_bytes};
pub use sort::sort_slice;
