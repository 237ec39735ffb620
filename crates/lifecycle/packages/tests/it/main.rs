//! Packages of catalogs, asked for as clients of an API ask.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod catalogs;
mod lists;
mod objects;
mod pictures;
mod watches;
mod world;
