//! `grpc.health.v1.Health`: `SERVING` means that content is loaded.
//!
//! Watchers are notified of new content too, with the same status once more: so a client knows that
//! its copy of the catalog is out of date.
//!
//! The status is the same for all services, whatever name a probe sends: all of them depend on the
//! same content, and upstream ignores the name, too.

use crate::{RegistryIndex, ServedCatalog};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use std::sync::{Arc, Weak};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
    health_server::Health as Service,
};

/// Reports whether a catalog is served.
#[derive(Clone, Debug)]
pub(super) struct Health {
    pub(super) served: Arc<ServedCatalog>,
    /// The server is shutting down.
    pub(super) stop: CancellationToken,
}

impl Health {
    /// Loaded content continues to be served, even if newer content fails.
    fn status(&self) -> ServingStatus {
        if self.served.index().is_some() && !self.stop.is_cancelled() {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        }
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl Service for Health {
    type WatchStream = BoxStream<'static, Result<HealthCheckResponse, Status>>;

    async fn check(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(response(self.status())))
    }

    async fn watch(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let start = (self.clone(), self.served.changes(), None);
        let changes = stream::unfold(start, |(health, mut changes, reported)| async move {
            loop {
                changes.mark_unchanged();
                let status = health.status();
                let index = health.served.index();
                // A weak reference keeps its allocation, so no other content has its address.
                let now = (status, index.as_ref().map(Arc::downgrade).unwrap_or_default());
                let same = |reported: &(ServingStatus, Weak<RegistryIndex>)| {
                    reported.0 == now.0 && Weak::ptr_eq(&reported.1, &now.1)
                };
                if !reported.as_ref().is_some_and(same) {
                    return Some((Ok(response(status)), (health, changes, Some(now))));
                }
                // A watch must not delay the shutdown.
                let changed = health.stop.run_until_cancelled(changes.changed()).await;
                if changed.is_none() && health.status() == status {
                    return None;
                }
            }
        });
        Ok(Response::new(changes.boxed()))
    }
}
