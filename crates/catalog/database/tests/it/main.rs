//! Databases as they are found: sound ones of every level, and all kinds of others.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod content;
mod fixture;
mod hostile;
