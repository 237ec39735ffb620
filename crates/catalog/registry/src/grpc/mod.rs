//! The gRPC registry API over one served catalog.
//!
//! ```text
//! Served ─┬─► api.Registry, api.ExperimentalRegistry   messages made of the index when asked for
//!         ├─► grpc.health.v1.Health                    ready as soon as there is content
//!         └─► grpc.reflection.v1, .v1alpha             what there is to ask
//! ```
//!
//! [`service`] is the whole of it, as a service of HTTP requests: whoever listens hands requests to
//! it. Meaning, texts and codes are upstream's; where upstream answers in random order, the order
//! here is by package, channel and name.
//!
//! A message holds what the catalog keeps compressed. It is made when its turn in the stream comes and
//! gone when it is sent, so a client that reads slowly costs one message, not a catalog.

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

use crate::{Index, Served};
use std::sync::Arc;
use tonic::Status;

/// The description of the API, as reflection hands it out: an encoded `FileDescriptorSet`.
pub const DESCRIPTION: &[u8] = include_bytes!("generated/api.bin");

/// The content, or why there is none.
fn content(served: &Served) -> Result<Arc<Index>, Status> {
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
