//! The API as a tower service of HTTP requests: without a socket, and behind a port.

use crate::server::ApiServer;
use bytes::{Buf, Bytes};
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::Full;
use mainstay_admission::Loopback;
use mainstay_auth::Identity;
use mainstay_http::Body;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::Service;

impl ApiServer {
    /// The service for one identity.
    pub fn service(self: &Arc<Self>, identity: Identity) -> ApiService {
        ApiService { server: self.clone(), identity }
    }

    /// The service for connections, which authenticates each request.
    pub fn port_service(self: &Arc<Self>) -> PortService {
        PortService { server: self.clone() }
    }
}

/// The API for one identity, without a socket: a tower service of HTTP requests.
#[derive(Clone, Debug)]
pub struct ApiService {
    server: Arc<ApiServer>,
    identity: Identity,
}

impl<B> Service<Request<B>> for ApiService
where
    B: http_body::Body<Data: Buf + Send, Error: fmt::Display> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { server, identity } = self.clone();
        Box::pin(async move { Ok(server.answer(&identity, request).await) })
    }
}

/// The API for connections: each request acts as the identity that its connection or token proves.
/// [`crate::serve::serve`] puts this service behind a port.
#[derive(Clone, Debug)]
pub struct PortService {
    server: Arc<ApiServer>,
}

impl<B> Service<Request<B>> for PortService
where
    B: http_body::Body<Data: Buf + Send, Error: fmt::Display> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.server.clone();
        Box::pin(async move { Ok(server.answer_connection(request).await) })
    }
}

/// The server as its own client.
pub(crate) struct LoopbackClient(pub(crate) Arc<ApiServer>);

impl Loopback for LoopbackClient {
    fn send(&self, identity: Identity, request: Request<Bytes>) -> BoxFuture<'_, Response<Body>> {
        let mut service = self.0.service(identity);
        Box::pin(async move {
            let Ok(response) = service.call(request.map(Full::new)).await;
            response
        })
    }
}
