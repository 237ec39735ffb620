//! Integration tests with valid databases of every level, and with invalid ones.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod content;
mod fixture;
mod hostile;
