//! What Go's standard library writes and reads, byte for byte.
//!
//! Kubernetes, OLM and opm are written in Go, and their messages, hashes and files follow Go's rules.
//! Clients and recorded answers compare these bytes, so they are written in one place: [`quote()`] for
//! `%q`, [`values`] for `%v` and type names, [`json`] for `encoding/json`, [`decode_base64`], and [`sort_slice`] for the order
//! that Go's unstable sort leaves.
//!
//! What this crate does not do: name the types of an API. Which fields a Go struct has, and in which order,
//! is said where that struct is read or written.

mod bytes;
pub mod json;
mod quote;
mod sort;
pub mod values;

pub use bytes::{Base64Error, decode_base64};
pub use quote::{is_printable, quote, quote_bytes};
pub use sort::sort_slice;
