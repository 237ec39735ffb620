//! The HTTP catalog API, request by request against the recorded answers of catalogd.
//!
//! ```text
//! catalogs/NAME.yaml ─► documents ─► HTTPS server ─┐
//! requests*.jsonl ──────► request over TLS ────────┴─► response ─► compared with the recorded answer
//! ```
//!
//! Each recorded request is sent to two servers, one with the documents in memory and one with the
//! documents in a file. Status, body and headers must be as recorded: the headers that the recording has
//! of any answer ([`compare::HEADERS`]). The bytes of compressed bodies depend on the compressor, so they
//! are compared after decompression, without their length and framing.
//!
//! `requests.jsonl` was recorded with `metas` and GraphQL, `requests-standard.jsonl` without both. GraphQL
//! is not served here, so all requests to it must have the answers of the recording without it. That is
//! one listed difference as a class. Others are in `catalog-http-differences.txt` ([`differences`]).

pub mod client;
pub mod compare;
pub mod differences;
pub mod recording;
pub mod replay;

pub use recording::{RecordedRequest, RequestRecording};
pub use replay::{Outcome, replay};
