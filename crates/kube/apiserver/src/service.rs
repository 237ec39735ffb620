//! The API without a socket.

use crate::Identity;
use crate::http::Body;
use crate::server::ApiServer;
use bytes::Buf;
use futures::future::BoxFuture;
use http::Response;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The API as one identity uses it, without a socket: a tower service of HTTP requests.
#[derive(Clone, Debug)]
pub struct ApiService {
    server: Arc<ApiServer>,
    identity: Identity,
}

impl ApiService {
    pub(crate) const fn new(server: Arc<ApiServer>, identity: Identity) -> Self {
        Self { server, identity }
    }
}

impl<B> tower::Service<http::Request<B>> for ApiService
where
    B: http_body::Body<Data: Buf + Send, Error: fmt::Display> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let Self { server, identity } = self.clone();
        Box::pin(async move { Ok(server.answer(&identity, request).await) })
    }
}
