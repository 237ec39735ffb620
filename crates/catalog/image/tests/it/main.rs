//! Images: names, documents, the store, archives, registries.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod certs;
mod credentials;
mod damage;
mod docker_registry;
mod documents;
mod hostile;
mod hostile_registries;
mod layouts;
mod names;
mod net;
mod round_trips;
mod rules;
mod skopeo;
mod stores;
mod tarball;
mod unpacking;
