//! In-process API groups behind a Service.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use mainstay_auth::Identity;
use mainstay_http::Body;
use std::fmt;

/// An in-process API group behind a Service.
pub trait NativeGroup: Send + Sync + fmt::Debug + 'static {
    /// Answers an authorized request. Path, query and headers are those of the client, without its
    /// credentials. A watch responds with a streaming body ([`Body::stream`]).
    fn call(&self, identity: &Identity, request: Request<Bytes>) -> BoxFuture<'_, Response<Body>>;
}
