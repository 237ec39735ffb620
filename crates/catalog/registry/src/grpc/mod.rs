//! The gRPC registry API of one served catalog.
//!
//! ```text
//! ServedCatalog ─┬─► api.Registry, api.ExperimentalRegistry   built from the index on demand
//!                ├─► grpc.health.v1.Health                    SERVING as soon as content is loaded
//!                └─► grpc.reflection.v1, .v1alpha             the list of services
//! ```
//!
//! [`service`] is the complete API as an HTTP service, to which a listener passes requests.
//! Semantics, texts and codes are upstream's. Where upstream answers in random order, Mainstay
//! orders by package, channel and name.
//!
//! The catalog is compressed in memory. A message is built when its turn in the stream comes and
//! dropped once it is sent, so a slow client costs one message, not a catalog.

mod document;
mod experimental;
mod health;
mod message;
mod registry;
mod service;
mod synthesis;

/// The messages and services, generated from `proto/registry.proto` by `cargo xtask registry`.
#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    clippy::str_to_string,
    clippy::use_self,
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    reason = "generated"
)]
#[path = "generated/api.rs"]
pub mod api;

pub use service::{Grpc, service, service_until};

pub(crate) use experimental::{refusal, refusal_of};
pub(crate) use message::{csv, too_many};

use crate::{RegistryIndex, ServedCatalog};
use std::sync::Arc;
use tonic::Status;

/// The descriptor of the API for reflection: an encoded `FileDescriptorSet`.
pub const DESCRIPTION: &[u8] = include_bytes!("generated/api.bin");

/// The index, or the status if nothing is loaded.
fn content(served: &ServedCatalog) -> Result<Arc<RegistryIndex>, Status> {
    let state = served.state();
    if let Some(index) = &state.index {
        return Ok(Arc::clone(index));
    }
    let name = mainstay_gocompat::quote(served.name());
    Err(Status::unavailable(match &state.problem {
        None => format!("catalog {name} is still being loaded"),
        Some(problem) => format!("catalog {name} cannot be loaded: {problem}"),
    }))
}
