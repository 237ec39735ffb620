//! Images: names, documents, the store, archives, registries.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod documents;
mod layouts;
mod names;
mod stores;
mod tarball;
mod unpacking;
