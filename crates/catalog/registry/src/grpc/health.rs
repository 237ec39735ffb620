//! `grpc.health.v1.Health`: ready means that there is content.
//!
//! Who watches hears of new content too, as the same state once more: a client that has read the
//! catalog knows then that it is another one.
//!
//! The answer is one for all services, whatever name a probe asks for: all of them stand on the same
//! content, and upstream knows no names here either.

use crate::{Index, Served};
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

/// Tells whether a catalog is served.
#[derive(Clone, Debug)]
pub(super) struct Health {
    pub(super) served: Arc<Served>,
    /// The server is shutting down.
    pub(super) stop: CancellationToken,
}

impl Health {
    /// Content that is there goes on being served, whatever becomes of newer content.
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
        let changes = stream::unfold(start, |(health, mut changes, told)| async move {
            loop {
                changes.mark_unchanged();
                let status = health.status();
                let index = health.served.index();
                // A weak one keeps its place in memory, so no other content is taken for it.
                let now = (status, index.as_ref().map(Arc::downgrade).unwrap_or_default());
                let same = |told: &(ServingStatus, Weak<Index>)| {
                    told.0 == now.0 && Weak::ptr_eq(&told.1, &now.1)
                };
                if !told.as_ref().is_some_and(same) {
                    return Some((Ok(response(status)), (health, changes, Some(now))));
                }
                // Whoever only watches must not hold up the end.
                let changed = health.stop.run_until_cancelled(changes.changed()).await;
                if changed.is_none() && health.status() == status {
                    return None;
                }
            }
        });
        Ok(Response::new(changes.boxed()))
    }
}
