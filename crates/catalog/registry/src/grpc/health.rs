//! `grpc.health.v1.Health`: ready means that there is content.
//!
//! The answer is one for all services, whatever name a probe asks for: all of them stand on the same
//! content, and upstream knows no names here either.

use crate::Served;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
    health_server::Health as Service,
};

/// Tells whether a catalog is served.
#[derive(Clone, Debug)]
pub(super) struct Health(pub(super) Arc<Served>);

/// Content that is there goes on being served, whatever becomes of newer content.
fn status(served: &Served) -> ServingStatus {
    if served.index().is_some() { ServingStatus::Serving } else { ServingStatus::NotServing }
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
        Ok(Response::new(response(status(&self.0))))
    }

    async fn watch(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let start = (Arc::clone(&self.0), self.0.changes(), None);
        let changes = stream::unfold(start, |(served, mut changes, told)| async move {
            loop {
                changes.mark_unchanged();
                let now = status(&served);
                if told != Some(now) {
                    return Some((Ok(response(now)), (served, changes, Some(now))));
                }
                changes.changed().await.ok()?;
            }
        });
        Ok(Response::new(changes.boxed()))
    }
}
