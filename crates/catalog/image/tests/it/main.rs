//! Images: names, documents, the store, archives, registries.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod certs;
mod clients;
mod damage;
mod documents;
mod hostile;
mod keys;
mod layouts;
mod names;
mod net;
mod real;
mod rules;
mod stores;
mod strangers;
mod tarball;
mod trips;
mod unpacking;
