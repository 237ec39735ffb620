//! Laws of versions, sets and the languages that describe them.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod laws;
mod shown;
mod world;
