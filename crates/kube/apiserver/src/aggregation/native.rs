//! Groups that this process serves itself behind a Service.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use mainstay_auth::Identity;
use mainstay_http::Body;
use std::fmt;

/// A group that this process serves itself behind a Service.
pub trait NativeGroup: Send + Sync + fmt::Debug + 'static {
    /// Answers a request of somebody who may send it: path and query are those of the client, and
    /// so are the headers, without what proves who it is. Watches answer with a body that goes on
    /// ([`Body::stream`]).
    fn call(&self, identity: &Identity, request: Request<Bytes>) -> BoxFuture<'_, Response<Body>>;
}
