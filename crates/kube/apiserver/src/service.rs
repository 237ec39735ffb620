//! The API as a service of HTTP requests: without a socket, and behind a port.

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
    /// The service as one identity uses it.
    pub fn service(self: &Arc<Self>, identity: Identity) -> ApiService {
        ApiService { server: self.clone(), identity }
    }

    /// The service as whoever connects uses it.
    pub fn port_service(self: &Arc<Self>) -> PortService {
        PortService { server: self.clone() }
    }
}

/// The API as one identity uses it, without a socket: a tower service of HTTP requests.
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

/// The API as whoever connects uses it: each request is answered for the identity that its
/// connection or token proves. What [`crate::serve::serve`] puts behind a port.
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

/// The server as its own client: requests of the server itself.
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
